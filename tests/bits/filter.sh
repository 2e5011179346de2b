#!/bin/sh
# The same filtered planes on every set-up (support/bits.sh).   sh filter.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$0")
program="${COX_TEST_DIR:-$1/../tests}/bits_filter" title="filter form"
[ -z "${ASAN_OPTIONS:-}" ] && enough=20 || enough=5
. "$here/../support/bits.sh"
