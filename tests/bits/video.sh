#!/bin/sh
# The same video on every set-up (support/bits.sh).   sh video.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$0")
program="${COX_TEST_DIR:-$1/../tests}/bits_video" title="film mapping"
[ -z "${ASAN_OPTIONS:-}" ] && enough=50 || enough=7
. "$here/../support/bits.sh"
