/* Puts an OpenCL layer in front of the drivers and gets the functions that it exports. Needs _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_OPEN_H
#define COX_TESTS_LAYER_OPEN_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A function of the layer, and the pointer to set to it. */
struct layer_symbol {
    const char *name;
    void *place;
};

/* Load the layer at `path`, or `file` of $COX_TEST_LAYER_DIR if `path` is NULL. Call this before the first OpenCL
 * call, at which the ICD loader loads the same layer. Layers that OPENCL_LAYERS names already see a call first. On
 * failure it prints the reason to standard error and returns false. */
static inline bool layer_open(const char *file, const char *path, const struct layer_symbol *symbols, size_t count)
{
    char from_dir[4096], layers[8192];
    const char *dir = getenv("COX_TEST_LAYER_DIR"), *others = getenv("OPENCL_LAYERS");
    if (!path && dir) {
        snprintf(from_dir, sizeof from_dir, "%s/%s", dir, file);
        path = from_dir;
    }

    void *handle = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!handle) {
        fprintf(stderr, "cannot load %s: %s\n", file, path ? dlerror() : "COX_TEST_LAYER_DIR is not set");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol) {
            fprintf(stderr, "%s is not %s\n", path, file);
            return false;
        }
        *(void **)symbols[i].place = symbol;
    }

    snprintf(layers, sizeof layers, "%s%s%s", path, others && *others ? ":" : "", others ? others : "");
    return setenv("OPENCL_LAYERS", layers, 1) == 0;
}

#endif
