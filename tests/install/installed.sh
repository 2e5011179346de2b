#!/bin/sh
# The installed tree as a stranger meets it, under the harness: sourced in its place by scripts that get
# CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR.
#
#   install_moved BUILD          $prefix, a folder with a blank in its name: installed elsewhere, then moved there. Nothing in it
#                                knows of the build folder, or of the place where it was installed
#   use_pkg_config               PKG_CONFIG_PATH finds it
#   build_consumer FRAME=FILE|HELLO=FILE
#                                the project in consumer/, with find_package: the program is consumer/frame or consumer/hello
#   hello PROGRAM                it prints something, or says that there is no OpenCL device; finish_hello skips then
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
cmake=$1 generator=$2 cc=$3 build=$4
prefix="$work/d/moved prefix"

install_moved() {
    expect_status 0 'cmake --install' "$cmake" --install "$1" --prefix "$work/d/first"
    mv first "$prefix"
    equal "$(grep -rIl -e "$1" -e "$work/d/first" "$prefix")" '' 'files that name the build folder, or the prefix they were installed to'
}

use_pkg_config() {
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coxswain.pc)")
    export PKG_CONFIG_PATH
}

build_consumer() {
    expect_status 0 'find_package' "$cmake" -S "$source/tests/install/consumer" -B consumer -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$cc" -D"$1"
    expect_status 0 'a build with find_package' "$cmake" --build consumer
}

no_device=
hello() {
    what="$1"
    if "$@" >"$work/out" 2>"$work/err"; then
        check 'it printed nothing' [ -s "$work/out" ]
    else
        contains err 'no OpenCL'
        no_device=yes
    fi
}
finish_hello() {
    [ -z "$no_device" ] || skip "this machine has no OpenCL device: the programs were built, and not run"
    finish
}
