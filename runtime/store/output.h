/* A file that appears in its place when it is whole. Until then an existing file stays. Called by
 * cox_compile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STORE_OUTPUT_H
#define COX_STORE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct cox__output {
    FILE *file;      /* to write to */
    char *place;     /* the file that is replaced; NULL = a device or a pipe, written in place */
    char *temporary; /* the name until then: the place's with .tmp */
};

/* False with errno, and nothing is open. */
bool cox__output_open(struct cox__output *output, const char *path);

/* Close the file. With `keep`, put it in its place, or else remove it. False with errno if it is
 * not in its place. */
bool cox__output_close(struct cox__output *output, bool keep);

#endif
