/* Builds the passes of a filter or an operator in a session's storage.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_FILTER_PLAN_H
#define COX_FILTER_PLAN_H

#include "specs.h"

enum {
    COX__PLAN_BINDINGS = COX_BUFFERS_MAX,
    COX__PLAN_PASSES = 5,
    COX__PLAN_STAGES = 8,
    COX__PLAN_USES = 10,
    COX__PLAN_ARGS = 16,
    COX__PLAN_OPTIONS = 640, /* bytes of a variant's build options */
    COX__PLAN_VECTOR = 16,   /* columns or lines in a value of the form for CPUs */
    COX__PLAN_GROUP = 128,   /* work-items in a group of the form for GPUs */
};

/* Contents of `struct cox__pipeline_storage`, also for the tone mappers. */
struct cox__plan {
    struct cox__binding bindings[COX__PLAN_BINDINGS];
    struct cox__pass_spec passes[COX__PLAN_PASSES];
    struct cox__pass_binding uses[COX__PLAN_PASSES][COX__PLAN_USES];
    struct cox__stage stages[COX__PLAN_STAGES];
    struct cox__variant variants[COX__PLAN_STAGES][2];
    struct cox__arg args[COX__PLAN_STAGES][COX__PLAN_ARGS];
    char options[COX__PLAN_STAGES][2][COX__PLAN_OPTIONS];
    uint32_t rows, binding_count, pass_count, stage_count;
};

/* One form of a stage's kernel. A size of 0 means 1. Groups of any size will do, unless the kernel
 * requires one. */
struct cox__form {
    int vector; /* COX_WIDTH */
    uint32_t local_columns, local_rows, item_columns, item_rows;
    const char *options; /* in addition to COX_WIDTH */
};

/* Copy the shape and check what all filters require; fill in `channels` and `group`. */
cox_status cox__plan_shape(struct cox_filter_shape *to, const struct cox_filter_shape *from);

/* Whether a plane's pitch is valid for rows of `row_bytes`. */
bool cox__plan_pitch_ok(size_t pitch_bytes, size_t row_bytes);

size_t cox__plan_sample_bytes(const struct cox_filter_shape *shape);

/* Bytes of a row of the input. */
size_t cox__plan_input_bytes(const struct cox_filter_shape *shape);

/* Elements of a row. */
static inline uint32_t cox__plan_columns(const struct cox_filter_shape *shape)
{
    return shape->width * shape->channels;
}

/* The pitch of a scratch plane. Rows begin at offsets at which a band can begin on any device. */
size_t cox__plan_scratch_pitch(size_t row_bytes);

/* Begin a plan in a storage of at least sizeof(struct cox__plan); NULL if an argument is NULL. */
struct cox__plan *cox__plan_begin(void *storage, const struct cox__session_spec *session,
                                  uint32_t rows);

/* Add a binding of `rows` rows (as WHOLE: pitch times rows bytes). Returns its index. */
uint32_t cox__plan_binding(struct cox__plan *plan, const char *name, enum cox__access access,
                           size_t pitch_bytes, uint32_t rows, bool scratch);

/* Set the bytes of the application's rows, which may be fewer than the pitch. */
void cox__plan_row_bytes(struct cox__plan *plan, uint32_t binding, size_t row_bytes);

/* Begin a pass over `rows` rows. */
void cox__plan_pass(struct cox__plan *plan, const char *name, uint32_t rows);

/* State how the pass uses a binding. If it writes the application's rows, it writes every element
 * of them. */
void cox__plan_use(struct cox__plan *plan, uint32_t binding, enum cox__row_access contract,
                   enum cox__access access, uint32_t halo_rows);

/* Set, for the last use, the rows of the pass per buffer row. */
void cox__plan_divide(struct cox__plan *plan, uint32_t row_divisor);

/* Add a stage to the pass. Its arguments: the buffer of each of `bindings`, the origin of each,
 * `params_bytes` of parameters from `params_offset`, the first row, the number of rows. */
void cox__plan_stage(struct cox__plan *plan, const char *kernel, const char *source,
                     uint32_t columns, const uint32_t *bindings, uint32_t binding_count,
                     size_t params_offset, size_t params_bytes, const struct cox__form *cpu,
                     const struct cox__form *gpu);

/* Add a stage whose arguments, variants and options the caller fills in. Returns its index, which
 * is also the index of those. */
uint32_t cox__plan_add_stage(struct cox__plan *plan, const char *kernel, uint32_t columns,
                             uint32_t arg_count);

/* Two steps. The first one writes the sums; the second one reads them, with `radius_y` rows above
 * and below its own. COX_FILTER_OVERLAP: both steps are one pass, and each band has its own sums.
 * Otherwise they are two passes, with an exchange between them. */
uint32_t cox__plan_sums(struct cox__plan *plan, const struct cox_filter_shape *shape,
                        const char *name, size_t pitch_bytes);
void cox__plan_first_step(struct cox__plan *plan, const struct cox_filter_shape *shape,
                          const char *both, const char *first);
void cox__plan_first_reads(struct cox__plan *plan, const struct cox_filter_shape *shape,
                           uint32_t binding);
void cox__plan_first_writes(struct cox__plan *plan, const struct cox_filter_shape *shape,
                            uint32_t sums);
void cox__plan_second_step(struct cox__plan *plan, const struct cox_filter_shape *shape,
                           const char *second, uint32_t sums);

/* Copy a filter's parameters to the public block; the rest of the block is 0. */
void cox__plan_params(struct cox_constants *to, const void *from, size_t bytes);

/* Point the session to the plan. */
void cox__plan_end(const struct cox__plan *plan, size_t params_bytes,
                   struct cox__session_spec *session);

#endif
