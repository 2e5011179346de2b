#!/bin/sh
# A stranger's project of Meson's: consumer/meson.build against the installed tree, which was moved, by dependency(); it runs.
# meson.sh CMAKE CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 cc=$2 build=$3 source=$4
command -v meson >/dev/null || { echo "skipped, because meson is missing (Debian: meson)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$cmake" --install "$build" --prefix "$dir/first" >/dev/null
mv "$dir/first" "$dir/moved prefix"
PKG_CONFIG_PATH=$(dirname "$(find "$dir/moved prefix" -name coxswain.pc)")
export PKG_CONFIG_PATH
CC=$cc meson setup "$dir/consumer" "$source/tests/install/consumer" -Dhello="$source/examples/hello.c" >"$dir/log" 2>&1 ||
    { cat "$dir/log"; exit 1; }
# By pkg-config: what else may be installed on this machine is not what was found.
grep -E '^Run-time dependency coxswain found: YES' "$dir/log" || { cat "$dir/log"; exit 1; }
meson compile -C "$dir/consumer" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
status=0
"$dir/consumer/hello" >"$dir/out" 2>"$dir/err" || status=$?
if [ $status != 0 ]; then
    grep -q 'no OpenCL' "$dir/err" || { cat "$dir/err"; echo "status $status"; exit 1; }
    echo "skipped running it, because this machine has no OpenCL device"
    exit 77
fi
cat "$dir/out"
[ -s "$dir/out" ] || { echo "hello printed nothing"; exit 1; }
