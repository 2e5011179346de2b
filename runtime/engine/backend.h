/* The backend interface: what the engine needs from devices. There are two implementations, OpenCL
 * (runtime/opencl/) and a scripted fake with a virtual clock (tests/support/fake_backend.c). The
 * engine never includes CL headers. A backend makes no decisions.
 *
 * Threads: application threads or a worker thread (host/worker.h) call device_*, mem_*,
 * instance_create and instance_destroy. These calls come one at a time per object, and may
 * overlap job_* of other instances. The thread that holds the engine lock
 * (engine/failure/watchdog.h) calls job_*, instance_flush and instance_abandon, so they run on
 * one thread at a time. Any thread calls now_ns.
 *
 * A device instance whose device hangs is abandoned: no thread waits for it from then on, and
 * memory that it may still touch is never freed.
 *
 * A driver call in a job_* function or in instance_flush may not return. The watchdog then
 * revokes the engine lock, and instance_isolate is called. Until the stuck thread returns, only
 * instance_abandon is called on the instance. When it returns, it touches only the queue slot's
 * events of the instance.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_BACKEND_H
#define COX_ENGINE_BACKEND_H

#include "engine/failure/watchdog.h"
#include "base/mpsc.h"
#include "base/spec.h"
#include <coxswain/session.h>

#include <stdio.h>

struct cox__backend;
struct cox__mem;      /* one host allocation, and the memory objects that devices have on it */
struct cox__instance; /* device instance: one device's part of one session */
struct cox__log;

/* The contract of a binding that a pass does not touch. */
#define COX__UNUSED ((enum cox__row_access)(COX__REDUCE + 1))

/* One pass over the frame, validated and copied. */
struct cox__pass {
    const char *name;
    uint32_t rows;
    uint32_t row_alignment; /* filled in by the engine from cox__pipeline_pass_row_alignment() */
    uint32_t binding_count;
    struct cox__binding bindings[COX_BUFFERS_MAX]; /* as the pass touches them; row_divisor >= 1 */
    uint32_t stage_count;
    /* 0-defaults resolved in the variants: item sizes >= 1; local sizes too, or both are 0 */
    struct cox__stage stages[COX_FUSED_MAX];
    /* per stage: rows that it computes above and below the band's */
    uint32_t extents[COX_FUSED_MAX];
    size_t partial_bytes;  /* of all REDUCE bindings */
    uint32_t written;      /* a bit for each binding that devices write in the frame's memory */
    uint32_t images;       /* a bit for each that a stage takes as an image */
    uint32_t only_images;  /* a bit for each of them that no stage takes as a buffer */
    uint32_t asks_origin;  /* a bit for each whose kernels can use memory of all rows */
    bool in_place;         /* some binding is read and written */
    bool absolute;         /* kernels get whole buffers, and count from the frame's first row */
    uint32_t device_count; /* devices of the runtime that do the pass; 0 = all of the session */
    uint32_t devices[COX_DEVICES_MAX];
    const char *policy; /* NULL = the session's */
    cox_pass_done_fn *done;
    void *done_user;
};

/* The work of a session on each frame. Immutable after creation; all device instances of the
 * session share it. */
struct cox__pipeline {
    uint32_t binding_count;
    /* access: of the whole frame, over all passes */
    struct cox__binding bindings[COX_BUFFERS_MAX];
    size_t bytes[COX_BUFFERS_MAX]; /* size of its memory; 0 = each band has its own memory */
    /* the image that stages take from it; NULL = none */
    const struct cox__arg *images[COX_BUFFERS_MAX];
    uint32_t pass_count;
    struct cox__pass passes[COX_PASSES_MAX];
    size_t params_bytes;
    size_t partial_bytes; /* of the pass with the most */
    bool profile;         /* staged devices: time all commands */
    bool watched;         /* the engine sees the end of a staged device's band without delay */
    uint32_t in_several;  /* bindings that more than one pass touches, a bit for each */
    bool overwrites;      /* a frame changes what it has read, so it cannot start over */
    /* Bindings of which a staged device may keep rows from pass to pass, a bit for each. They are
     * bindings by rows that several passes touch and no pass changes in place. */
    uint32_t resident;
    /* Those of them whose rows may stay from frame to frame, a bit for each. They have separate
     * device memory: `kept_count` pieces, of kept_bytes each. */
    uint32_t stays;
    uint32_t kept_count;
    size_t kept_bytes[COX_BUFFERS_MAX];
    /* The session's frame slots, in_flight + 1. A device that keeps rows has memory of each
     * resident binding for each of them. */
    uint32_t sets;

