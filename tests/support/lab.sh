#!/bin/sh
# The harness for tests of cox-lab: scripts with the arguments BIN_DIR SOURCE_DIR source this instead of harness.sh.
#
#   $lab               the program
#   $verb              its command, for scripts that always use the same one
#   holds SQL RESULT   a query of the database $db has this result; not checked without sqlite3
#   is_json FILE       the file is valid JSON;  is_xml FILE: XML. Not checked if no parser is installed
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
lab=$bin/cox-lab
[ -x "$lab" ] || skip "cox-lab is not built (Jansson or SQLite is missing)"
verb=
db=$work/s.db
sqlite=$(command -v sqlite3)
python=$(command -v python3)

program() { "$lab" ${verb:+"$verb"} "$@"; }
holds() { [ -z "$sqlite" ] || equal "$(sqlite3 "$db" "$1" 2>&1)" "$2" "$1"; }

is_json() { [ -z "$python" ] || check "no JSON in $1" python3 -m json.tool "$1"; }

is_xml() {
    if command -v xmllint >/dev/null; then
        check "$1 is not well-formed" xmllint --noout "$1"
    elif [ -n "$python" ]; then
        check "$1 is not well-formed" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"
    fi
}
