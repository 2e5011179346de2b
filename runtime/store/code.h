/* Kernels compiled ahead of time, which an application gives as cox_pass.code: SPIR-V, or the
 * content of a file that cox_compile wrote.
 *
 * Such a file has an entry for each device, in the format of the cache's entries. An entry is a
 * magic number, the key, the length, the content and a SHA-256 of all. The key names the device,
 * its driver and the library's version.
 *
 * Some drivers end the process on a binary that is damaged or was made for another driver. Because
 * of key and digest they do not get one. The digest does not stop attackers: a user who can change
 * the file can run code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STORE_CODE_H
#define COX_STORE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cox__code_kind {
    COX__CODE_UNKNOWN = 0,
    COX__CODE_SPIRV = 1, /* of either byte order */
    COX__CODE_FILE = 2,
};

/* By the first bytes. */
enum cox__code_kind cox__code_kind_of(const void *code, size_t bytes);

/* Find the entry of a key. Returns its content, which lies in `code`. NULL = `code` has no such
 * entry, or it is damaged (`*damaged`). */
const void *cox__code_find(const void *code, size_t bytes, const unsigned char key[32],
                           size_t *entry_bytes, bool *damaged);

/* Append an entry to a file. False: it was not written; errno says why. */
bool cox__code_append(FILE *file, const unsigned char key[32], const void *data, size_t bytes);

#endif
