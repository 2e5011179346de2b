#!/bin/sh
# Every public declaration has a comment and is on the page of the interface, whose links lead to places on it; the page loads
# nothing and runs nothing.   reference.sh SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$1
command -v python3 >/dev/null || { echo "skipped, because python3 is missing"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
page=$dir/index.html
python3 "$source/cmake/reference.py" -o "$page" "$source"/include/coxswain/*.h || exit 1

status=0
fail()
{
    echo "$1"
    status=1
}
places()
{
    grep -oE ' id="[^"]*"' "$page" | cut -d '"' -f 2 | LC_ALL=C sort
}
places >"$dir/places"
[ -z "$(uniq -d "$dir/places")" ] || fail "a place twice: $(uniq -d "$dir/places")"
grep -oE ' href="[^"]*"' "$page" | cut -d '"' -f 2 | LC_ALL=C sort -u >"$dir/links"
! grep -v '^#' "$dir/links" || fail "the links above leave the page"
sed 's/^#//' "$dir/links" | LC_ALL=C sort -u | LC_ALL=C comm -23 - "$dir/places" >"$dir/lost"
[ ! -s "$dir/lost" ] || fail "links to nowhere: $(cat "$dir/lost")"
! grep -qiE '<script|<link|<img|url\(|@import' "$page" || fail "the page loads or runs something"

# What the library exports, and every type, macro and constant that a header names at the beginning of a line.
{
    cut -d ' ' -f 1 "$source/tests/install/exports.txt"
    sed -nE 's/^(struct|enum|typedef struct|typedef enum) (cox_\w+).*/\2/p; s/^#define (COX_\w+).*/\1/p; s/^    (COX_\w+) = .*/\1/p' \
        "$source"/include/coxswain/*.h
} | grep -v '_ENUM$\|_$' | LC_ALL=C sort -u >"$dir/names" # X macros are there while an enum is made
LC_ALL=C comm -23 "$dir/names" "$dir/places" >"$dir/lost"
[ ! -s "$dir/lost" ] || fail "not on the page: $(cat "$dir/lost")"

# What the headers do not have yet, but may.
cat >"$dir/good.h" <<'END_OF_HEADER'
/* A header. */

/* A pointer to a function. */
typedef void (*cox_later)(int value, void *user);

/* An inline function. */
static inline int cox_inline(int value)
{
    return value > 0 ? value : 0;
}

/* Names, of which the last has no comma behind it. */
enum cox_names { COX_ONE = 1, /* the first */ COX_TWO /* the last */ };
END_OF_HEADER
python3 "$source/cmake/reference.py" -o "$dir/good.html" "$dir/good.h" || fail "a header that is as it should be is complained of"
for place in cox_later cox_inline cox_names COX_ONE COX_TWO; do
    grep -q " id=\"$place\"" "$dir/good.html" || fail "$place is not on the page"
done

# A header like ours with one declaration that nothing is said of, and one name that there is not.
cat >"$dir/bad.h" <<'END_OF_HEADER'
/* A header.
 * SPDX-License-Identifier: Apache-2.0 */

/* Does what cox_nothing does. */
COX_API void cox_said(void);

COX_API void cox_unsaid(int value);
END_OF_HEADER
if python3 "$source/cmake/reference.py" "$dir/bad.h" 2>"$dir/said"; then
    fail "a declaration without a comment is not complained of"
fi
cat >"$dir/expected" <<'END_OF_TEXT'
bad.h: a comment names cox_nothing, which no header declares
bad.h: cox_unsaid: no comment
END_OF_TEXT
LC_ALL=C sort "$dir/said" | diff "$dir/expected" - || fail "other complaints than these were expected"
[ $status = 0 ] && echo "$(wc -l <"$dir/names") names, $(wc -l <"$dir/links") links"
exit $status
