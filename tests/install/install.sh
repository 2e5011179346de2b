#!/bin/sh
# A stranger's project: install to an empty prefix, move it, build hello.c against it with find_package and with
# pkg-config, run both.   install.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/installed.sh"
install_moved "$build"
build_consumer HELLO="$source/examples/hello.c"
hello consumer/hello

use_pkg_config
# eval, because pkg-config quotes the space in the prefix for a shell.
expect_status 0 'a build with pkg-config' eval "\"$cc\" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags coxswain) \
    \"$source/examples/hello.c\" -o hello $(pkg-config --libs coxswain) -lm"
hello env LD_LIBRARY_PATH="$(dirname "$PKG_CONFIG_PATH")" ./hello

# The installed programs find the library next to them.
hello "$prefix/bin/cox-devices"
finish_hello
