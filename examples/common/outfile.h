/* A file that appears whole or not at all: written under a temporary name beside its place, made durable, renamed.
 *
 * "-" is standard output; what exists and is no regular file (a pipe, a device) is written in place. Where the name is
 * a symbolic link, the file it points to is replaced. An interrupted program leaves no temporary file if it calls
 * outfile_remove_all on its way out.
 *
 * Thread-safety: one outfile from one thread at a time; outfile_remove_all may run in a signal handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include "picture.h"
#include <stdio.h>

struct outfile;

/* `*out` is NULL unless true is returned. */
bool outfile_open(struct outfile **out, const char *path, struct picture_error *error);

/* The stream to write to. Belongs to the outfile. */
FILE *outfile_stream(struct outfile *file);

/* Whether the name does not decide on the content: standard output, a pipe, a device. */
bool outfile_is_special(const struct outfile *file);

/* Flush, close, put in place; the outfile is gone in any case (set to NULL). */
bool outfile_finish(struct outfile **file, struct picture_error *error);

/* Close and remove what was written; NULL is accepted. */
void outfile_abandon(struct outfile **file);

/* Unlink every temporary file that is being written. Async-signal-safe. */
void outfile_remove_all(void);

#endif
