#!/bin/sh
# The backend suite on Oclgrind, which finds accesses out of bounds and races inside a kernel. Usage:
#
#   sh oclgrind.sh BIN_DIR SOURCE_DIR
#
# Two of its checks are not used:
#   It identifies a mapping by its host address alone, so it confuses buffers that wrap the same range. Messages
#     about "mapped" memory are ignored.
#   Its check for uninitialised memory crashes if kernels run on another thread than the main one.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
suite=$COX_TEST_DIR/backend_suite
need_oclgrind "$suite"

# Two calls at the same moment (asyncEnqueue, asyncQueueRelease) can crash it: its tables of events have no lock. On
# two cores 1 of 30 to 39 of 40 runs crashed, on one core none of 60. A thread switch may still cause it there.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
may_crash='/lib(oclgrind|LLVM|clang)'
if launch "the suite" timeout 1200 taskset -c "$core" oclgrind --data-races --max-errors 1000000 --log "$work/found" \
    "$suite" --small --expect 1; then
    errors=$(grep -E '^[A-Z]' "$work/found" 2>/dev/null | grep -vE '^Invalid (read from|write to) .*mapped' | sort | uniq -c)
    equal "$errors" '' 'what Oclgrind finds'
fi
finish
