#!/bin/sh
# Runs a test of a build with AddressSanitizer.   sh asan.sh COMMAND...
#
# Test scripts do not show what programs print, and a program that leaks memory of third parties has not failed. So
# all processes write their reports to files, and a leak does not change the exit status. The reports are printed at
# the end. CTest searches them for the project's own leaks (tests/CMakeLists.txt).
# SPDX-License-Identifier: Apache-2.0
set -u
reports=$(mktemp -d) || exit 1
trap 'rm -rf "$reports"' EXIT
trap 'exit 1' INT TERM
export ASAN_OPTIONS="$ASAN_OPTIONS:log_path=$reports/report" LSAN_OPTIONS=exitcode=0
"$@"
status=$?
find "$reports" -type f -exec cat {} +
exit $status
