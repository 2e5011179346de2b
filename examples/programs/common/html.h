/* A page of HTML that grows in memory. Text from outside is escaped; the result is well-formed XML
 * too.
 *
 * `failed` records that memory ran out: check it once, at the end.
 * Thread-safety: one page from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTML_H
#define HTML_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

struct html {
    char *text; /* terminated; NULL = nothing was written */
    size_t length, capacity;
    bool failed;
};

void html_free(struct html *html);

/* To a file, which appears whole or not at all. */
bool html_save(const struct html *html, const char *path, struct error *error);

/* Unescaped: only for the program's own text. */
void html_raw(struct html *html, const char *text);
__attribute__((format(printf, 2, 3))) void html_format(struct html *html, const char *format, ...);
void html_append(struct html *html, const struct html *other);

/* Text from outside, for an element or a quoted attribute; NULL is nothing. What is not UTF-8, not
 * a character of XML, or would change the direction of the text around it becomes U+FFFD. */
void html_text(struct html *html, const char *text);

/* The same, at most `characters` of it; the last one is an ellipsis if there are more. */
void html_text_cut(struct html *html, const char *text, unsigned characters);

/* The same, but without the middle: devices of one name differ at the end. */
void html_text_middle(struct html *html, const char *text, unsigned characters);

/* Write the page up to the opened <main>. `program` wrote it; NULL ends the `styles`. */
void html_begin(struct html *html, const char *title, const char *program,
                const char *const styles[]);

/* A coordinate: one decimal, or none if it is 0. Zero if not finite. */
void html_coordinate(struct html *html, double value);

#endif
