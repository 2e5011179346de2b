/* The first bytes of a file before it is opened: they tell which reader opens it.
 *
 * Standard input, pipes and devices cannot seek. What was read from one is kept with its descriptor
 * for the open that follows; one such input is kept at a time.
 *
 * Thread-safety: from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PEEK_H
#define PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough to recognise a video. */
enum { PEEK_BYTES = 4096 };

/* The first bytes of `path` ("-" is standard input). A pipe may give fewer than PEEK_BYTES, but at
 * least 16 unless it ends before. False and errno: it cannot be read. */
bool peek_look(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count);

/* Open `path` for reading; -1 and errno on failure. `*count` bytes come before those of the
 * descriptor. The descriptor of "-" is STDIN_FILENO itself: do not close it. */
int peek_open(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count);

#endif
