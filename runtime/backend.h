/* What the session engine needs from devices. Two implementations: OpenCL (cl_*.c) and a scripted fake with a virtual
 * clock (tests/fake_backend.c). The engine never includes CL headers; a backend never decides.
 *
 * Threads: device_*, mem_* and unit_create/unit_destroy run on application threads or on a background thread (warden.h),
 * one at a time per object, beside job_* of other units. job_*, unit_flush and unit_abandon run on one thread at a time: the
 * scheduler thread, or one inside cox_session_run. now_ns runs on any thread.
 *
 * A unit whose device hangs is abandoned: nothing waits for it from then on, and what it may still touch is never freed.
 * From a driver call in a job_* function or unit_flush a thread may not come back (guard.h). The unit is seized then; until the
 * thread is back only unit_abandon is called on it, and the thread touches nothing any more but the lane's events.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_BACKEND_H
#define COX_RUNTIME_BACKEND_H

#include "guard.h"
#include "mpsc.h"
#include <coxswain/session.h>

struct cox__backend;
struct cox__mem;  /* one host allocation and what devices made of it */
struct cox__unit; /* one device's part of one session */
struct cox__log;

/* A session's pipeline, validated and copied; immutable after creation, shared by all units of the session. */
struct cox__pipeline {
    uint32_t rows;
    uint32_t granule; /* filled in by the engine from unit_granule() */
    uint32_t binding_count;
    struct cox_binding bindings[COX_BINDINGS_MAX]; /* row_divisor >= 1 */
    uint32_t stage_count;
    struct cox_stage stages[COX_STAGES_MAX]; /* 0-defaults resolved in the variants: local and item sizes >= 1 */
    size_t params_bytes;
    bool in_place; /* some binding is read and written */
};

/* Least number of frame rows such that every band offset suits the device's alignment, its variants and the chroma
 * subsampling. At most the frame's rows: then the frame cannot be split. */
uint32_t cox__pipeline_granule(const struct cox__pipeline *pipeline, uint32_t device,
                               const struct cox_device_info *info);

/* The variant of a stage for the runtime's device `device` of that type, or NULL. */
const struct cox_variant *cox__stage_variant(const struct cox_stage *stage, uint32_t device, enum cox_device_type type);

/* Buffer rows of a ROWS or HALO binding that a band touches: [*first, *first + *count). For HALO the first row is
 * rounded down to the granule. */
void cox__binding_rows(const struct cox__pipeline *pipeline, uint32_t binding, uint32_t first_row, uint32_t rows,
                       uint32_t *first, uint32_t *count);

enum cox__job_state { COX__JOB_RUNNING = 0, COX__JOB_DONE = 1, COX__JOB_FAILED = 2 };

/* One band on one device, under way. Owned by the engine, which keeps it alive and unmoved until the backend has
 * posted it and job_poll has said DONE or FAILED. */
struct cox__job {
    struct cox__mpsc_node node; /* for the post; the backend posts each submitted job at least once when it ends,
                                   or job_poll tells without a post (drivers that call nothing back) */
    void *session;              /* the engine's */
    void *slot;                 /* the engine's: the frame */
    uint32_t band;              /* the engine's: index of the band in the frame */
    uint32_t lane;              /* which of the unit's lanes it occupies */

    struct cox__unit *unit;
    uint32_t first_row;
    uint32_t rows;
    struct cox__mem *const *mems; /* per binding; like params valid until the job has ended */
    const void *params;
    bool preserve; /* outputs go to the device as well: bytes that no kernel writes stay what they were */

    /* Filled in by the backend. */
    bool failing;            /* job_poll says RUNNING, but a command of the job has failed; others may still run */
    _Atomic uint64_t end_ns; /* when the completion was observed, on the backend's clock; set by the time
                                that job_poll says DONE */
    uint64_t kernel_ns;      /* profile sums; 0 = absent or implausible */
    uint64_t copy_in_ns;
    uint64_t copy_out_ns;
};

