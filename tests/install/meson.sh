#!/bin/sh
# A stranger's project of Meson's: consumer/meson.build against the installed tree, which was moved, by dependency(); it runs.
# meson.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/installed.sh"
need meson
install_moved "$build"
use_pkg_config
expect_status 0 'meson setup' env CC="$cc" meson setup consumer "$source/tests/install/consumer" -Dhello="$source/examples/hello.c"
# By pkg-config: what else may be installed on this machine is not what was found.
contains out '^Run-time dependency coxswain found: YES'
expect_status 0 'meson compile' meson compile -C consumer
hello consumer/hello
finish_hello
