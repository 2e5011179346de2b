/* How a program works the fault-injecting OpenCL layer (layer.c) from inside: see docs/reference/fault-layer.md. A
 * program that is only to suffer a plan needs none of this, but the environment. Needs _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_H
#define COX_TESTS_FAULT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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
};

/* Load the layer at `path`, or $COX_TEST_LAYER_DIR/layer_fault.so if it is NULL, and have the ICD loader load the same
 * one at its first call, which is still to come, behind the layers that OPENCL_LAYERS names already: those see a call
 * first. Says what is wrong on standard error and returns false if it cannot. */
static inline bool fault_open(struct fault *fault, const char *path)
{
    char from_dir[4096], layers[8192];
    const char *dir = getenv("COX_TEST_LAYER_DIR"), *others = getenv("OPENCL_LAYERS");
    if (!path && dir) {
        snprintf(from_dir, sizeof from_dir, "%s/layer_fault.so", dir);
        path = from_dir;
    }
    void *handle = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!handle) {
        fprintf(stderr, "cannot load the fault layer: %s\n", path ? dlerror() : "COX_TEST_LAYER_DIR is not set");
        return false;
    }
    *(void **)&fault->load = dlsym(handle, "cox_fault_load");
    *(void **)&fault->count = dlsym(handle, "cox_fault_count");
    *(void **)&fault->write = dlsym(handle, "cox_fault_write");
    if (!fault->load || !fault->count || !fault->write) {
        fprintf(stderr, "%s is not the fault layer\n", path);
        return false;
    }
    snprintf(layers, sizeof layers, "%s%s%s", path, others && *others ? ":" : "", others ? others : "");
    return setenv("OPENCL_LAYERS", layers, 1) == 0;
}

#endif
