/* An archive of files: POSIX ustar (IEEE Std 1003.1, pax), as every tar reads it. Owner, group and
 * modes are the same on every machine.
 * Thread-safety: one archive from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_ARCHIVE_H
#define COX_EXAMPLES_LAB_LAPTOP_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The file of that path, as PREFIX/NAME, up to 99 bytes. False with errno set; what was written is
 * then no archive. */
bool archive_add(FILE *to, const char *prefix, const char *name, const char *path);

/* The two empty records at its end. */
bool archive_end(FILE *to);

#endif
