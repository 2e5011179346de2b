/* SHA-256 of memory and of files, as `sha256sum` prints it.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHA256_H
#define SHA256_H

#include <stdbool.h>
#include <stddef.h>

enum { SHA256_TEXT_BYTES = 65 };

/* Lower-case hexadecimal digits. */
void sha256_of(const void *data, size_t bytes, char text[SHA256_TEXT_BYTES]);

/* False with errno set, and `text` empty. */
bool sha256_of_file(const char *path, char text[SHA256_TEXT_BYTES]);

#endif
