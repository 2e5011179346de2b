#!/bin/sh
# The program in docs/guide/filters.md compiles without a warning and prints what the text says.
# sh filters_md.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/page.sh"
program_of filters.md filters.c
compile filters.c
need_device
expect_status 0 'the program' ./filters
equal "$(cat "$work/out")" '9216 256'
finish
