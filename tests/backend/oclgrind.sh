#!/bin/sh
# The backend suite on Oclgrind, which finds accesses out of bounds and races inside a kernel.
#
#   sh oclgrind.sh BIN_DIR SOURCE_DIR
#
# It knows a mapping by its host address alone and so takes one wrapper of a range for another: its "mapped" messages say
# nothing here. Its check for uninitialised memory crashes where kernels do not run on the main thread.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
suite=$COX_TEST_DIR/backend_suite
need_oclgrind "$suite"

# Its calls share tables of events without a lock and crash where two threads make them at the same moment (asyncEnqueue,
# asyncQueueRelease): on two cores 1 of 30 to 39 of 40 runs, on one none of 60. There a switch of threads may still hit it.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
may_crash='/lib(oclgrind|LLVM|clang)'
if launch "the suite" timeout 1200 taskset -c "$core" oclgrind --data-races --max-errors 1000000 --log "$work/found" \
    "$suite" --small --expect 1; then
    errors=$(grep -E '^[A-Z]' "$work/found" 2>/dev/null | grep -vE '^Invalid (read from|write to) .*mapped' | sort | uniq -c)
    equal "$errors" '' 'what Oclgrind finds'
fi
finish
