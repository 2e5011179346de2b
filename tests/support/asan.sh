#!/bin/sh
# Runs a test of a build with AddressSanitizer.   sh asan.sh COMMAND...
#
# Scripts keep to themselves what programs print, and a program in which memory of third parties is lost has not failed. So the
# reports of all processes go to files, a leak is no exit status, and the files are shown at the end: CTest looks in them for
# what is ours (tests/CMakeLists.txt).
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
