/* A device instance: one device's part of one session. The parts that instance.c, slot.c, stage.c,
 * arguments.c, work_group.c, band.c, image.c, device_memory.c, device_buffer.c, frame_set.c,
 * trial.c, taint.c and job.c share. Only these files, cl.c and interop.c include it.
 *
 * An instance is made and destroyed on application threads and worker threads. While bands are
 * under way it is used with the engine lock held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_INSTANCE_PARTS_H
#define COX_OPENCL_INSTANCE_PARTS_H

#include "callback.h"
#include "internal.h"
#include "mem.h"
#include "pieces.h"

enum { COX__CL_QUEUE_IN, COX__CL_QUEUE_COMPUTE, COX__CL_QUEUE_OUT, COX__CL_QUEUE_COUNT };

/* The kind of command that an event of a band belongs to. */
enum cox__cl_command { COX__CL_COPY_IN, COX__CL_KERNEL, COX__CL_COPY_OUT, COX__CL_CLEAR };

/* The image of a binding's rows for kernels. */
struct cox__cl_image {
    cl_mem mem; /* NULL = none */
    uint32_t rows;
};

/* A staged band while it is enqueued, part by part: the copies in of a piece, its first kernel, its
 * other kernels and copies out. */
struct cox__cl_staging {
    cl_mem mems[COX_BUFFERS_MAX];           /* of the current piece, for the kernels */
    uint32_t origins[COX_BUFFERS_MAX];      /* the buffer rows at which they begin */
    uint32_t band_origins[COX_BUFFERS_MAX]; /* of the band: where the slot's memory begins */
    uint32_t band_firsts[COX_BUFFERS_MAX];  /* the first buffer row that the band touches */
    uint32_t band_counts[COX_BUFFERS_MAX];  /* buffer rows that the band touches */
    /* Bindings whose buffer lies on the device, but whose kernels cannot use it in place, a bit for
     * each: their rows are copied to the slot's memory and back, on the device. */
    uint32_t indirect;
    uint32_t piece_rows;
    bool cut;     /* into several pieces */
    bool in_line; /* the compute queue also does the copies */

    uint32_t brought;   /* pieces whose copies in are enqueued */
    cl_event copied[2]; /* their newest copies in, by number % 2; NULL = none */
    uint32_t piece;     /* whose kernels come next */
    uint32_t stage;     /* of that piece: the next to be enqueued */
    bool complete;      /* all parts are enqueued */
};

/* A queue slot: carries one band at a time and owns all that the band needs, so that nothing is
 * created per frame. */
struct cox__cl_slot {
    /* staged: the band; REDUCE: the partial; a band's own binding; mapped: what is copied */
    cl_mem mems[COX_BUFFERS_MAX];
    /* staged, ROWS in a single pass: sub-buffers of mems */
    cl_mem pieces[COX_BUFFERS_MAX][COX__CL_PIECES_MAX];
    void *partials[COX_BUFFERS_MAX]; /* REDUCE: the host's copy of the partial */
    struct cox__cl_image images[COX_BUFFERS_MAX];
    /* borrowed for the band under way; NULL = none */
    struct cox__cl_object *objects[COX_BUFFERS_MAX];
    cl_event *events;     /* of the band's commands, in the order enqueued */
    unsigned char *kinds; /* parallel to events: enum cox__cl_command */
    uint32_t event_count;
    uint64_t submit_ns;
    uint64_t enqueued_ns[2]; /* when the calls that enqueued the last two commands had returned */
    uint64_t looked_ns;      /* when the states of all commands were last checked */
    /* start of the last poll that found the newest command running; 0 = no poll did */
    uint64_t running_ns;
    bool failed; /* a command of the band under way has failed */
    struct cox__cl_staging staging;
    /* of the band under way; NULL = no band, or a band without one */
    struct cox__cl_callback *callback;
};

/* Staged: device memory for the resident bindings (engine/backend.h) of one whole frame. A kernel
 * gets all of it, from origin 0: no band needs a sub-buffer. */
struct cox__cl_set {
    cl_mem mems[COX_BUFFERS_MAX];
};

/* The last value of a kernel argument: to set it again costs time. */
struct cox__cl_memo {
    size_t bytes; /* 0 = unknown */
    unsigned char value[COX_CONSTANTS_BYTES_MAX];
};

struct cox__cl_kernel {
    cl_kernel id;
    struct cox__cl_memo *memos; /* one for each argument */
};

/* Staged mode has a kernel for each queue slot: a slot's memory stays the same, so few arguments
 * change from frame to frame. */
struct cox__cl_stage {
    const struct cox__stage *stage;
    const struct cox__variant *variant;
    struct cox__cl_program *program; /* NULL = none */
    size_t local[2];                 /* by dimension; in one dimension the second is 1 */
    /* The last group in each dimension has fewer work-items, so that nothing is padded. */
    bool partial_groups;
    uint32_t kernel_count;
    struct cox__cl_kernel *kernels;
};

