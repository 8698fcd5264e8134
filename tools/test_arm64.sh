#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_arm64.sh BUILD: the kernels on processors that this machine is not, played by qemu-user; bits are compared between
# levels, and an instruction that a level may not use ends a test. Works in BUILD/matrix/arm64; installs the cross compiler
# and qemu (tools/install_deps.sh emulate) if they are missing.
#   arm64   built with the cross compiler: all levels; one without I8MM; one without dot products
#   x86-64  the tests of BUILD as they are: one without AVX, one with AVX2
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
dir=$build/matrix/arm64
jobs=$(getconf _NPROCESSORS_ONLN)
export SLUICE_TEST_QUICK=1

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "test_arm64: skipped: not on x86-64 Linux, so the ordinary tests are those of another processor already"
    exit 77
fi
"$source_dir/tools/install_deps.sh" emulate
for command in aarch64-linux-gnu-gcc qemu-aarch64 qemu-x86_64; do
    if ! command -v "$command" > /dev/null; then
        echo "test_arm64: skipped: no $command"
        exit "$([ -n "${SLUICE_TEST_NO_SKIP:-}" ] && echo 1 || echo 77)"
    fi
done

# PROCESSOR LEVEL TESTS: the tests whose names match, on a processor whose best level is LEVEL.
on_arm64() {
    echo "arm64, $1: $2"
    QEMU_CPU=$1 SLUICE_TEST_LEVEL=$2 ctest --test-dir "$dir" -j "$jobs" --output-on-failure --no-tests=error -R "$3"
}

# PROCESSOR LEVEL PRODUCTS: the row kernels, some attention, and these tests of the products.
on_x86_64() {
    echo "x86-64, $1: $2"
    local player=(env "SLUICE_TEST_LEVEL=$2" qemu-x86_64 -cpu "$1")
    "${player[@]}" "$build/tests/test_kernels"
    "${player[@]}" "$build/tests/test_attend" --filter odd_sizes
    "${player[@]}" "$build/tests/test_matmul" --filter "$3"
}

cmake -S "$source_dir" -B "$dir" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$source_dir/cmake/arm64-qemu.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DSLUICE_KERNELS_ONLY=ON -DSLUICE_WERROR=ON > /dev/null
ninja -C "$dir" -j "$jobs" --quiet
on_arm64 max i8mm '^(kernel|op|golden)\.|^unit\.test_(base|pool)$'
on_arm64 cortex-a76 dotprod '^kernel\.test_(kernels|matmul)$'
on_arm64 cortex-a53 neon '^kernel\.test_(kernels|matmul|repack)$' # attention is NEON's on all three
on_x86_64 Nehalem generic ranges_write_only_theirs 2>&1 | grep -v 'warning: TCG'
# qemu 7.2 gathers wrongly when the indices are in ymm4, so no block types here (VPGATHERDD; all eight get the first one's).
on_x86_64 Haswell avx2 float_weights 2>&1 | grep -v 'warning: TCG'
