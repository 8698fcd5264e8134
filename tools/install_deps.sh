#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install_deps.sh build|test|emulate: installs the packages that are missing, and only those, with apt (Debian 12) or brew (macOS,
# untested). Says what it does; does nothing, without asking for a password, if nothing is missing.
set -euo pipefail
purpose=${1:-build}

have_command() { command -v "$1" > /dev/null 2>&1; }

install_debian() {
    local wanted=(gcc g++ cmake ninja-build pkg-config libpcre2-dev libutf8proc-dev libjansson-dev libedit-dev python3 python3-pip)
    if [ "$purpose" = test ]; then wanted+=(clang libclang-rt-14-dev clang-format-14); fi # 14 is the clang of Debian 12
    if [ "$purpose" = emulate ]; then wanted=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user); fi
    local missing=() package
    for package in "${wanted[@]}"; do
        if [ "$package" = python3 ] && have_command python3; then continue; fi
        if [ "$package" = python3-pip ] && python3 -m pip --version > /dev/null 2>&1; then continue; fi
        if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed; then missing+=("$package"); fi
    done
    if [ ${#missing[@]} -eq 0 ]; then return; fi
    echo "installing with apt: ${missing[*]}"
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! have_command sudo; then
            echo "install_deps: not root and no sudo; install these packages first: ${missing[*]}" >&2
            exit 1
        fi
        root=(sudo)
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

install_macos() { # untested
    local missing=() package
    for package in cmake ninja pkg-config pcre2 utf8proc jansson libedit python3; do
        if ! brew list --versions "$package" > /dev/null; then missing+=("$package"); fi
    done
    if [ ${#missing[@]} -gt 0 ]; then brew install "${missing[@]}"; fi
}

if have_command apt-get; then
    install_debian
elif have_command brew; then
    install_macos
else
    echo "install_deps: neither apt nor brew here; needed are a C17 compiler, cmake >= 3.25, ninja, pkg-config, pcre2, utf8proc," \
        "jansson, libedit, python3 with pip" >&2
fi
