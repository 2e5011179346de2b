#!/bin/sh
# Every filter in both forms of its kernels (kernels.c), on PoCL. kernels.sh does the same on Oclgrind.
#
#   sh filter_kernels.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$(dirname "$0")/../support/setups.sh"
able "PoCL" "pocl" || exit 77
OCL_ICD_VENDORS="$work/pocl" "${COX_TEST_DIR:-$1/../tests}/bits_kernels" filter
