/* The first OpenCL device, used through plain OpenCL calls, for programs whose calls must all come from one thread.
 * Any failure ends the program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BITS_DEVICE_H
#define COX_TESTS_BITS_DEVICE_H

#include "specs.h"
#include "bits_frame.h"
#include <CL/cl.h>

struct bits_device {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
};

/* Exits with status 77 if there is no device. */
void bits_device_open(struct bits_device *device);
void bits_device_close(struct bits_device *device);

/* Builds the kernel of a stage. Compiler messages go to standard error. */
cl_kernel bits_device_build(const struct bits_device *device, const struct cox__stage *stage,
                            const struct cox__variant *variant);

/* The global size for `count` items if each work-item does `item` of them, in whole groups of `local`. */
size_t bits_global_size(uint32_t count, uint32_t item, uint32_t local);

#endif
