/* Text from elsewhere (a database, a driver) on its way to a terminal or a page. Text that is not
 * printable UTF-8 could control the terminal, or hide what is next to it.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The UTF-8 character at `text`, and its length in bytes. Invalid UTF-8 gives 0xFFFD and 1. */
uint32_t text_character(const unsigned char *text, unsigned *bytes);

/* False for control characters, changes of the writing direction, characters without a width, and
 * what XML forbids. */
bool text_presentable(uint32_t character);

/* Write the character at `text` to `out`: as it is if it is presentable or in `allowed`, else with \xNN
 * for each byte. `*bytes` is its length in `text`. Returns the bytes that were written, at most
 * TEXT_ESCAPED_MAX, without a terminator. */
enum { TEXT_ESCAPED_MAX = 16 };
size_t text_escape(const unsigned char *text, const char *allowed, unsigned *bytes,
                   char out[TEXT_ESCAPED_MAX + 1]);

/* Write `text` to `out`, cut to fit, with \xNN for each byte that is not presentable UTF-8. NULL =
 * "". Returns `out`. */
const char *text_plain(const char *text, char *out, size_t out_bytes);

#endif
