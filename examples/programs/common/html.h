/* A page of HTML that grows in memory. What comes from outside is escaped; what is written is well-formed XML too.
 *
 * Running out of memory is kept in `failed` and asked for once, at the end.
 * Thread-safety: one page from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_HTML_H
#define COX_EXAMPLES_LAB_REPORT_HTML_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

struct html {
    char *text; /* terminated, once there is any */
    size_t length, capacity;
    bool failed;
};

void html_free(struct html *html);

/* To a file, which appears whole or not at all. */
bool html_save(const struct html *html, const char *path, struct error *error);

/* As it is: only for text of the program's own. */
void html_raw(struct html *html, const char *text);
__attribute__((format(printf, 2, 3))) void html_format(struct html *html, const char *format, ...);
void html_append(struct html *html, const struct html *other);

/* Text from outside, for the inside of an element or of a quoted attribute; NULL is nothing. What is no UTF-8, no
 * character of XML or would change the direction of the text around it becomes U+FFFD. */
void html_text(struct html *html, const char *text);

/* As above, at most `characters` of it, the last being an ellipsis if there are more. */
void html_text_cut(struct html *html, const char *text, unsigned characters);

/* As above, but it is the middle that is left out: what tells devices of one name from each other stands at the end. */
void html_text_middle(struct html *html, const char *text, unsigned characters);

/* From the first byte to within <main>. `program`: what made the page; `styles`: style sheets, NULL ends them. */
void html_begin(struct html *html, const char *title, const char *program,
                const char *const styles[]);

/* A coordinate: one decimal, no more characters than it needs. Zero if not finite. */
void html_coordinate(struct html *html, double value);

#endif
