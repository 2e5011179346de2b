/* How a program puts an OpenCL layer in front of the drivers, and takes what it exports. Needs _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_OPEN_H
#define COX_TESTS_LAYER_OPEN_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A function of the layer, and the pointer to it that is to be set. */
struct layer_symbol {
    const char *name;
    void *place;
};

/* Load the layer at `path`, or that file of $COX_TEST_LAYER_DIR if it is NULL, and have the ICD loader load the same
 * one at its first call, which is still to come, behind the layers that OPENCL_LAYERS names already: those see a call
 * first. Says what is wrong on standard error and returns false if it cannot. */
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
