#!/bin/sh
# Run CTest, then say which tests were skipped and why, and how many passed.   sh ctest.sh BUILD_DIR CTEST_OPTION...
#
# The last line is `N passed, N failed, N skipped`. If COX_TOTALS names a file, the three numbers are also appended
# to it. The exit status is CTest's.
# SPDX-License-Identifier: Apache-2.0
set -u
build=$1
shift
log=$build/Testing/output

# One test more than cores, because many tests wait. But at most one per 2 GiB of memory.
jobs=$(($(nproc) + 1))
fit=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null)
[ "${fit:-0}" -lt 2 ] || [ "$fit" -ge "$jobs" ] || jobs=$fit

mkdir -p "$build/Testing"
{
    ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error "$@"
    echo $? >"$build/Testing/status"
} 2>&1 | tee "$log"
status=$(cat "$build/Testing/status")

# The log of the last run holds what each test printed.
awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 } /[Ss]kipped, because/ { print name ": " $0 }' \
    "$build/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u
count()
{
    grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$log"
}
passed=$(count ' Passed ')
skipped=$(count '\*\*\*Skipped ')
all=$(count '')
failed=$((all - passed - skipped))
[ -z "${COX_TOTALS:-}" ] || echo "$passed $failed $skipped" >>"$COX_TOTALS"
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
