#!/bin/sh
# The operator local on every set-up (support/bits.sh).   sh local.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$0")
program="${COX_TEST_DIR:-$1/../tests}/bits_local" title="subject operator"
[ -z "${ASAN_OPTIONS:-}" ] && enough=20 || enough=5
. "$here/../support/bits.sh"