/* Given to a backend at creation: how to post a finished job to the loop. Safe from any thread, does not block,
 * coalesces nothing: every post arrives. Posting a job twice before it was taken is allowed and arrives once. */
struct cox__post {
    void (*post)(void *ctx, struct cox__job *job);
    void *ctx;
    struct cox__guard *guard; /* for driver calls in job_submit, unit_flush and job_poll */
};

struct cox__backend_ops {
    void (*destroy)(struct cox__backend *backend);
    uint32_t (*device_count)(struct cox__backend *backend);
    void (*device_info)(struct cox__backend *backend, uint32_t index, struct cox_device_info *info);

    /* host = NULL: allocate. */
    cox_status (*mem_create)(struct cox__backend *backend, void *host, size_t bytes, struct cox__mem **out);
    /* Waits for no abandoned unit. */
    void (*mem_destroy)(struct cox__backend *backend, struct cox__mem *mem);
    /* The same where an abandoned unit may still write to it: the memory is given up, not freed. */
    void (*mem_abandon)(struct cox__backend *backend, struct cox__mem *mem);
    void *(*mem_data)(struct cox__mem *mem);
    void (*mem_info)(struct cox__mem *mem, struct cox_buffer_info *info);

    /* Build the pipeline on a device, with `lanes` bands under way at once. COX_E_BUILD, COX_E_DEVICE_MEMORY, … mean
     * that the device cannot take part. `*max_rows` = most rows in one band. pipeline->granule is final. `fresh`: on a
     * context of the unit's own, made now, since the device was lost on the one it had. */
    cox_status (*unit_create)(struct cox__backend *backend, uint32_t device, const struct cox__pipeline *pipeline,
                              uint32_t lanes, bool fresh, struct cox__unit **out, uint32_t *max_rows);
    /* No job may be under way, unless the unit was abandoned; then it may block for as long as the driver pleases. */
    void (*unit_destroy)(struct cox__backend *backend, struct cox__unit *unit);
    /* A driver call about the unit does not return: other threads shall not wait for its device. While that call is going on. */
    void (*unit_seize)(struct cox__backend *backend, struct cox__unit *unit);
    /* Forget the jobs under way: they are neither polled nor posted any more. Never blocks. Only unit_destroy may follow. */
    void (*unit_abandon)(struct cox__backend *backend, struct cox__unit *unit);

    /* Enqueue all commands of a band; flush nothing; block never. On an error nothing of the job was run or is reported
     * later; a band that could be enqueued only in part is a job that fails. */
    cox_status (*job_submit)(struct cox__backend *backend, struct cox__job *job);
    void (*unit_flush)(struct cox__backend *backend, struct cox__unit *unit);
    /* State of a submitted job, by asking the device. Fills in the profile when DONE. After DONE or FAILED the lane is
     * free and nothing writes the band's rows any more: a job of which some commands failed and others have not ended is
     * RUNNING, and `failing`. */
    enum cox__job_state (*job_poll)(struct cox__backend *backend, struct cox__job *job);
    /* The job's partial of a REDUCE binding, valid until the lane is used again. */
    const void *(*job_partial)(struct cox__backend *backend, struct cox__job *job, uint32_t binding);

    uint64_t (*now_ns)(struct cox__backend *backend);
    /* NULL on a real clock. With a virtual clock: called when the engine has nothing left to do before `deadline_ns`
     * (UINT64_MAX = none); advances the clock to the next completion (and posts it) or to the deadline, whichever
     * is first; returns false if nothing will ever happen. */
    bool (*advance)(struct cox__backend *backend, uint64_t deadline_ns);
};

struct cox__backend {
    const struct cox__backend_ops *ops;
};

/* A runtime over a backend of the caller's making: how tests run the engine on the fake. `make` is called once the loop
 * exists. Takes ownership of the backend. */
typedef cox_status cox__backend_make_fn(void *user, struct cox__post post, struct cox__log *log,
                                        struct cox__backend **out);
cox_status cox__runtime_create_with(cox_runtime **out, const struct cox_runtime_params *params,
                                    cox__backend_make_fn *make, void *user);

#endif
