/* A file that appears whole or not at all: written without a name, or under a temporary one beside its place where the
 * file system or the lack of /proc demands it; made durable; then renamed to its place.
 *
 * "-" is standard output; what exists and is no regular file (a pipe, a device) is written in place. Where the name is
 * a symbolic link, the file it points to is replaced. An interrupted program leaves no temporary file if it calls
 * outfile_remove_all on its way out; one that is killed leaves none if the file had no name, and else one that the next
 * program takes away that writes a file of the same name. A temporary file is locked (flock) while it is written.
 *
 * Thread-safety: one outfile from one thread at a time; outfile_remove_all may run in a signal handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include "error.h"
#include <stdio.h>

struct outfile;

/* `*out` is NULL unless true is returned. */
bool outfile_open(struct outfile **out, const char *path, struct error *error);

/* The stream to write to. Belongs to the outfile. */
FILE *outfile_stream(struct outfile *file);

/* Whether the name does not decide on the content: standard output, a pipe, a device. */
bool outfile_is_special(const struct outfile *file);

/* Flush, close, put in place; the outfile is gone in any case (set to NULL). */
bool outfile_finish(struct outfile **file, struct error *error);

/* Close and remove what was written; NULL is accepted. */
void outfile_abandon(struct outfile **file);

/* Whether two names mean one file, or will when they are written. False for "-", devices and pipes. */
bool outfile_same_place(const char *path, const char *other);

/* Call before anything is opened: where standard input, output or error are closed, keep their descriptors from being
 * given to files, into which messages would be written. Using them goes on being an error. */
void outfile_guard_standard(void);

/* From now on as on a file system where each file has a name; for tests of that. */
void outfile_use_names(void);

/* Unlink every temporary file that is being written. Async-signal-safe. */
void outfile_remove_all(void);

#endif
