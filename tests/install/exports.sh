#!/bin/sh
# The shared library exports what the public headers declare with COX_API, all of it and nothing else, and that is what
# exports.txt keeps: the list that an application may have been linked against, each name with its version. A name that
# comes is added there, a name that goes or gets another version is a change of the interface. The Debian package keeps the
# same list, each name with the version that it came with.
# exports.sh LIBRARY SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

nm -D --defined-only "$1" | awk '$2 != "A" { sub("@@", " ", $NF); print $NF }' | LC_ALL=C sort >"$dir/exported"
# A declaration may span lines: join from COX_API to the semicolon, keep the name before the first parenthesis.
cat "$2"/include/coxswain/*.h | grep -v '^#define' |
    awk '/^COX_API/ { on = 1 } on { text = text " " $0 } on && /;/ { print text; text = ""; on = 0 }' |
    sed 's/(.*//; s/.*[ *]//' | LC_ALL=C sort >"$dir/declared"

[ -s "$dir/declared" ] || { echo "no declaration found"; exit 1; }
sed 's/ .*//' "$dir/exported" >"$dir/names"
if ! diff "$dir/declared" "$dir/names" >"$dir/diff"; then
    sed -n 's/^< /declared but not exported: /p; s/^> /exported but not declared: /p' "$dir/diff"
    exit 1
fi
LC_ALL=C sort -c "$2/tests/install/exports.txt"
if ! diff "$2/tests/install/exports.txt" "$dir/exported" >"$dir/diff"; then
    sed -n 's/^< /gone since it was written to exports.txt: /p; s/^> /new, and not in exports.txt: /p' "$dir/diff"
    exit 1
fi
sed -n 's/^ \(cox_[a-z0-9_]*\)@\([^ ]*\) .*/\1 \2/p' "$2"/packaging/debian/libcoxswain*.symbols | LC_ALL=C sort >"$dir/packaged"
if ! diff "$2/tests/install/exports.txt" "$dir/packaged" >"$dir/diff"; then
    sed -n 's/^< /not in the symbols file of the Debian package: /p; s/^> /in that symbols file, and not in exports.txt: /p' "$dir/diff"
    exit 1
fi
echo "$(wc -l <"$dir/exported") functions"
