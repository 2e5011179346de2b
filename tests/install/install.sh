#!/bin/sh
# A stranger's project: install to an empty prefix, move it, build hello.c against it with find_package and with
# pkg-config, run both. install.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 generator=$2 cc=$3 build=$4 source=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$source/tests/install/find_package.sh"

"$cmake" --install "$build" --prefix "$dir/first" >/dev/null
# Nothing in the installed tree may know where it was made.
mv "$dir/first" "$dir/moved prefix"
prefix="$dir/moved prefix"
if grep -rIl -e "$build" -e "$dir/first" "$prefix"; then
    echo "the files above name the build folder or the prefix they were installed to"
    exit 1
fi

build_consumer "$prefix" HELLO="$source/examples/hello.c"
"$dir/consumer/hello" >"$dir/hello.txt"
cat "$dir/hello.txt"
[ -s "$dir/hello.txt" ] || { echo "hello printed nothing"; exit 1; }

echo "--- pkg-config"
pc=$(find "$prefix" -name coxswain.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# eval, because pkg-config quotes the space in the prefix for a shell.
eval "\"$cc\" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags coxswain) \"$source/examples/hello.c\" \
    -o \"$dir/hello\" $(pkg-config --libs coxswain) -lm"
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export LD_LIBRARY_PATH
"$dir/hello" >"$dir/hello.txt"
[ -s "$dir/hello.txt" ] || { echo "hello printed nothing"; exit 1; }

echo "--- the installed programs find the library next to them"
unset LD_LIBRARY_PATH
"$prefix/bin/cox-devices" >/dev/null
