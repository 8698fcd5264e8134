#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_isa.sh BUILD: AVX stays in the kernels of its level. An AVX instruction in any other object of the library would
# end the program on a processor without it; so would AVX-512 in an object of the avx2 level,
# and a tile in one of the avx512 level.
set -euo pipefail
status=0
count=0
while IFS= read -r object; do
    count=$((count + 1))
    case $object in
    *sl_kernels_amx.dir*) continue ;;
    *sl_kernels_avx512.dir*) pattern='%tmm|tilecfg|tilerelease' ;;
    *sl_kernels_avx2.dir*) pattern='%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])' ;;
    *) pattern='%[yz]mm|%k[0-7]|	v[a-z0-9]+ .*%xmm' ;;
    esac
    if found=$(objdump -d --no-show-raw-insn "$object" | grep -E -m 1 "$pattern"); then
        echo "$object: ${found#"${found%%[![:space:]]*}"}"
        status=1
    fi
done < <(find "$1" -path '*/sl_*.dir/*' -name '*.o' -not -path "$1/matrix/*")
if [ "$count" -eq 0 ]; then
    echo "no objects in $1"
    exit 1
fi
if [ "$status" -eq 0 ]; then echo "isa: fine ($count objects)"; fi
exit "$status"
