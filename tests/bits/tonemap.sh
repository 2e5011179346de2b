#!/bin/sh
# The same pictures on every set-up (support/bits.sh).   sh tonemap.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$0")
program="${COX_TEST_DIR:-$1/../tests}/bits_tonemap" title="picture mapping"
[ -z "${ASAN_OPTIONS:-}" ] && enough=100 || enough=14
. "$here/../support/bits.sh"
