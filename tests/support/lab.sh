#!/bin/sh
# cox-lab under the harness: sourced in its place by scripts that get BIN_DIR SOURCE_DIR. $lab is the program.
#
#   run STATUS WHAT ARGS...             it ends with that status; $verb is the command, if it is always the same
#   denies STATUS PATTERN WHAT ARGS...  the same, and standard error says why
#   holds SQL RESULT                    what the database $db says; nothing is checked without sqlite3
#   is_json FILE, is_xml FILE           it can be parsed, if there is a program that can
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
lab=$bin/cox-lab
[ -x "$lab" ] || skip "cox-lab is not built (Jansson or SQLite is missing)"
verb=
db=$work/s.db
sqlite=$(command -v sqlite3)
python=$(command -v python3)

run() {
    h_status=$1
    h_what=$2
    shift 2
    expect_status "$h_status" "$h_what" "$lab" ${verb:+"$verb"} "$@"
}

denies() {
    h_why=$2
    h_status=$1
    h_what=$3
    shift 3
    expect_status "$h_status" "$h_what" "$lab" ${verb:+"$verb"} "$@"
    contains err "$h_why"
}

holds() { [ -z "$sqlite" ] || equal "$(sqlite3 "$db" "$1" 2>&1)" "$2" "$1"; }

is_json() { [ -z "$python" ] || check "no JSON in $1" python3 -m json.tool "$1"; }

is_xml() {
    if command -v xmllint >/dev/null; then
        check "$1 is not well-formed" xmllint --noout "$1"
    elif [ -n "$python" ]; then
        check "$1 is not well-formed" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"
    fi
}
