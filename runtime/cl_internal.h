/* What the files of the OpenCL backend share. Included by runtime/cl_*.c only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_CL_INTERNAL_H
#define COX_RUNTIME_CL_INTERNAL_H

#include "cl_backend.h"
#include "clock.h"
#include "pages.h"
#include "pipeline.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>

enum { COX__CL_PLATFORMS_MAX = 16 };

/* A device that takes part. */
struct cox__cl_device {
    struct cox_device_info info;
    cl_platform_id platform;
    cl_device_id id;
    bool is_subdevice; /* `id` is ours to release */
    uint32_t group;
    char platform_version[128];
    cl_command_queue service; /* for work outside the frame path */
    _Atomic uint32_t hung;    /* abandoned units of it that are not over; changes under left_lock */
    atomic_bool lost;         /* its group's context is not to be trusted: new units make their own */
};

/* Devices that share a context. */
struct cox__cl_group {
    cl_context context;
    bool subbuffers; /* passed the self-test: bands are sub-buffers of one buffer */
};

struct cox__cl_callbacks; /* cl_callback.c */
struct cox__cl_callback;
struct cox__cl_left; /* cl_queue.c */

struct cox__cl_backend {
    struct cox__backend base;
    const struct cox__log *log;
    struct cox__post post;
    char *cache_dir;
    uint32_t platform_count;
    struct cox_platform_info platforms[COX__CL_PLATFORMS_MAX];
    uint32_t device_count;
    struct cox__cl_device devices[COX_DEVICES_MAX];
    uint32_t group_count;
    struct cox__cl_group groups[COX_DEVICES_MAX];
    struct cox__cl_callbacks *callbacks;
    pthread_mutex_t left_lock;
    struct cox__cl_left *left;
};

/* A driver call has returned. If it took too long the thread does not go on: nothing is its own any more. */
static inline void cox__cl_returned(const struct cox__guard_call *call)
{
    if (!cox__guard_leave(call))
        cox__guard_desert(call);
}

/* Of a queue that a unit shares with the band objects that it has worked on. */
enum cox__cl_queue_state {
    COX__CL_SOUND = 0,
    COX__CL_FAILED = 1,    /* something on it has failed, or it is over: little is expected of it */
    COX__CL_ABANDONED = 2, /* it hangs: nothing is enqueued on it, flushed or waited for, nor it released */
};

/* Outlives its unit for as long as an object needs it. */
struct cox__cl_queue {
    _Atomic uint32_t refs;
    atomic_int state; /* enum cox__cl_queue_state */
    cl_command_queue id;
    cl_context context;
    bool subbuffers; /* bands on it may be sub-buffers of their group's parent */
};

/* Pages of host memory, which stay for as long as a memory object lies on them that cannot be released. */
struct cox__cl_pages {
    _Atomic uint32_t refs;
    void *data;
    size_t bytes;
};

/* One band of a host allocation as one device sees it: a sub-buffer or a wrapper. Between frames it is mapped, so that
 * the application may touch the memory, unless a sub-buffer that overlaps it has taken its place. */
struct cox__cl_object {
    cl_mem mem;
    void *mapped;
    bool stale; /* does not know what the application wrote since its last use, or its parent's making */
    struct cox__cl_queue *queue; /* counted; in order, the only one that has commands for it */
    enum cox_access access;
    bool busy; /* a band under way uses it: a driver may refuse to unmap what is not mapped yet */
    bool sub;  /* a sub-buffer of its group's parent, not a wrapper of its own */
    size_t offset;
    size_t bytes;
    uint64_t used; /* when, on the memory's own count; the least recently used goes first */
};

/* More than the bands of a steady split need on every device; old ones are released beyond it. */
enum { COX__CL_OBJECTS_MAX = 256 };

struct cox__mem {
    void *data;
    size_t bytes;
    size_t padded_bytes;
    bool wrapped;
    struct cox__cl_pages *pages; /* `data`, if neither wrapped nor pinned */
    cl_mem pinned;               /* not NULL: `data` lies in this buffer, mapped at `pinned_map` */
    void *pinned_map;
    uint32_t pinned_device;
    cl_mem parents[COX_DEVICES_MAX]; /* per group, made at first use */
    uint64_t uses;
    uint32_t object_count;
    struct cox__cl_object objects[COX__CL_OBJECTS_MAX];
};

/* cl_status.c: map an error; the log line holds the call and the raw code's name. Returns COX_OK for CL_SUCCESS. */
cox_status cox__cl_check(const struct cox__log *log, cl_int code, const char *call, const char *device);
const char *cox__cl_error_name(cl_int code);

/* cl_platform.c: find platforms and devices, apply the selection, make sub-devices. */
cox_status cox__cl_discover(struct cox__cl_backend *backend, const struct cox__cl_options *options);

/* cl_context.c: make contexts, run the self-test, settle each device's mode, which holds what the selection asks for until
 * then, 0 where it leaves it open. */
cox_status cox__cl_make_contexts(struct cox__cl_backend *backend);
void cox__cl_drop_contexts(struct cox__cl_backend *backend);

/* cl_program.c: build a program for one device, through the cache of binaries. The compiler's log goes to the logger.
 * Errors: COX_E_BUILD, COX_E_NOMEM, … */
cox_status cox__cl_build(struct cox__cl_backend *backend, uint32_t device, cl_context context, const char *source,
                         const char *options, cl_program *out);

/* ---- cl_queue.c ---- */

