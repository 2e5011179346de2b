/* Looking at the first bytes of a file before it is opened, so that its content can say which reader opens it.
 *
 * What cannot be sought in (standard input, a pipe, a device) is looked at once: its bytes and its descriptor are kept
 * for the open that comes next. One such input is kept at a time.
 *
 * Thread-safety: from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PEEK_H
#define PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough to tell a video by. */
enum { PEEK_BYTES = 4096 };

/* The first bytes of `path` ("-" is standard input). There are fewer than PEEK_BYTES in a pipe that has not given more,
 * but at least 16 unless there are no more. False: it cannot be read. */
bool peek_look(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count);

/* Open `path` for reading; -1 and errno if that fails. `*count` bytes come before what the descriptor gives.
 * The descriptor of "-" is STDIN_FILENO itself, and not to be closed. */
int peek_open(const char *path, uint8_t bytes[PEEK_BYTES], size_t *count);

#endif
