/* How a program works the fault-injecting OpenCL layer (layer.c) from inside: see docs/reference/fault-layer.md. A
 * program that is only to suffer a plan needs none of this, but the environment. Needs _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_H
#define COX_TESTS_FAULT_H

#include "support/layer_open.h"

#include <stdint.h>

enum fault_count { FAULT_MATCHED, FAULT_CHOSEN, FAULT_STRUCK };

/* What the layer exports. Any thread may call them at any time. */
struct fault {
    /* cox_fault_load: put a plan in force in the place of the one before, with devices that vanished back. -1, and why
     * in one line, if there is something wrong with the text. */
    int (*load)(const char *text, char *why, size_t why_bytes);
    /* cox_fault_count: of the plan's faults, counted from 0: calls that one is about, those that it picked, faults that
     * have happened (enum fault_count). */
    uint64_t (*count)(unsigned line, int what);
    int (*write)(const char *path); /* cox_fault_write: the report; "-" = standard error; 0 or -1 */
    /* cox_fault_advance: the layer's clock stands still from the first call on, and goes on by so many ns with each. A
     * call that hangs moves it too, and takes no time. Returns what the clock says, once late commands whose time has
     * come have ended. */
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
