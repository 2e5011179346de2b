/* What the driver reports about the arguments of a program's kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_ARGUMENT_LIST_H
#define COX_OPENCL_ARGUMENT_LIST_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of an argument: one character of the list. */
enum cox__cl_argument_kind {
    COX__CL_ARGUMENT_GLOBAL = 'g',   /* a pointer */
    COX__CL_ARGUMENT_CONSTANT = 'c', /* a pointer */
    COX__CL_ARGUMENT_LOCAL = 'l',    /* a pointer */
    COX__CL_ARGUMENT_IMAGE = 'i',
    COX__CL_ARGUMENT_VALUE = 'v',
    COX__CL_ARGUMENT_OPAQUE = 'o', /* a sampler, a pipe, an event, a queue */
};

struct cox__cl_argument {
    char kind;
    char access;      /* of an image or a pipe: r, w, or b for both; else - */
    bool is_const;    /* of a pointer: what it points to */
    const char *name; /* points into the list; "" = not reported */
    char type[64];    /* a pointer's ends with a star; "" = not reported, or longer */
};

/* List the kernel arguments of a program made from source. Returns a malloc'd list of `*bytes`
 * bytes that the caller frees, or NULL if out of memory. */
char *cox__cl_argument_list(cl_program program, size_t *bytes);

/* The length of the list at the start of a block of memory; 0 if the list does not end in it. */
size_t cox__cl_argument_list_bytes(const char *data, size_t bytes);

/* Find an argument of a kernel. False: the driver has not reported it. */
bool cox__cl_argument_list_find(const char *list, const char *kernel, uint32_t index,
                                struct cox__cl_argument *out);

#endif