    /* A device has logged a mistake in a kernel's signature or group, which is the same on all
     * devices. Owned; set by any thread that makes an instance. */
    atomic_bool *mistake_told;
};

/* The smallest step between band offsets that suits the device's alignment, its variants and the
 * chroma subsampling. If it equals the pass's rows, the pass cannot be split. */
uint32_t cox__pipeline_pass_row_alignment(const struct cox__pass *pass, uint32_t device,
                                          const struct cox_device_info *info);

/* The variant of a stage for the runtime's device `device` of that type, or NULL. */
const struct cox__variant *cox__pipeline_stage_variant(const struct cox__stage *stage,
                                                       uint32_t device, enum cox_device_type type);

/* Buffer rows of a ROWS or HALO binding that a band touches: [*first, *first + *count). They count
 * from the first row of the border. For HALO the first row is rounded down to the row alignment. */
void cox__pipeline_binding_rows(const struct cox__pass *pass, uint32_t binding, uint32_t first_row,
                                uint32_t rows, uint32_t *first, uint32_t *count);

/* The same, but all rows if a band reads all of them (cox__binding.reads_all). */
void cox__pipeline_read_rows(const struct cox__pass *pass, uint32_t binding, uint32_t first_row,
                             uint32_t rows, uint32_t *first, uint32_t *count);

/* The engine's part of an allocation (memory.c); zero at first. */
struct cox__mem_link {
    struct cox__mem *next;
    cox_released_fn *released; /* called when the memory is destroyed; NULL = nothing */
    void *user;
};

/* Buffer rows of a binding. */
struct cox__job_range {
    uint32_t binding;
    uint32_t first;
    uint32_t count;
};
enum { COX__JOB_RANGES_MAX = 2 * COX_BANDS_MAX, COX__JOB_BACK_MAX = 16 };

enum cox__job_state { COX__JOB_RUNNING = 0, COX__JOB_DONE = 1, COX__JOB_FAILED = 2 };

enum cox__job_kind {
    COX__JOB_BAND,    /* runs the kernels of a pass */
    COX__JOB_FETCH,   /* copies ranges[0] from the device's memory to the host's */
    COX__JOB_PUSH,    /* copies ranges[0] from the host's memory to the device's */
    COX__JOB_ACQUIRE, /* the library may use the memory of ranges[0].binding from now on */
    COX__JOB_RELEASE, /* it gives the memory back */
};

/* Memory that lies on a device: the application's (cox_opencl_buffer). */
struct cox__mem_home {
    uint32_t device; /* of the runtime */
    bool acquired;   /* a frame acquires the memory first, and releases it last */
};

/* One band under way on a device. The engine owns it, and keeps it alive and in place until the
 * backend has posted it and job_poll has returned DONE or FAILED. */
struct cox__job {
    /* The backend posts each submitted job at least once when it ends. If the driver has no
     * callbacks, only job_poll reports the end. */
    struct cox__mpsc_node node;
    void *session; /* the engine's */
    void *frame;   /* the engine's */
    uint32_t band; /* the engine's: index of the band in the frame */
    uint32_t slot; /* index of the queue slot of the instance that the band occupies */
    uint32_t pass; /* of the pipeline */

    struct cox__instance *instance;
    uint32_t first_row;
    uint32_t rows;
    struct cox__mem *const *mems; /* per binding; valid until the job has ended, like `params` */
    const void *params;
    bool alone;  /* no other band is under way on the instance, so only its own parts overlap */
    bool polled; /* the engine polls it closely and needs no post */
    /* Most pieces to cut the band into if it is alone, so that its copies and kernels overlap. The
     * backend lowers it to the number that it takes. */
    uint32_t pieces;
    enum cox__job_kind kind;

    /* On an instance that keeps rows (instance_resident): */
    /* bindings for which the job uses the instance's memory of the frame, a bit for each; 0 =
     * none */
    uint32_t resident;
    uint32_t set; /* the number of that memory */
    /* of `resident` bindings that stay: the piece of the pipeline's kept memory */
    unsigned char kept[COX_BUFFERS_MAX];
    /* `resident` bindings whose buffer lies on the device, a bit for each: the job uses the
     * buffer's memory there. On any device, not only on one that keeps rows. */
    uint32_t homed;
    /* `resident` bindings of which the device's memory has the job's rows already, a bit for each:
     * rows that a kernel leaves alone show nothing else */
    uint32_t own_rows;
    /* rows of `resident` bindings to copy in before the kernels; for a transfer: see `kind` */
    uint32_t range_count;
    struct cox__job_range ranges[COX__JOB_RANGES_MAX];
    /* `resident` bindings of which all rows that the kernels write are copied out, a bit for
     * each */
    uint32_t out;
    uint32_t back_count; /* written rows of the other `resident` bindings that are copied out */
    struct cox__job_range back[COX__JOB_BACK_MAX];

