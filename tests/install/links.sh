#!/bin/sh
# In the installed documents, every relative link leads to an installed file or folder. .ci/check-links checks the
# places inside a page.
#   links.sh CMAKE BUILD_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
expect_status 0 'cmake --install' "$1" --install "$2" --prefix "$work/prefix"
top=$(cd "$(dirname "$(find "$work/prefix/share" -name README.md | awk '{ print length($0), $0 }' | sort -n | head -n 1 |
    cut -d ' ' -f 2-)")" && pwd -P)

# One line for each link: its page, a tab, the target without the part after #. Links in code do not count.
find "$top" -name '*.md' | while read -r page; do
    sed -e '/^```/,/^```/d' -e 's/`[^`]*`//g' "$page" | grep -oE '\]\([^) ]+|(href|src)="[^"]+' |
        sed -e 's/^](//' -e 's/^[a-z]*="//' -e 's/#.*//' | grep -vE '^$|^[a-z][a-z0-9+.-]*:' |
        sed "s|^|$page	|" || true
done >links
check "only $(wc -l <links) links were found" [ "$(wc -l <links)" -gt 100 ]
while IFS='	' read -r page target; do
    what="${page#"$top"/}: $target"
    to=$(dirname "$page")/$target
    check 'is not installed' [ -e "$to" ]
    case $(realpath "$to")/ in
    "$top"/*) pass ;;
    *) fail 'lies outside of the installed documents' ;;
    esac
done <links
finish
