#!/bin/sh
# Sessions under the auditing layer (session.c), on each set-up of devices that this machine can have.
#
#   sh session.sh BIN_DIR SOURCE_DIR
#
# Environment:
#   FRAMES=N     number of frames (1000, or 150 under AddressSanitizer)
#   COX_SHORT=1  only the first set-up that this machine can have, and 150 frames
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
[ -z "${ASAN_OPTIONS:-}${COX_SHORT:-}" ] && enough=1000 || enough=150
frames=${FRAMES:-$enough}

# audit NAME DEVICES: run every pipeline with two policies. The bands of `static` stay. Those of `adaptive` move, and it also
# measures with shadow runs. One pipeline also runs with `chunks`, which assigns rows on demand.
audit() {
    wanted || return
    for pair in rows/static rows/adaptive rows/chunks contracts/static contracts/adaptive passes/static passes/adaptive \
        tonemap/static tonemap/adaptive; do
        launch "$1" "$COX_TEST_DIR/audit_session" "$2" "${pair#*/}" "${pair%/*}" "$frames"
        [ $status -ne 77 ] || return
    done
}

audit "CPU" cpu
audit "two sub-devices" cpu:2x1
audit "CPU with copies" cpu=staged
export POCL_DEVICES="pthread basic"
audit "pthread and basic" -
unset POCL_DEVICES
show_llvmpipe
audit "CPU and llvmpipe" cpu,gpu
audit "llvmpipe" gpu
audit "CPU, copies to GPU" cpu,gpu=staged
finish_setups
