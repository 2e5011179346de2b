/* What the parameters of a compiled kernel mean, by their names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_ARGUMENTS_H
#define BENCH_SUITE_ARGUMENTS_H

#include "bench/cl.h"
#include "problem.h"
#include "view.h"

enum suite_argument_kind {
    SUITE_BUFFER,
    SUITE_BUFFER_FIRST_ROW, /* NAME_first_row: 0, since kernels get whole buffers */
    SUITE_BUFFER_PITCH,     /* NAME_pitch */
    SUITE_LOCAL,
    SUITE_COLUMNS,
    SUITE_ROWS,
    SUITE_FIRST_ROW,
    SUITE_FRAME_ROWS,
    SUITE_CONSTANT, /* a field of the constants, or all of them */
};

struct suite_argument {
    enum suite_argument_kind kind;
    uint32_t access;      /* BUFFER and those that belong to one: index into suite_step.accesses */
    size_t offset, bytes; /* CONSTANT; LOCAL: `bytes` alone */
    size_t element_bytes; /* BUFFER; 0 = unknown */
};

struct suite_arguments {
    struct suite_argument at[COX_ARGUMENTS_MAX];
    uint32_t count;
};

/* Read a kernel's parameters, which were compiled with -cl-kernel-arg-info. Fills `step`'s accesses
 * too. False after a message. */
bool suite_arguments_read(cl_kernel kernel, const struct suite_problem *problem,
                          const struct cox_pass *pass, struct suite_arguments *arguments,
                          struct suite_step *step);

#endif
