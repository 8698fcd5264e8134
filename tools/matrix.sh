#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# matrix.sh BUILD NAME: the tests once more, built or run in another way. Works in BUILD/matrix/NAME.
#   asan    ASan and UBSan, assertions on; the quick tests, and the program on bad files
#   clang   clang without assertions; builds everything and runs the unit tests
#   tsan    ThreadSanitizer; the thread pool, random lives of the KV pool
#   levels  golden logits and the program at each instruction set that this processor has (SLUICE_CPU)
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$1
name=$2
dir=$build/matrix/$name
jobs=$(getconf _NPROCESSORS_ONLN)

# clang throughout: gcc needs minutes for a kernel with its sanitizers. Warnings are errors.
configure() {
    CC=clang CXX=clang++ cmake -S "$source_dir" -B "$dir" -G Ninja -DSLUICE_WERROR=ON -DSLUICE_MATRIX=OFF -DSLUICE_CUDA=off "$@" > /dev/null
}
build_targets() { ninja -C "$dir" -j "$jobs" --quiet "$@"; }
run_tests() { ctest --test-dir "$dir" -j "$jobs" --output-on-failure "$@"; }

case $name in
asan)
    configure -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -Wno-pass-failed" -DSLUICE_SANITIZE=address,undefined
    build_targets
    run_tests -R '^(unit|kernel|fuzz|fault|cli\.files|cli\.options)\.'
    ;;
clang)
    configure -DCMAKE_BUILD_TYPE=Release
    build_targets
    run_tests -L '^unit$'
    ;;
tsan)
    configure -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -Wno-pass-failed" -DSLUICE_SANITIZE=thread
    build_targets test_pool test_kv
    run_tests -R '\.test_(pool|kv)$'
    ;;
levels)
    for level in generic avx2 avx512; do
        flag=$level
        if [ "$level" = avx512 ]; then flag=avx512_vnni; fi
        if [ "$level" != generic ] && ! grep -qw "$flag" /proc/cpuinfo; then
            echo "this processor has no $level"
            continue
        fi
        echo "SLUICE_CPU=$level"
        tests='golden\.test_tiny|cli\.run\..*'
        # Real models are too slow there: without FMA instructions each fmaf is a call.
        if [ "$level" = generic ]; then tests='golden\.test_tiny'; fi
        SLUICE_CPU=$level ctest --test-dir "$build" -j "$jobs" --output-on-failure -R "^($tests)\$"
    done
    ;;
*)
    echo "matrix.sh: there is no $name" >&2
    exit 2
    ;;
esac