    /* Filled in by the backend. */
    bool unfinished; /* job_continue must enqueue more before the job can end */
    /* job_poll returns RUNNING, but one command of the job has failed; others may still run */
    bool failing;
    /* When the job ended, on the backend's clock: converted from the device's clock, or observed by
     * the host. Set before job_poll returns DONE. */
    _Atomic uint64_t end_ns;
    /* accuracy of a device's end_ns; UINT64_MAX = end_ns is from the host */
    uint64_t clock_error_ns;
    uint64_t kernel_ns; /* profile sums; 0 = absent or implausible */
    uint64_t copy_in_ns;
    uint64_t copy_out_ns;
};

/* Memory of one binding for a trial. */
struct cox__trial_memory {
    unsigned char *data; /* its content before the kernels, then after; NULL = none */
    size_t bytes;
    size_t start;    /* where the kernels' pointer, or the image, begins */
    size_t span;     /* bytes from there that the kernels are given */
    uint32_t origin; /* the buffer row at `start` */
};

/* One band of a pass that runs alone on separate memory. Check mode (check/check.h) then looks at
 * every byte of the memory, also at bytes outside of what the kernels get. */
struct cox__trial {
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
    const void *params;
    uint32_t taint; /* local memory holds other values for each number */
    /* Launch one more work-group in each dimension whose work-items do not fill the last one. */
    bool wider;
    /* Launch work-groups from the last to the first, unless a kernel asks for its group. */
    bool backwards;
    struct cox__trial_memory memories[COX_BUFFERS_MAX];
};

/* How a backend posts finished jobs to the loop; it gets this at creation. Posting is safe from any
 * thread and does not block. Every post arrives, except that a job that is posted twice before it
 * is taken arrives once. */
struct cox__post {
    void (*post)(void *ctx, struct cox__job *job);
    void *ctx;
    /* supervises the driver calls in job_submit, job_continue, instance_flush and job_poll */
    struct cox__watchdog *watchdog;
};

/* Called when a destroyed instance touches no memory any more. Must not block. Any thread. */
typedef void cox__ended_fn(void *ctx);

struct cox__backend_ops {
    void (*destroy)(struct cox__backend *backend);
    uint32_t (*device_count)(struct cox__backend *backend);
    void (*device_info)(struct cox__backend *backend, uint32_t index, struct cox_device_info *info);

    /* Whether a driver allows calls from only one thread at a time. NULL = no driver does. */
    bool (*one_thread)(const struct cox__backend *backend);

    /* Why the device does not take code compiled ahead of time (cox_pass.code). NULL = it does.
     * The operation is NULL if no device takes any. */
    const char *(*code_refusal)(struct cox__backend *backend, uint32_t device, const void *code,
                                size_t bytes);
    /* Compile a kernel for the device and keep it in the cache. Append the binary to `file`, if it
     * is not NULL. NULL = nothing to compile. */
    cox_status (*compile)(struct cox__backend *backend, uint32_t device,
                          const struct cox__variant *kernel, FILE *file);

    /* `host`: memory to use; NULL = allocate. */
    cox_status (*mem_create)(struct cox__backend *backend, void *host, size_t bytes,
                             struct cox__mem **out);
    /* Does not wait for abandoned instances. False: a device hangs and may still touch the memory,
     * so the memory is leaked. */
    bool (*mem_destroy)(struct cox__backend *backend, struct cox__mem *mem);
    /* Destroy the object but leak its memory, because an abandoned instance may still write to
     * it. */
    void (*mem_abandon)(struct cox__backend *backend, struct cox__mem *mem);
    struct cox__mem_link *(*mem_link)(struct cox__mem *mem);
    /* NULL = the memory lies on a device and has no copy on the host yet. */
    void *(*mem_data)(struct cox__mem *mem);
    size_t (*mem_bytes)(const struct cox__mem *mem);
    /* Whether the memory lies on a device. *home is set if it does. */
    bool (*mem_home)(const struct cox__mem *mem, struct cox__mem_home *home);
    /* Allocate host memory for rows that other devices use, unless memory that lies on a device has
     * some. May block. Any thread that holds a reference, one at a time. */
    cox_status (*mem_add_host)(struct cox__backend *backend, struct cox__mem *mem);

