/* Shared by the OpenCL layers: memory, answers to queries, and properties of devices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_INFO_H
#define COX_TESTS_LAYER_INFO_H

#include <CL/cl_layer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed memory. Ends the program if there is not enough. */
static inline void *must_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory) {
        fputs("an OpenCL layer is out of memory\n", stderr);
        abort();
    }
    return memory;
}

/* Whether this is PoCL's device without threads. A command on it that waits for a user event deadlocks. Its name
 * begins with "basic" in PoCL 3.1 and with "cpu-minimal" in PoCL 6. */
static inline bool pocl_has_no_threads(const char *device_name)
{
    static const char old_name[] = "basic", new_name[] = "cpu-minimal";
    return strncmp(device_name, old_name, strlen(old_name)) == 0 ||
           strncmp(device_name, new_name, strlen(new_name)) == 0;
}

/* Answer a query with `data`. */
static inline cl_int layer_answer(const void *data, size_t size, size_t bytes, void *value, size_t *got)
{
    if (value && bytes < size)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, data, size);
    if (got)
        *got = size;
    return CL_SUCCESS;
}

/* clGetLayerInfo of a layer called `name`. */
static inline cl_int layer_info(const char *name, cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (info == CL_LAYER_API_VERSION)
        return layer_answer(&version, sizeof version, bytes, value, got);
    if (info == CL_LAYER_NAME)
        return layer_answer(name, strlen(name) + 1, bytes, value, got);
    return CL_INVALID_VALUE;
}

#endif
