/* Small files below a folder: those of the kernel in /sys, or a copy of them. All paths are
 * relative to that folder, the root.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_SYSFS_H
#define COX_EXAMPLES_LAB_TELEMETRY_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYSFS_PATH_BYTES = 256, SYSFS_NAME_BYTES = 64 };

bool sysfs_is_folder(const char *path);

/* Opens for reading; -1 with errno set. The caller closes the file. */
__attribute__((format(printf, 2, 3))) int sysfs_open(const char *root, const char *format, ...);

/* The first line of a file without the white space at its end. False with errno set, and an
 * empty text, if the line is empty or cannot be read. */
__attribute__((format(printf, 4, 5))) bool sysfs_text(const char *root, char *text, size_t bytes,
                                                      const char *format, ...);

/* The number at the beginning of a file; false if no number can be read. */
__attribute__((format(printf, 3, 4))) bool sysfs_number(const char *root, double *value,
                                                        const char *format, ...);

/* List the entries of a folder whose name is the prefix and a number ("" = all entries), in the
 * order of these numbers. Returns how many there are, at most `most`. */
size_t sysfs_list(const char *root, const char *folder, const char *prefix,
                  char (*names)[SYSFS_NAME_BYTES], size_t most);

/* Whether a list such as "0-11,14" contains the number. */
bool sysfs_list_has(const char *list, uint32_t number);

#endif
