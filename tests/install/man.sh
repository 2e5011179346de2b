#!/bin/sh
# Manual pages name the purpose of the program and every long option of its --help. mandoc and groff accept them
# without warnings.
#   man.sh PAGES_DIR PROGRAMS_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
pages=$(cd "$1" && pwd) programs=$(cd "$2" && pwd)

for page in "$pages"/*.[17]; do
    name=$(basename "${page%.?}")
    what=$name
    contains "$page" "^$name \\\\- [a-z].*[A-Za-z]\$" # its purpose
    ! command -v mandoc >/dev/null || check 'mandoc' mandoc -Tlint -Wwarning "$page"
    if command -v groff >/dev/null; then
        expect_status 0 "$name: groff" groff -man -Tutf8 -K utf8 -ww -z "$page"
        equal "$(cat "$work/out" "$work/err")" ''
    fi
    [ -x "$programs/$name" ] || continue
    sed 's/\\-/-/g; s/\\f[BIR]//g' "$page" >text
    "$programs/$name" --help | grep -oE '^ {0,6}(-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+' >options
    while read -r option; do contains text "^(-., )?$option( |,|\$)"; done <options
done
check 'there is no coxswain(7)' [ -e "$pages/coxswain.7" ]
for tool in mandoc groff; do
    command -v $tool >/dev/null || leave_out "$tool" 'it is missing'
done
finish
