/* What the files that make up a unit share: cl_unit.c, cl_kernel.c, cl_lane.c, cl_band.c, cl_job.c. Included by those only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_CL_UNIT_H
#define COX_RUNTIME_CL_UNIT_H

#include "cl_internal.h"

enum { COX__CL_QUEUE_IN, COX__CL_QUEUE_COMPUTE, COX__CL_QUEUE_OUT, COX__CL_QUEUE_COUNT };
enum { COX__CL_PIECES_MAX = 8 };

/* What the events of a band are of. */
enum cox__cl_command { COX__CL_COPY_IN, COX__CL_KERNEL, COX__CL_COPY_OUT, COX__CL_CLEAR };

/* Carries one band at a time and owns all that the band needs, so that nothing is created per frame. */
struct cox__cl_lane {
    cl_mem mems[COX_BINDINGS_MAX];                       /* staged: the band; REDUCE: the partial */
    cl_mem pieces[COX_BINDINGS_MAX][COX__CL_PIECES_MAX]; /* staged, ROWS: sub-buffers of mems, one per piece */
    void *partials[COX_BINDINGS_MAX];                    /* REDUCE: where the partial is read to */
    struct cox__cl_object *objects[COX_BINDINGS_MAX];
    cl_event *events;
    unsigned char *kinds;
    uint32_t event_count;
    uint64_t submit_ns;
    bool failed;                       /* a command of the band under way has */
    struct cox__cl_callback *callback; /* of the band under way; NULL = none, or it goes without */
};

/* The last value of a kernel argument that is not a buffer: setting it again is not free. Buffers are always set, since a
 * new one may have the address of a released one. */
struct cox__cl_memo {
    size_t bytes;
    unsigned char value[COX_PARAMS_MAX];
};

struct cox__cl_stage {
    const struct cox_stage *stage;
    const struct cox_variant *variant;
    cl_program program;
    cl_kernel kernel;
    size_t local[2];
    struct cox__cl_memo *memos;
};

struct cox__unit {
    struct cox__cl_backend *backend;
    struct cox__cl_device *device;
    uint32_t device_index;
    const struct cox__pipeline *pipeline;
    cl_context context; /* the group's, or its own */
    bool own_context;
    bool staged;
    bool hangs;     /* it did not answer while it was made */
    bool abandoned; /* by the engine, or seized */
    uint32_t piece_rows;
    uint32_t lane_count;
    uint32_t event_max;
    cl_command_queue queues[COX__CL_QUEUE_COUNT];
    struct cox__cl_queue *shared; /* the one to compute, with the band objects; owns it */
    struct cox__cl_stage stages[COX_STAGES_MAX];
    struct cox__cl_lane *lanes;
};

/* Before a driver call in a job_* function or unit_flush; after it comes cox__cl_returned or cox__cl_lane_enqueued. */
static inline struct cox__guard_call cox__cl_call(const struct cox__unit *unit)
{
    return cox__guard_enter(unit->backend->post.guard);
}

static inline cox_status cox__cl_unit_check(const struct cox__unit *unit, cl_int code, const char *call)
{
    return cox__cl_check(unit->backend->log, code, call, unit->device->info.name);
}

/* ---- cl_kernel.c ---- */

/* Build the kernel of `made->stage`, and refuse one that does not fit it. Errors (logged): E_UNSUPPORTED, E_BUILD, E_INVALID, … */
cox_status cox__cl_stage_make(struct cox__unit *unit, struct cox__cl_stage *made);
void cox__cl_stage_clear(struct cox__cl_stage *stage); /* half-made is accepted, and zeros */

/* What a kernel launch is about: the whole band, or one piece of it. */
struct cox__cl_launch {
    const struct cox__job *job;
    struct cox__cl_lane *lane;
    uint32_t first_row;
    uint32_t rows;
    const cl_mem *mems;      /* per binding */
    const uint32_t *origins; /* per binding: buffer row at which its memory begins */
};

/* Enqueue every stage over the launch's rows; the first waits for `after` (may be NULL). */
cox_status cox__cl_stages_run(struct cox__unit *unit, const struct cox__cl_launch *launch, cl_event after);

/* ---- cl_lane.c ---- */

cox_status cox__cl_lane_make(struct cox__unit *unit, struct cox__cl_lane *lane);
void cox__cl_lane_clear(struct cox__cl_lane *lane); /* half-made is accepted, and zeros */

/* Device memory of all lanes, for bands of as many rows as there is room for: `*max_rows`. Errors (logged): E_DEVICE_MEMORY,
 * E_DEVICE_LOST with `unit->hangs` set. */
cox_status cox__cl_lanes_allocate(struct cox__unit *unit, uint32_t *max_rows);

/* The band is over, its commands have ended; or it is forgotten, and its events stay. */
void cox__cl_lane_end(const struct cox__unit *unit, struct cox__cl_lane *lane);
void cox__cl_lane_forget(struct cox__cl_lane *lane);

/* The call that enqueues a command has returned `code`: note the event of one that was enqueued. */
cox_status cox__cl_lane_enqueued(struct cox__unit *unit, struct cox__cl_lane *lane, enum cox__cl_command kind,
                                 const struct cox__guard_call *call, cl_int code, cl_event event, const char *name);

static inline cl_event cox__cl_lane_newest(const struct cox__cl_lane *lane)
{
    return lane->events[lane->event_count - 1];
}

/* ---- cl_band.c ---- */

/* Enqueue all that the band needs. On failure some commands may be enqueued: those whose events the lane has. */
cox_status cox__cl_band_enqueue(struct cox__unit *unit, struct cox__job *job, struct cox__cl_lane *lane);

#endif
