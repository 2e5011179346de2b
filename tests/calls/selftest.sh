#!/bin/sh
# The driver of these tests finds each mistake of a careless program, and none in a careful one.
#   sh selftest.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/calls.sh"

seconds=120
sweep() { python3 "$source/tests/calls/sweep.py" "$COX_TEST_DIR" "$COX_TEST_LAYER_DIR" --careless --seconds "$seconds" "$@"; }

# finds STATUS MISTAKE HOW [PATTERN...]: check what the driver prints for the program with this mistake.
finds() {
    expect_status "$1" "$2 ($3)" sweep --case "$2\$" --how "$3"
    contains out '^[0-9]+ runs, [1-9][0-9]* disturbed, '
    shift 3
    for pattern; do contains out "^FOUND: .*$pattern"; done
}

finds 0 none fail
finds 0 none before,after,half
finds 1 crashes fail 'malloc .*: signal 11'
finds 1 ignores fail 'fwrite .*: status 0, but out is wrong'
finds 1 silent fail 'fopen .*: status 1 without a message' 'malloc .*: status 1 without a message'
finds 1 wrong fail 'fopen .*: an empty message: careless: in: Success'
finds 1 litters fail 'rename .*: left behind: out.tmp' 'fwrite .*: left behind: out.tmp'
finds 1 tears fail 'fwrite .*: out: the good file of before is gone'
finds 1 tears before 'fflush .*: out: neither whole nor as before'
finds 1 destroys fail 'rename .*: out: the good file of before is gone'
finds 1 destroys after 'unlink .*: out: the good file of before is gone'
seconds=5
finds 1 hangs fail 'fopen .*: it hangs'
finish
