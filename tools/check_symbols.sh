#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_symbols.sh LIBRARY: every global name of the library begins with sl_ or sluice_, so that it can be linked anywhere.
set -euo pipefail
bad=$(nm -g --defined-only "$1" 2> /dev/null | awk 'NF == 3 && $3 !~ /^_?(sl|sluice)_/ {print $3}' | grep -v '^__asan\|^__odr_asan\|^__ubsan' | sort -u || true)
if [ -n "$bad" ]; then
    echo "global names without the prefix sl_ or sluice_:"
    echo "$bad"
    exit 1
fi
echo "symbols: fine"
