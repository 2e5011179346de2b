#!/bin/sh
# The examples compute what they document, on one device and on two.
#   sh examples.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
able "the examples" pocl || skip "there is no device that is known"
export OCL_ICD_VENDORS="$work/pocl"

examples() { # HOW: run all examples on the available devices
    if [ -x "$bin/own_gl" ]; then
        launch "own_gl on $1" "$bin/own_gl"
    else
        leave_out "own_gl on $1" "it was built without EGL (Debian: libegl-dev libgles-dev)"
    fi
    for name in hello blur histogram own_opencl policy; do
        expect_status 0 "$name on $1" "$bin/$name"
        contains out '[ ,]0 values are wrong$'
    done
}

export POCL_DEVICES=pthread
examples 'one device'
export POCL_DEVICES="pthread basic"
examples 'two devices'
contains out 'rows on device 0 .* rows on device 1 '

finish