struct cox__instance {
    struct cox__cl_backend *backend;
    struct cox__cl_device *device;
    uint32_t device_index;
    const struct cox__pipeline *pipeline;
    uint32_t pass_count;
    cl_context context; /* the group's, or its own */
    bool own_context;
    bool staged;
    bool hangs;              /* the device did not answer while the instance was made */
    bool abandoned;          /* or isolated */
    uint32_t constants;      /* a bit for each binding that a kernel takes in constant memory */
    uint64_t constant_bytes; /* the device's limit of one; 0 = unknown */
    struct cox__cl_pieces pieces[COX_PASSES_MAX];
    uint32_t slot_count;
    uint32_t event_max;
    cl_command_queue queues[COX__CL_QUEUE_COUNT];
    uint32_t unflushed;           /* queues with new commands, a bit for each */
    struct cox__cl_queue *shared; /* owns the compute queue, together with the band objects */
    struct cox__cl_stage stages[COX_PASSES_MAX][COX_FUSED_MAX];
    struct cox__cl_slot *slots;
    uint32_t resident; /* the pipeline's, or 0 */
    uint32_t set_count;
    struct cox__cl_set *sets;
    cl_mem kept[COX_BUFFERS_MAX]; /* for buffers that stay from frame to frame */
};

/* Whether the job's device keeps rows of the binding. */
static inline bool cox__cl_keeps(const struct cox__job *job, uint32_t binding)
{
    return job->resident >> binding & 1;
}

/* The device's memory of a resident binding. */
static inline cl_mem cox__cl_resident_mem(const struct cox__instance *instance,
                                          const struct cox__job *job, uint32_t binding)
{
    if (job->homed >> binding & 1)
        return job->mems[binding]->home;
    if (instance->pipeline->stays >> binding & 1)
        return instance->kept[job->kept[binding]];

    return instance->sets[job->set].mems[binding];
}

static inline const struct cox__pass *cox__cl_pass(const struct cox__instance *instance,
                                                   const struct cox__job *job)
{
    return &instance->pipeline->passes[job->pass];
}

/* Whether images wrap the host's memory (image.c). */
static inline bool cox__cl_wraps_images(const struct cox__instance *instance)
{
    return !instance->staged && instance->device->info.type == COX_DEVICE_CPU;
}

/* Whether the device is in mapped mode and the slot has memory for the binding (band.c). */
static inline bool cox__cl_copies_from_start(const struct cox__instance *instance,
                                             const struct cox__pass *pass, uint32_t binding)
{
    return !instance->staged && instance->device->info.type != COX_DEVICE_CPU &&
           cox__from_start(pass, binding) && !cox__is_own(&pass->bindings[binding]);
}

/* Call this before a driver call in a job_* function or instance_flush, and cox__cl_returned or
 * cox__cl_slot_enqueued after it. */
static inline struct cox__driver_call cox__cl_call(const struct cox__instance *instance)
{
    return cox__watchdog_call_begin(instance->backend->post.watchdog);
}

/* The wait list of a command that waits for `event` alone; NULL if there is no event. */
static inline const cl_event *cox__cl_wait_list(const cl_event *event)
{
    return *event ? event : NULL;
}

static inline cox_status cox__cl_instance_check(const struct cox__instance *instance, cl_int code,
                                                const char *call)
{
    return cox__cl_error_check(instance->backend->log, code, call, instance->device->info.name);
}

/* ---- instance.c: the backend's operations of these names ---- */

cox_status cox__cl_instance_create(struct cox__backend *base, uint32_t device,
                                   const struct cox__pipeline *pipeline, uint32_t slots, bool fresh,
                                   struct cox__instance **out, uint32_t *max_rows);
void cox__cl_instance_destroy(struct cox__backend *base, struct cox__instance *instance,
                              cox__ended_fn *ended, void *ctx);
void cox__cl_instance_isolate(struct cox__backend *base, struct cox__instance *instance);
void cox__cl_instance_abandon(struct cox__backend *base, struct cox__instance *instance);
void cox__cl_instance_flush(struct cox__backend *base, struct cox__instance *instance);

/* ---- job.c: the backend's operations of these names ---- */

cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job);
void cox__cl_job_continue(struct cox__backend *base, struct cox__job *job);
enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job);
const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding);

/* ---- arguments.c ---- */

/* The backend's operation of this name. */
const char *cox__cl_arguments_may_write(struct cox__backend *base,
                                        const struct cox__instance *instance, uint32_t pass,
                                        uint32_t stage, uint32_t arg);

/* Compare the stage's arguments with those that the driver reports about its kernel. Notes the
 * buffers that the kernel takes in constant memory. Errors (logged): E_INVALID, E_UNSUPPORTED. */
