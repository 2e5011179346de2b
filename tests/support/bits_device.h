/* The first OpenCL device, used by hand: for programs whose calls must all come from one thread. What fails ends the
 * program.
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

/* Exit status 77 if there is none. */
void bits_device_open(struct bits_device *device);
void bits_device_close(struct bits_device *device);

/* A stage's kernel; compiler messages go to standard error. */
cl_kernel bits_device_build(const struct bits_device *device, const struct cox__stage *stage,
                            const struct cox__variant *variant);

/* A global size: work-items of `item` each for `count`, in whole groups of `local`. */
size_t bits_global_size(uint32_t count, uint32_t item, uint32_t local);

#endif
