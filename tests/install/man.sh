#!/bin/sh
# Manual pages: each says what its program is for and names every long option of its --help; mandoc and groff have nothing to
# complain of.   man.sh PAGES_DIR PROGRAMS_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
pages=$1 programs=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
fail()
{
    echo "$1"
    status=1
}

for page in "$pages"/*.[17]; do
    name=$(basename "${page%.?}")
    grep -q "^$name \\\\- [a-z].*[A-Za-z]\$" "$page" || fail "$name: no line that says what it is for"
    if command -v mandoc >/dev/null; then
        mandoc -Tlint -Wwarning "$page" >"$dir/lint" 2>&1 || fail "mandoc: $(cat "$dir/lint")"
    fi
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -K utf8 -ww -z "$page" >"$dir/lint" 2>&1 || fail "groff: $page"
        [ ! -s "$dir/lint" ] || fail "groff: $(cat "$dir/lint")"
    fi
    [ -x "$programs/$name" ] || continue
    sed 's/\\-/-/g; s/\\f[BIR]//g' "$page" >"$dir/text"
    "$programs/$name" --help | grep -oE '^ {0,6}(-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+' >"$dir/options" || true
    while read -r option; do
        grep -qE -e "^(-., )?$option( |,|\$)" "$dir/text" || fail "$name: its page lacks $option"
    done <"$dir/options"
done
[ -e "$pages/coxswain.7" ] || fail "there is no coxswain(7)"
for tool in mandoc groff; do
    command -v $tool >/dev/null || echo "not looked through by $tool, which is missing"
done
exit $status
