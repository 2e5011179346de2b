/* A file that appears under its name whole or not at all. It is written without a name, made
 * durable, and then renamed to its place. If the file system or a missing /proc requires a name, it
 * is written under a temporary one next to its place.
 *
 * The folder is made durable, too, so the new name lasts.
 *
 * "-" is standard output. Pipes and devices are written in place. If the name is a symbolic link,
 * the file that it points to is replaced. An interrupted program leaves no temporary file if it
 * calls outfile_remove_all. A killed one leaves none if the file had no name; otherwise the next
 * program that writes a file of the same name removes it. A temporary file is locked (flock) while
 * it is written.
 *
 * Thread-safety: one outfile from one thread at a time; outfile_remove_all may run in a signal
 * handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include "error.h"
#include <stdio.h>

struct outfile;

/* `*out` is NULL unless true is returned. */
bool outfile_open(struct outfile **out, const char *path, struct error *error);

/* Do not replace a file that appears at the place before the end. Then finishing fails. */
void outfile_keep_existing(struct outfile *file);

/* The stream to write to. The outfile owns it. */
FILE *outfile_stream(struct outfile *file);

/* Whether it is standard output, a pipe or a device, whose name says nothing about the content. */
bool outfile_is_special(const struct outfile *file);

/* Flush, close, put in place. Sets the outfile to NULL, also on failure. If a whole file cannot be
 * put in its place, it is kept next to it under a name that `error` tells. */
bool outfile_finish(struct outfile **file, struct error *error);

/* Close and remove what was written; NULL is accepted. */
void outfile_abandon(struct outfile **file);

/* Whether two names are the same file, or will be when it is written. False for "-", devices and
 * pipes. */
bool outfile_same_place(const char *path, const char *other);

/* Call this before opening anything. If standard input, output or error are closed, no file gets
 * their descriptors, into which messages would then be written. Using them stays an error. */
void outfile_guard_standard(void);

/* From now on, work as on a file system on which each file needs a name. For tests. */
void outfile_use_names(void);

/* Unlink every temporary file that is being written. Async-signal-safe. */
void outfile_remove_all(void);

#endif
