/* Text from elsewhere (a database, a driver) on its way to a terminal: what is no printable UTF-8 may steer the
 * terminal, or hide what is beside it.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_PLAIN_H
#define COX_EXAMPLES_LAB_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character that begins at `text` and its bytes. Where none does: 0xFFFD, and one byte. */
uint32_t text_character(const unsigned char *text, unsigned *bytes);

/* False for control characters, those that turn the direction of writing, those without a width, and what XML
 * forbids. */
bool text_presentable(uint32_t character);

/* `text` with each byte of what is not presentable, or no UTF-8, as \xNN; cut to fit. NULL = "". Returns `out`. */
const char *text_plain(const char *text, char *out, size_t out_bytes);

#endif