    /* Build the pipeline on a device. On an error (COX_E_BUILD, COX_E_DEVICE_MEMORY and others)
     * the device cannot take part. The passes' row alignments are final by now.
     *
     * `slots` is the number of bands that can be under way at once. With `fresh` this instance
     * alone uses a new context, because the device was lost on its old one. The result
     * max_rows[COX_PASSES_MAX] is the most rows in one band of each pass. */
    cox_status (*instance_create)(struct cox__backend *backend, uint32_t device,
                                  const struct cox__pipeline *pipeline, uint32_t slots, bool fresh,
                                  struct cox__instance **out, uint32_t *max_rows);
    /* The bindings of which the instance keeps rows: all of pipeline->resident, or none. */
    uint32_t (*instance_resident)(struct cox__backend *backend,
                                  const struct cox__instance *instance);
    /* Whether the instance can use memory that lies on its device: both are in one context. */
    bool (*instance_reaches)(struct cox__backend *backend, const struct cox__instance *instance,
                             const struct cox__mem *mem);
    /* Whether a stage's kernel takes its argument `arg` as a pointer to global memory without
     * const. Returns the argument's name, or "" if the name is unknown; it lives as long as the
     * instance. Returns NULL if the pointer is const or the driver does not know. */
    const char *(*instance_may_write)(struct cox__backend *backend,
                                      const struct cox__instance *instance, uint32_t pass,
                                      uint32_t stage, uint32_t arg);
    /* No job may be under way, unless the instance was abandoned. In that case the call blocks
     * for as long as the driver does. */
    void (*instance_destroy)(struct cox__backend *backend, struct cox__instance *instance,
                             cox__ended_fn *ended, void *ctx);
    /* A driver call of the instance hangs: from now on no other thread may wait for its device.
     * Called while the driver call is still running. */
    void (*instance_isolate)(struct cox__backend *backend, struct cox__instance *instance);
    /* Forget the jobs under way: do not poll or post them any more. Never blocks. Only
     * instance_destroy may follow. */
    void (*instance_abandon)(struct cox__backend *backend, struct cox__instance *instance);

    /* Enqueue a band or its first part without a flush, and never block. The first part is small:
     * what the device needs to begin. On an error no command of the job has run, and the job is not
     * posted. If only some commands could be enqueued, the call succeeds and the job fails. */
    cox_status (*job_submit)(struct cox__backend *backend, struct cox__job *job);
    /* Enqueue the next part of an `unfinished` job, without a flush. On an error the job fails.
     * NULL = jobs have one part. */
    void (*job_continue)(struct cox__backend *backend, struct cox__job *job);
    void (*instance_flush)(struct cox__backend *backend, struct cox__instance *instance);
    /* Ask the device for the state of a submitted job. If it is DONE, the profile is filled in.
     * After DONE or FAILED the queue slot is free, and no command writes the band's rows any
     * more. A job with a failed command and others that have not ended is RUNNING and `failing`. */
    enum cox__job_state (*job_poll)(struct cox__backend *backend, struct cox__job *job);
    /* The job's partial result of a REDUCE binding, valid until the queue slot is used again. */
    const void *(*job_partial)(struct cox__backend *backend, struct cox__job *job,
                               uint32_t binding);

    /* Run a trial on an instance without jobs. Blocks. With COX_E_DEVICE_LOST the device hangs and
     * may still write to the trial's memory: leak that memory and the instance. NULL = the backend
     * cannot. */
    cox_status (*trial_run)(struct cox__backend *backend, struct cox__instance *instance,
                            const struct cox__trial *trial);

    uint64_t (*now_ns)(struct cox__backend *backend);
    /* Advance a virtual clock; NULL on a real clock. The engine calls it when it has nothing to do
     * before `deadline_ns` (UINT64_MAX = none). The clock goes to the next completion, which is
     * posted, or to the deadline, whichever is first. Returns false if nothing will ever happen. */
    bool (*advance)(struct cox__backend *backend, uint64_t deadline_ns);
};

struct cox__backend {
    const struct cox__backend_ops *ops;
};

/* Create a runtime over the caller's backend. Tests use it to run the engine on the fake. `make` is
 * called when the loop exists, and the runtime owns the backend. */
typedef cox_status cox__backend_make_fn(void *user, struct cox__post post, struct cox__log *log,
                                        struct cox__backend **out);
cox_status cox__runtime_create_with(cox_runtime **out, const struct cox_runtime_params *params,
                                    cox__backend_make_fn *make, void *user);

#endif
