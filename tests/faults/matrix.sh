#!/bin/sh
# Every kind of fault on every kind of device, or the selection that every run of the tests takes, after what the death of a
# device costs and some of the same with frames of two passes:
#
#   sh matrix.sh BIN_DIR SOURCE_DIR [--all] [fault_matrix's other options]
#
# Needs COX_TEST_DIR and COX_TEST_LAYER_DIR, or takes them to be beside BIN_DIR.
# SPDX-License-Identifier: Apache-2.0
set -u
: "${COX_TEST_DIR:=$1/../tests}"
: "${COX_TEST_LAYER_DIR:=$COX_TEST_DIR/layers}"
export COX_TEST_LAYER_DIR
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
: "${POCL_CACHE_DIR:=$work/cache}"
: "${XDG_CACHE_HOME:=$work/cache}"
export POCL_CACHE_DIR XDG_CACHE_HOME
. "$(dirname "$0")/../support/setups.sh"
unset OPENCL_LAYERS POCL_DEVICES RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
[ -n "$pocl" ] || rm -rf "$work/pocl" "$work/both" # what a set-up lacks, the program is to see
[ -n "$rusticl" ] || rm -rf "$work/both"
# The drivers' leaks after a fault are not what is looked for here.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
if [ $# -eq 0 ]; then
    "$COX_TEST_DIR/fault_matrix" --death || exit 1
    "$COX_TEST_DIR/fault_matrix" --passes --setup scripted --frames 60 || exit 1
    "$COX_TEST_DIR/fault_matrix" --vendors "$work" --passes --setup mapped --frames 60 || [ $? -eq 77 ] || exit 1
fi
"$COX_TEST_DIR/fault_matrix" --vendors "$work" "$@"
