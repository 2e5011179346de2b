#!/bin/sh
# The static library: a project around this one builds it (BUILD_SHARED_LIBS=OFF), hello.c is linked with it there, and from
# what that project installs with pkg-config, with and without --static, and with find_package.
# static.sh CMAKE GENERATOR CC SOURCE_DIR [LAUNCHER]
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 generator=$2 cc=$3 source=$4 launcher=${5:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$source/tests/install/find_package.sh"
skipped=0

# hello PROGRAM: it holds the library, and runs if there is a device
hello() {
    if readelf -d "$1" | grep 'NEEDED.*libcoxswain'; then
        echo "the program wants the shared library"
        exit 1
    fi
    status=0
    "$1" >"$dir/out" 2>"$dir/err" || status=$?
    [ $status != 0 ] || return 0
    grep -q 'no OpenCL' "$dir/err" || { cat "$dir/err"; echo "status $status"; exit 1; }
    skipped=77
}

echo "--- add_subdirectory"
mkdir "$dir/around"
cat >"$dir/around/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(around LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory("$source" coxswain)
add_executable(hello "$source/examples/hello.c")
target_link_libraries(hello PRIVATE coxswain::coxswain m)
END
"$cmake" -S "$dir/around" -B "$dir/build" -G "$generator" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
    -DCMAKE_BUILD_TYPE=Release >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
"$cmake" --build "$dir/build" >"$dir/log" 2>&1 || { tail -n 40 "$dir/log"; exit 1; }
hello "$dir/build/hello"

"$cmake" --install "$dir/build" --prefix "$dir/first" >/dev/null
mv "$dir/first" "$dir/moved prefix"
prefix="$dir/moved prefix"
if find "$prefix" -name '*.so*' | grep .; then
    echo "there is a shared library beside the static one"
    exit 1
fi
if grep -rIl -e "$dir/build" -e "$dir/first" "$prefix"; then
    echo "the files above name the build folder or the prefix they were installed to"
    exit 1
fi
library=$(find "$prefix" -name libcoxswain.a)
if nm -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^cox_/ { print $3; bad = 1 } END { exit !bad }'; then
    echo "the names above are in a program's way"
    exit 1
fi

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coxswain.pc)")
export PKG_CONFIG_PATH
for how in "" --static; do
    echo "--- pkg-config $how"
    # eval, because pkg-config quotes the space in the prefix for a shell. hello.c itself uses the mathematical library.
    eval "\"$cc\" -std=c11 -Wall -Wextra -Werror \"$source/examples/hello.c\" -o \"$dir/hello\" \
        $(pkg-config $how --cflags --libs coxswain) -lm"
    hello "$dir/hello"
done

build_consumer "$prefix" HELLO="$source/examples/hello.c"
hello "$dir/consumer/hello"
[ $skipped = 0 ] || echo "skipped running it, because this machine has no OpenCL device"
exit $skipped
