#!/bin/sh
# Every public declaration has a comment and is on the reference page, whose links lead to places on the page. The page
# loads nothing and runs nothing.
#   reference.sh SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
need python3
reference() { python3 "$source/cmake/reference.py" "$@"; }
expect_status 0 'the page' reference -o index.html "$source"/include/coxswain/*.h

grep -oE ' id="[^"]*"' index.html | cut -d '"' -f 2 | sort >places
equal "$(uniq -d places)" '' 'places that are there twice'
grep -oE ' href="[^"]*"' index.html | cut -d '"' -f 2 | sort -u >links
lacks links '^[^#]' # links to other pages
sed 's/^#//' links | sort -u | comm -23 - places >lost
equal "$(cat lost)" '' 'links to nowhere'
lacks index.html '<([sS][cC][rR][iI][pP][tT]|[lL][iI][nN][kK]|[iI][mM][gG])|[uU][rR][lL]\(|@[iI][mM][pP][oO][rR][tT]'

# What the library exports, and every type, macro and constant that a header names at the beginning of a line.
{
    cut -d ' ' -f 1 "$source/tests/install/exports.txt"
    sed -nE 's/^(struct|enum|typedef struct|typedef enum) (cox_\w+).*/\2/p; s/^#define (COX_\w+).*/\1/p; s/^    (COX_\w+) = .*/\1/p' \
        "$source"/include/coxswain/*.h
} | grep -v '_ENUM$\|_$' | sort -u >names # X macros that exist only while an enum is defined
comm -23 names places >lost
check 'there are no names' [ -s names ]
equal "$(cat lost)" '' 'names that are not on the page'

# Constructs that the headers do not have yet.
cat >good.h <<'END_OF_HEADER'
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
expect_status 0 'a header that is as it should be' reference -o good.html good.h
for place in cox_later cox_inline cox_names COX_ONE COX_TWO; do contains good.html " id=\"$place\""; done

# A header with one declaration without a comment, and one name that does not exist.
cat >bad.h <<'END_OF_HEADER'
/* A header.
 * SPDX-License-Identifier: Apache-2.0 */

/* Does what cox_nothing does. */
COX_API void cox_said(void);

COX_API void cox_unsaid(int value);
END_OF_HEADER
expect_status 1 'a declaration without a comment' reference bad.h
sort "$work/err" >said
cat >expected <<'END_OF_TEXT'
bad.h: a comment names cox_nothing, which no header declares
bad.h: cox_unsaid: no comment
END_OF_TEXT
check 'other complaints' diff expected said
finish
