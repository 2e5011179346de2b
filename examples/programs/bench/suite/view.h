/* A problem in the form that hand-written OpenCL needs. It says what each kernel reads and writes,
 * and where each buffer is. direct.c makes it from the description and the kernels' signatures.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_VIEW_H
#define BENCH_SUITE_VIEW_H

#include "problem.h"
#include "ranges.h"

enum { SUITE_STORES_MAX = SUITE_MEMORIES_MAX + COX_BUFFERS_MAX };

/* How one kernel uses one buffer. */
struct suite_access {
    uint32_t buffer; /* index into params.buffers */
    bool reads, writes, whole;
    uint32_t above, below; /* halo rows */
    uint32_t divisor;      /* pass rows per buffer row */
};

struct suite_step {
    const struct cox_pass *pass;
    bool absolute;
    uint32_t columns, rows;
    uint32_t row_multiple; /* bands begin at multiples of it */
    struct suite_access accesses[COX_BUFFERS_MAX];
    uint32_t access_count;
    uint32_t group_end; /* steps from the first of a fused group to here - 1 are the group */
};

/* Where the content of a buffer is. */
enum suite_place {
    SUITE_FRAME,   /* in a memory of the problem */
    SUITE_SCRATCH, /* in memory that all devices see */
    SUITE_PRIVATE, /* between fused passes: each device has its own */
};

struct suite_buffer {
    const struct cox_buffer_layout *layout;
    enum suite_place place;
    uint32_t ordinal; /* FRAME: index into problem.use; PRIVATE: a slot that others may share */
    size_t pitch_bytes;
    uint32_t border_above; /* rows of the border, before the row that belongs to pass row 0 */
    uint32_t rows;         /* with the border; 1 if it is merged */
    size_t bytes;
};

struct suite_view {
    const struct suite_problem *problem;
    struct suite_step steps[SUITE_PASSES_MAX];
    uint32_t step_count;
    struct suite_buffer buffers[COX_BUFFERS_MAX];
    uint32_t buffer_count;
    uint32_t store_count; /* the problem's memories, then shared scratch */
};

/* The store of a buffer in a frame: a memory of the problem or shared scratch. */
uint32_t suite_view_store(const struct suite_view *view, uint32_t frame, uint32_t buffer);

/* The buffer's rows that a kernel reads for rows `band` of its pass. */
struct suite_range suite_view_rows(const struct suite_view *view, const struct suite_access *access,
                                   struct suite_range band);

/* The buffer's rows that a kernel writes. */
struct suite_range suite_view_written(const struct suite_view *view,
                                      const struct suite_access *access, struct suite_range band);

/* The rows that each step of a fused group computes for rows `band` of its last step. `group` has
 * the group's first step. */
void suite_view_group(const struct suite_view *view, uint32_t group, struct suite_range band,
                      struct suite_range *rows);

#endif
