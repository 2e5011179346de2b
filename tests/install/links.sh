#!/bin/sh
# Every relative link in the documents that are installed leads to a file or folder below the installed documents; where it
# points inside a page, .ci/check-links sees to.   links.sh CMAKE BUILD_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 build=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$cmake" --install "$build" --prefix "$dir/prefix" >/dev/null
top=$(cd "$(dirname "$(find "$dir/prefix/share" -name README.md | awk '{ print length($0), $0 }' | sort -n | head -n 1 |
    cut -d ' ' -f 2-)")" && pwd -P)

# The links of each page, a line each: its page, a tab, the target without what is behind a #. Code is no link.
find "$top" -name '*.md' | while read -r page; do
    sed -e '/^```/,/^```/d' -e 's/`[^`]*`//g' "$page" | grep -oE '\]\([^) ]+|(href|src)="[^"]+' |
        sed -e 's/^](//' -e 's/^[a-z]*="//' -e 's/#.*//' | grep -vE '^$|^[a-z][a-z0-9+.-]*:' |
        sed "s|^|$page	|" || true
done >"$dir/links"
count=$(wc -l <"$dir/links")

status=0
while IFS='	' read -r page target; do
    to=$(dirname "$page")/$target
    if [ ! -e "$to" ]; then
        echo "${page#"$top"/}: $target is not installed"
        status=1
        continue
    fi
    case $(realpath "$to")/ in
    "$top"/*) ;;
    *) echo "${page#"$top"/}: $target lies outside of the installed documents"; status=1 ;;
    esac
done <"$dir/links"
[ "$count" -gt 100 ] || { echo "only $count links were found"; status=1; }
[ $status = 0 ] && echo "$count links"
exit $status