cox_status cox__cl_arguments_check(struct cox__instance *instance, const struct cox__pass *pass,
                                   const struct cox__cl_stage *made);

/* Set each argument once, to see whether the driver takes its size. Errors (logged): E_INVALID. */
cox_status cox__cl_arguments_try(struct cox__instance *instance, const struct cox__pass *pass,
                                 const struct cox__cl_stage *made);

/* Log a mistake in the session's kernels, unless another device has logged one. The line begins
 * with the kernel's name. Returns E_INVALID. */
cox_status cox__cl_arguments_mistake(const struct cox__instance *instance,
                                     const struct cox__cl_stage *made, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- work_group.c ---- */

/* Choose the stage's local size. Call it before arguments are set. Errors (logged): E_UNSUPPORTED
 * (the device does not allow the size, or has too little local memory), E_INVALID (the size that
 * the kernel needs is not stated, or two are). */
cox_status cox__cl_work_group_choose(struct cox__instance *instance, const struct cox__pass *pass,
                                     struct cox__cl_stage *made);

/* What the library's choice of a local size depends on. All >= 1. */
struct cox__cl_group_shape {
    size_t columns, rows; /* work-items of the whole frame */
    bool is_cpu;
    size_t multiple; /* preferred; 0 = unknown */
    size_t most;     /* work-items of a group */
    size_t sides[2]; /* most in each dimension */
};

void cox__cl_work_group_suggest(const struct cox__cl_group_shape *shape, size_t local[2]);

/* Make a local size smaller until it divides the work-items. */
void cox__cl_work_group_divide(const size_t global[2], size_t local[2]);

/* ---- stage.c ---- */

/* Build the kernel of `made->stage`, and refuse a kernel that does not fit its stage. Errors
 * (logged): E_UNSUPPORTED, E_BUILD, E_INVALID, … */
cox_status cox__cl_stage_make(struct cox__instance *instance, const struct cox__pass *pass,
                              struct cox__cl_stage *made);
/* Accepts zeros and a partly made stage. `sound`: see cox__cl_program_put. */
void cox__cl_stage_clear(struct cox__instance *instance, struct cox__cl_stage *stage, bool sound);

/* The rows of a kernel launch: the whole band, or one piece of it. */
struct cox__cl_launch {
    const struct cox__job *job;
    struct cox__cl_slot *slot;
    uint32_t first_row;
    uint32_t rows;
    const cl_mem *mems;      /* per binding */
    const uint32_t *origins; /* per binding: the buffer row at which its memory begins */
};

/* The stage's kernel for a job. */
static inline struct cox__cl_kernel *cox__cl_stage_kernel(const struct cox__cl_stage *stage,
                                                          const struct cox__job *job)
{
    return &stage->kernels[job->slot % stage->kernel_count];
}

/* Most launches of a stage: one for each size of group, in two dimensions. */
enum { COX__CL_LAUNCHES_MAX = 4 };

/* The work-items of a stage. */
struct cox__cl_range {
    uint32_t dimensions;
    size_t offset[2]; /* not zeros in absolute passes alone */
    size_t global[2];
};

/* The dimension of the work-items that runs over rows. */
static inline uint32_t cox__cl_stage_rows_dimension(const struct cox__cl_stage *stage)
{
    return stage->stage->one_dimension ? 0 : 1;
}

/* Set the arguments of a stage, and get its work-items. */
cl_int cox__cl_stage_set(const struct cox__instance *instance, const struct cox__cl_launch *launch,
                         uint32_t number, struct cox__cl_range *range);

/* Enqueue stages first .. end - 1 over the launch's rows; the first waits for `after` (may be
 * NULL). */
cox_status cox__cl_stages_run(struct cox__instance *instance, const struct cox__cl_launch *launch,
                              uint32_t first, uint32_t end, cl_event after);

/* ---- image.c ---- */

/* Refuse images that the device does not support. Errors (logged): E_UNSUPPORTED, E_INVALID (a row
 * has fewer pixels). */
cox_status cox__cl_images_check(const struct cox__instance *instance);

/* Make the slot's image of a binding, `rows` high, and write a pixel. Only if images do not
 * wrap. */
cl_int cox__cl_image_reserve(struct cox__instance *instance, struct cox__cl_slot *slot,
                             uint32_t binding, uint32_t rows);
void cox__cl_image_clear(struct cox__cl_image *image);

/* Give the slot's image `rows` rows. If images wrap, make it wrap the rows at `data` instead. */
cox_status cox__cl_image_fit(struct cox__instance *instance, struct cox__cl_slot *slot,
                             uint32_t binding, uint32_t rows);
cox_status cox__cl_image_wrap(struct cox__instance *instance, struct cox__cl_slot *slot,
                              uint32_t binding, uint32_t rows, void *data);

/* An image with a copy of `rows` rows of the binding. */
cl_mem cox__cl_image_copy(const struct cox__instance *instance, uint32_t binding, uint32_t rows,
                          void *data, cl_int *code);

/* ---- device_memory.c ---- */

/* Enqueue on the compute queue: fill a range with zeros. `event` may be NULL. */
cl_int cox__cl_device_memory_clear(const struct cox__instance *instance, cl_mem mem, size_t offset,
                                   size_t bytes, cl_event *event);

/* Allocate device memory and fill it with zeros. Some drivers allocate at first use, and a frame
 * under way is the wrong time to run out of memory. */
cl_int cox__cl_device_memory_make(struct cox__instance *instance, cl_mem_flags flags, size_t bytes,
                                  cl_mem *out);

/* After allocations, of which the last returned `code`: wait for the writes, which must end before
 * their buffers are released. Returns COX__CL_NOT_IN_TIME if the device does not answer. */
cl_int cox__cl_device_memory_wait(struct cox__instance *instance, cl_int code);

/* Note that the device does not answer. Returns E_DEVICE_LOST. */
cox_status cox__cl_device_memory_hangs(struct cox__instance *instance);

/* ---- frame_set.c ---- */

/* The backend's operation of this name. */
uint32_t cox__cl_frame_set_resident(struct cox__backend *base,
                                    const struct cox__instance *instance);

/* Allocate device memory for the resident bindings. If it does not fit, the instance keeps nothing.
 * Errors (logged): E_DEVICE_LOST with `instance->hangs` set. */
cox_status cox__cl_frame_sets_allocate(struct cox__instance *instance);
void cox__cl_frame_sets_free(struct cox__instance *instance);

/* ---- device_buffer.c ---- */

/* Memory of a memory object that lies on a device. `sync` may be NULL. Errors (logged): E_INVALID,
 * E_UNSUPPORTED, E_NOMEM. */
cox_status cox__cl_device_buffer_make(struct cox__cl_backend *backend, uint32_t device,
                                      cl_mem object, const struct cox_opencl_sync *sync,
                                      struct cox__mem **out);

/* Enqueue what makes the memory the library's, and what gives it back. */
cox_status cox__cl_device_buffer_acquire(struct cox__instance *instance, struct cox__cl_slot *slot,
                                         const struct cox__mem *mem);
cox_status cox__cl_device_buffer_release(struct cox__instance *instance, struct cox__cl_slot *slot,
                                         const struct cox__mem *mem);

/* ---- slot.c ---- */

cox_status cox__cl_slot_make(struct cox__instance *instance, struct cox__cl_slot *slot);
void cox__cl_slot_clear(struct cox__cl_slot *slot); /* accepts zeros and a partly made slot */

/* Allocate device memory of all slots, for bands of as many rows as fit: max_rows[pass]. Errors
 * (logged): E_DEVICE_MEMORY, E_DEVICE_LOST with `instance->hangs` set. */
cox_status cox__cl_slots_allocate(struct cox__instance *instance, uint32_t *max_rows);

/* The band and its commands have ended. */
void cox__cl_slot_end(const struct cox__instance *instance, struct cox__cl_slot *slot);

/* The band is abandoned: give up its callback and its band objects, and keep its events. */
void cox__cl_slot_abandon(struct cox__cl_slot *slot);

/* The call that enqueues a command has returned `code`: keep the event if the command was enqueued.
 * Does not return if the engine lock was revoked during the call. */
cox_status cox__cl_slot_enqueued(struct cox__instance *instance, struct cox__cl_slot *slot,
                                 enum cox__cl_command kind, const struct cox__driver_call *call,
                                 cl_int code, cl_event event, const char *name);

static inline cl_event cox__cl_slot_newest(const struct cox__cl_slot *slot)
{
    return slot->events[slot->event_count - 1];
}

/* ---- trial.c ---- */

/* The backend's operation of this name. */
cox_status cox__cl_trial_run(struct cox__backend *base, struct cox__instance *instance,
                             const struct cox__trial *trial);

/* ---- taint.c ---- */

/* Fill the device's local memory with words that follow from `value`, if the pass uses local
 * memory. Errors (logged): those of cox__cl_program_get. */
cox_status cox__cl_taint_run(const struct cox__instance *instance, uint32_t pass, uint32_t value);

/* ---- band.c ---- */

/* Enqueue the band's commands, or the first part of them: job->unfinished says. On failure some
 * commands may be enqueued: their events are in the slot. */
cox_status cox__cl_band_enqueue(struct cox__instance *instance, struct cox__job *job,
                                struct cox__cl_slot *slot);
/* Enqueue the next part. */
cox_status cox__cl_band_continue(struct cox__instance *instance, struct cox__job *job,
                                 struct cox__cl_slot *slot);

#endif
