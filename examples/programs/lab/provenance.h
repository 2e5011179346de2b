/* What identifies the code that measured: hashes of the files that this process runs.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_PROVENANCE_H
#define COX_EXAMPLES_LAB_PROVENANCE_H

#include "common/sha256.h"

struct lab_provenance {
    char program[SHA256_TEXT_BYTES]; /* "" = cannot be read, as below */
    char library[SHA256_TEXT_BYTES]; /* the program's, if the library is a part of it */
};

/* Reads both files, some MB. */
void lab_provenance_read(struct lab_provenance *out);

#endif
