/* An archive of files: POSIX ustar (IEEE Std 1003.1, pax), which every tar reads. Owner, group and
 * modes are the same on every machine.
 * Thread-safety: one archive from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_ARCHIVE_H
#define COX_EXAMPLES_LAB_LAPTOP_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Add the file at `path` as PREFIX/NAME, at most 99 bytes. False with errno set; the archive is
 * then broken. */
bool archive_add(FILE *to, const char *prefix, const char *name, const char *path);

/* Write the two empty records at the end. */
bool archive_end(FILE *to);

#endif
