#!/bin/sh
# The backend suite on Oclgrind, which finds accesses out of bounds and races inside a kernel.
#
#   sh oclgrind.sh BIN_DIR SOURCE_DIR
#
# It knows a mapping by its host address alone and so takes one wrapper of a range for another: its "mapped" messages say
# nothing here. Its check for uninitialised memory crashes where kernels do not run on the main thread.
# SPDX-License-Identifier: Apache-2.0
set -u
suite="${COX_TEST_DIR:-$1/../tests}/backend_suite"
if ! command -v oclgrind >/dev/null; then
    echo "skipped, because oclgrind is missing (Debian: oclgrind)"
    exit 77
elif ldd "$suite" | grep -q libasan; then
    echo "skipped, because Oclgrind wants to be loaded first, and so does AddressSanitizer"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$(dirname "$0")/../support/tries.sh"

# Its calls share tables of events without a lock and crash where two threads make them at the same moment (asyncEnqueue,
# asyncQueueRelease): on two cores 1 of 30 to 39 of 40 runs, on one none of 60. There a switch of threads may still hit it.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
tries Oclgrind '/lib(oclgrind|LLVM|clang)' timeout 1200 taskset -c "$core" oclgrind --data-races --max-errors 1000000 --log "$work/log" \
    "$suite" --small --expect 1
grep -E '^[A-Z]' "$work/log" 2>/dev/null | grep -vE '^Invalid (read from|write to) .*mapped' | sort | uniq -c >"$work/errors"
cat "$work/out"
[ $code -ne 0 ] || [ -s "$work/errors" ] || exit 0
echo "FAILED (exit status $code)"
cat "$work/err" "$work/errors"
exit 1
