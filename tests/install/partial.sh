#!/bin/sh
# A build folder in which only some targets were built can be installed: it installs what is there.
#   partial.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR [CMAKE_OPTION...]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/install/launcher.sh"
cmake=$1 generator=$2 cc=$3 build=$4
shift 5

make_launcher "$build"
expect_status 0 'configuration' "$cmake" -S "$source" -B build -G "$generator" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_COMPILER_LAUNCHER="$work/d/launcher" -DCMAKE_BUILD_TYPE=Release "$@"

# installs PROGRAMS TARGET...: the library, and of the programs these.
installs() {
    programs=$1
    shift
    expect_status 0 "a build of $*" "$cmake" --build build --target "$@"
    expect_status 0 "cmake --install after a build of $*" "$cmake" --install build --prefix "$work/d/prefix"
    check 'the library is missing' [ "$(find prefix -name 'libcoxswain.*' ! -type l)" ]
    equal "$(find prefix -path '*/bin/*' -exec basename {} \; | sort | tr '\n' ' ')" "$programs" 'the installed programs'
    rm -r prefix
}

demo=$(sed -n '/^demo()/,/^}/s/^ *build //p' "$source/setup")
check "the targets of ./setup demo were not found" [ "$demo" ]
installs '' coxswain
# shellcheck disable=SC2086
installs "$(printf '%s ' $demo)" $demo

# Some of the manual pages.
mkdir -p build/man
: >build/man/cox-devices.1
expect_status 0 'cmake --install with one manual page' "$cmake" --install build --prefix "$work/d/prefix"
expected=
! grep -q man1 build/cmake_install.cmake || expected=cox-devices.1
equal "$(find prefix -path '*/man/*' -type f -exec basename {} \;)" "$expected" 'the installed manual pages'
finish
