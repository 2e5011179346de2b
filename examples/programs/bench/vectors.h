/* How much faster the vector variant of the picture kernel is than the scalar one on a CPU.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_VECTORS_H
#define BENCH_VECTORS_H

#include "common/quiet.h"

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stdint.h>

enum { BENCH_VECTORS_FORMATS = 4 };

struct bench_vectors {
    uint32_t width, height;
    struct bench_vectors_format {
        const char *name;
        double vector_ms, scalar_ms; /* of the best frame */
        double ratio;                /* scalar time over vector time */
    } formats[BENCH_VECTORS_FORMATS];
    double bar; /* for the lowest ratio */
    bool met;
};

/* Run up to 20 rounds of one frame of each variant and format on a CPU. Returns false after a
 * message. */
bool bench_vectors(cox_runtime *runtime, uint32_t device, uint32_t rounds, struct quiet *quiet,
                   struct bench_vectors *result);

#endif
