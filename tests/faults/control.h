/* Controls the fault-injecting OpenCL layer (layer.c) from inside a program: see docs/reference/fault-layer.md. A
 * program that only runs under a plan needs the environment variables instead. Needs _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_H
#define COX_TESTS_FAULT_H

#include "support/layer_open.h"

#include <stdint.h>

enum fault_count { FAULT_MATCHED, FAULT_CHOSEN, FAULT_STRUCK };

/* The functions that the layer exports. Any thread may call them at any time. */
struct fault {
    /* cox_fault_load: replace the current plan. Devices that have vanished are back. If the text is faulty, it
     * returns -1 and writes one line to `why`. */
    int (*load)(const char *text, char *why, size_t why_bytes);
    /* cox_fault_count: a count of one fault of the plan, numbered from 0: calls that match it, calls that it chose,
     * or faults that happened (enum fault_count). */
    uint64_t (*count)(unsigned line, int what);
    int (*write)(const char *path); /* cox_fault_write: the report; "-" = standard error; returns 0 or -1 */
    /* cox_fault_advance: advance the layer's clock by `ns`. The first call stops the clock. From then on only these
     * calls and calls that hang advance it; those that hang take no real time. Returns the time, after all late
     * commands due by then have ended. */
    uint64_t (*advance)(uint64_t ns);
};

/* Load the layer at `path`, or $COX_TEST_LAYER_DIR/layer_fault.so if it is NULL: see layer_open. */
static inline bool fault_open(struct fault *fault, const char *path)
{
    const struct layer_symbol symbols[] = {
        {"cox_fault_load", &fault->load},
        {"cox_fault_count", &fault->count},
        {"cox_fault_write", &fault->write},
        {"cox_fault_advance", &fault->advance},
    };
    return layer_open("layer_fault.so", path, symbols, sizeof symbols / sizeof *symbols);
}

#endif
