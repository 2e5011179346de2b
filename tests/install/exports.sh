#!/bin/sh
# The shared library exports exactly the functions that the public headers declare with COX_API. exports.txt lists them
# with their versions, because applications may be linked with them. A new name is added there. A name that is removed,
# or that gets another version, changes the interface. The Debian package has the same list, with the version in which
# each name came.
#   exports.sh LIBRARY SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
kept=$source/tests/install/exports.txt

nm -D --defined-only "$1" | awk '$2 != "A" { sub("@@", " ", $NF); print $NF }' | sort >exported
# A declaration may span several lines. Join the lines from COX_API to the semicolon, and keep the name before the
# first parenthesis.
cat "$source"/include/coxswain/*.h | grep -v '^#define' |
    awk '/^COX_API/ { on = 1 } on { text = text " " $0 } on && /;/ { print text; text = ""; on = 0 }' |
    sed 's/(.*//; s/.*[ *]//' | sort >declared
sed 's/ .*//' exported >names
sed -n 's/^ \(cox_[a-z0-9_]*\)@\([^ ]*\) .*/\1 \2/p' "$source"/packaging/debian/libcoxswain*.symbols | sort >packaged

check 'no declaration found' [ -s declared ]
check 'declared (<) and exported (>)' diff declared names
check 'exports.txt is not sorted' sort -c "$kept"
check 'in exports.txt (<) and exported (>)' diff "$kept" exported
check 'in exports.txt (<) and in the symbols file of the Debian package (>)' diff "$kept" packaged
finish
