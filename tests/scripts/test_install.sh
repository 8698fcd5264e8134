#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_install.sh BUILD_DIR: installs the built library into an empty folder, moves it, and builds the example against it with
# nothing but pkg-config, as C99; the header as C99 and C++ with all warnings; then runs the example if the model is there.
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name sluice.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs --static sluice)
strict="-Wall -Wextra -Wpedantic -Werror"

# the compilers and sanitizers of the build
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
cc=$(cached CMAKE_C_COMPILER) cxx=$(cached CMAKE_CXX_COMPILER) sanitize=$(cached SLUICE_SANITIZE)
if [ -n "$sanitize" ]; then flags="-fsanitize=$sanitize $flags"; fi

# shellcheck disable=SC2086 # flags are words
$cc -std=c99 $strict "$source/examples/minimal.c" $flags -o "$work/minimal"
echo '#include <sluice.h>
int main(void) { return sluice_status_name(SLUICE_OK)[0] != 111; }' >"$work/header.c"
cp "$work/header.c" "$work/header.cc"
# shellcheck disable=SC2086
$cc -std=c99 $strict "$work/header.c" $flags -o "$work/header_c"
# shellcheck disable=SC2086
$cxx -std=c++11 $strict "$work/header.cc" $flags -o "$work/header_cc"
"$work/header_c"
"$work/header_cc"

# an error is one line and a non-zero status
if "$work/minimal" /nonexistent x 2>"$work/error"; then echo "a missing model is no error"; exit 1; fi
test "$(wc -l <"$work/error")" = 1

version=$(pkg-config --modversion sluice)
grep -q "SLUICE_VERSION \"$version\"" "$source/include/sluice.h"

model=${SLUICE_MODEL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice/models}/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -r "$model" ]; then
    "$work/minimal" "$model" "The capital of France is" >"$work/text"
    grep -q Paris "$work/text"
    echo "installed, built, ran: $(head -c 60 "$work/text" | head -n 1)"
else
    echo "installed and built; $model is not there to run"
fi
