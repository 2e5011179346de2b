/* What the self-tests of the OpenCL layers share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_SELFTEST_H
#define COX_TESTS_LAYER_SELFTEST_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define NEED(what)                                                              \
    do {                                                                        \
        cl_int need_error = (what);                                             \
        if (need_error != CL_SUCCESS) {                                         \
            fprintf(stderr, "line %d: %s = %d\n", __LINE__, #what, need_error); \
            exit(2);                                                            \
        }                                                                       \
    } while (0)

/* The first device of the type. */
static inline bool find_device(cl_device_type type, cl_device_id *device)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint p = 0; p < count && p < 16; p++)
        if (clGetDeviceIDs(platforms[p], type, 1, device, NULL) == CL_SUCCESS)
            return true;
    return false;
}

#endif