/* What cox__cl_drain returns besides an error's code. */
enum { COX__CL_NOT_IN_TIME = 1 };

/* How long the driver may take for work that is not a frame's, before its device counts as one that hangs; where something
 * has failed already, little is expected. */
#define COX__CL_PATIENCE_NS 10000000000ull
#define COX__CL_LITTLE_PATIENCE_NS 1000000000ull

/* Wait until all that was enqueued on `queue` has ended, without blocking in the driver: not for longer than `patience_ns`,
 * nor once `of` (may be NULL) is abandoned. Application threads, the background thread. */
cl_int cox__cl_drain(cl_command_queue queue, struct cox__cl_queue *of, uint64_t patience_ns);

/* Takes over the queue, if it succeeds. */
struct cox__cl_queue *cox__cl_queue_new(cl_command_queue id, cl_context context, bool subbuffers);
struct cox__cl_queue *cox__cl_queue_ref(struct cox__cl_queue *queue);
void cox__cl_queue_unref(struct cox__cl_queue *queue); /* the last one releases it */
enum cox__cl_queue_state cox__cl_queue_state(const struct cox__cl_queue *queue);
void cox__cl_queue_failed(struct cox__cl_queue *queue);

struct cox__cl_pages *cox__cl_pages_new(size_t bytes);
void cox__cl_pages_unref(struct cox__cl_pages *pages); /* NULL is accepted */

/* Whether a device of the group has an abandoned unit. */
bool cox__cl_group_hangs(const struct cox__cl_backend *backend, uint32_t group);

/* A unit of the device is abandoned; what was under way on its queue has ended, however late. */
void cox__cl_hangs(struct cox__cl_backend *backend, uint32_t device, struct cox__cl_queue *queue);
void cox__cl_hangs_no_more(struct cox__cl_backend *backend, uint32_t device, struct cox__cl_queue *queue);

/* Release `mem` once `queue` is no longer abandoned, or, where that is NULL, once no device of `group` hangs; until then
 * keep `pages` (may be NULL). Takes over the references to `mem` and `queue`. */
void cox__cl_leave(struct cox__cl_backend *backend, cl_mem mem, void *mapped, struct cox__cl_queue *queue,
                   uint32_t group, struct cox__cl_pages *pages);

/* At the end: what still waits is given up. */
void cox__cl_forget_left(struct cox__cl_backend *backend);

/* ---- cl_callback.c ---- */

struct cox__cl_callbacks *cox__cl_callbacks_create(struct cox__post post);
void cox__cl_callbacks_destroy(struct cox__cl_callbacks *callbacks, const struct cox__log *log);

/* Have the event's completion post the job, until it is disarmed. NULL: the driver takes no callback, or too many have not
 * come; the band goes without, since the engine asks in any case. Under the engine's lock. */
struct cox__cl_callback *cox__cl_callback_arm(struct cox__cl_backend *backend, cl_event event, struct cox__job *job,
                                              const char *device);

/* When the callback came; 0 = not yet. NULL is accepted, as below. */
uint64_t cox__cl_callback_end_ns(const struct cox__cl_callback *callback);

/* What came at `end_ns` came before the band's end; `proven`: before the event's own. */
void cox__cl_callback_was_early(struct cox__cl_callback *callback, uint64_t end_ns, bool proven);

/* From here on nothing is posted. */
void cox__cl_callback_disarm(struct cox__cl_callback *callback);

/* cl_memory.c */
cox_status cox__cl_mem_create(struct cox__backend *base, void *host, size_t bytes, struct cox__mem **out);
void cox__cl_mem_destroy(struct cox__backend *base, struct cox__mem *mem);
void cox__cl_mem_abandon(struct cox__backend *base, struct cox__mem *mem);
void *cox__cl_mem_data(struct cox__mem *mem);
void cox__cl_mem_info(struct cox__mem *mem, struct cox_buffer_info *info);

/* The band object for a range, from the cache or new, unmapped by a command on `queue`, the unit's own.
 * `disjoint`: no other device's band in flight overlaps the range (ROWS). Ranges that are not (HALO, WHOLE) never become
 * sub-buffers, because PoCL 3.1 keeps the mappings of all sub-buffers with their parent and finds them by address, so
 * that two devices that map the same address unmap each other's. NULL on failure (logged). Under the engine's lock. */
struct cox__cl_object *cox__cl_object_get(struct cox__cl_backend *backend, struct cox__mem *mem, uint32_t device,
                                          enum cox_access access, bool disjoint, size_t offset, size_t bytes,
                                          struct cox__cl_queue *queue);

/* The band is over, or forgotten. Under the engine's lock. */
void cox__cl_object_put(struct cox__cl_object *object);

/* Enqueue the mapping that gives the object's memory back to the application. */
void *cox__cl_object_map(const struct cox__cl_object *object, cl_event *event, cl_int *code);

/* cl_unit.c */
cox_status cox__cl_unit_create(struct cox__backend *base, uint32_t device, const struct cox__pipeline *pipeline,
                               uint32_t lanes, bool fresh, struct cox__unit **out, uint32_t *max_rows);
void cox__cl_unit_destroy(struct cox__backend *base, struct cox__unit *unit);
void cox__cl_unit_seize(struct cox__backend *base, struct cox__unit *unit);
void cox__cl_unit_abandon(struct cox__backend *base, struct cox__unit *unit);
void cox__cl_unit_flush(struct cox__backend *base, struct cox__unit *unit);

/* cl_job.c */
cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job);
enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job);
const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding);

#endif
