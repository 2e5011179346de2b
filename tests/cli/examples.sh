#!/bin/sh
# The examples compute what they say, on one device and on two.   sh examples.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"

examples() { # HOW: all of them, on the devices that there are
    for name in hello blur histogram policy; do
        expect_status 0 "$name $1" "$bin/$name"
        contains out '[ ,]0 values are wrong$'
    done
}

# One frame of the policy's example has rows on both devices.
able "one device and two" pocl || finish_setups
export OCL_ICD_VENDORS="$work/pocl"
examples 'on one device'
export POCL_DEVICES="pthread basic"
examples 'on two devices'
contains out 'rows on device 0 .* rows on device 1 '

finish_setups
