/* The backend, its devices and its contexts: what all files of the OpenCL backend share. Included by these files only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_INTERNAL_H
#define COX_OPENCL_INTERNAL_H

#include "cl.h"
#include "device_clock.h"
#include "base/clock.h"
#include "engine/pipeline.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>

enum { COX__CL_PLATFORMS_MAX = 16 };

/* How long the driver may take for work that is not a frame's, before its device counts as hung; the short one where
 * something has failed already. */
#define COX__CL_TIMEOUT_NS 10000000000ull
#define COX__CL_SHORT_TIMEOUT_NS 1000000000ull

/* A device that takes part. */
struct cox__cl_device {
    struct cox_device_info info;
    cl_platform_id platform;
    cl_device_id id;
    bool is_subdevice; /* the backend made `id`, and releases it */
    uint32_t group;
    char platform_version[128];
    cl_command_queue service; /* for work outside the frame path */
    /* abandoned instances of the device that have not ended; changes under hang_lock */
    _Atomic uint32_t hung;
    atomic_bool lost; /* its group's context cannot be trusted: new instances make their own */
    struct cox__device_clock clock;
    bool clock_checked;  /* it has told an end where the host saw one; */
    uint32_t clock_lies; /* and, so many times since then, one where none can have been */
};

/* Devices that share a context. */
struct cox__cl_group {
    cl_context context;
    bool subbuffers; /* the group passed the self-test: bands are sub-buffers of one buffer */
};

struct cox__cl_callbacks; /* callback.c */
struct cox__cl_deferred;  /* hang.c */

struct cox__cl_backend {
    struct cox__backend base;
    const struct cox__log *log;
    struct cox__post post;
    char *cache_dir;
    enum cox_arithmetic arithmetic;
    uint32_t platform_count;
    struct cox_platform_info platforms[COX__CL_PLATFORMS_MAX];
    uint32_t device_count;
    struct cox__cl_device devices[COX_DEVICES_MAX];
    uint32_t group_count;
    struct cox__cl_group groups[COX_DEVICES_MAX];
    struct cox__cl_callbacks *callbacks;
    pthread_mutex_t hang_lock;
    struct cox__cl_deferred *deferred; /* guarded by hang_lock */
    pthread_mutex_t programs_lock;     /* a leaf */
    /* guarded by programs_lock; those that were asked for last come first */
    struct cox__cl_program *programs;
};

/* After a driver call in a job_* function or instance_flush. If the engine lock was revoked meanwhile, this does not
 * return. */
static inline void cox__cl_returned(const struct cox__driver_call *call)
{
    if (!cox__watchdog_call_end(call))
        cox__watchdog_call_abandon(call);
}

/* ---- status.c ---- */

/* Map an error; the log line holds the call and the raw code's name. Returns COX_OK for CL_SUCCESS. */
cox_status cox__cl_error_check(const struct cox__log *log, cl_int code, const char *call,
                               const char *device);
const char *cox__cl_error_name(cl_int code);

/* ---- platform.c ---- */

/* Find platforms and devices, apply the selection, make sub-devices. Errors: as cox_runtime_create. */
cox_status cox__cl_platforms_discover(struct cox__cl_backend *backend,
                                      const struct cox__cl_options *options);

/* ---- context.c ---- */

/* Make contexts or take those that the application gives (NULL = none), run the self-test, settle each device's memory
 * mode. Until then info.mode holds what the selection asks for, 0 where it leaves the mode open. */
cox_status cox__cl_contexts_make(struct cox__cl_backend *backend,
                                 const struct cox_opencl_contexts *given);
void cox__cl_contexts_drop(struct cox__cl_backend *backend);

/* ---- host_memory.c ---- */

/* Whether the queue's device works in memory that a buffer wraps, by measurement: some milliseconds. */
enum cox_host_memory cox__cl_host_memory(cl_context context, cl_command_queue queue);

/* ---- arithmetic.c ---- */

/* What the device says, and for a CPU whether the processor has the instruction. `info` knows its type and platform. */
enum cox_fma cox__cl_arithmetic_fma_of(cl_device_id id, const struct cox_device_info *info);

/* What the kernels of all devices use. Errors (logged): E_UNSUPPORTED. */
cox_status cox__cl_arithmetic_choose(struct cox__cl_backend *backend, enum cox_arithmetic asked);

/* ---- program.c ---- */

/* A program for one device, shared by all that ask for the same one in the same context. */
struct cox__cl_program {
    cl_program id;
    char *writable; /* the list of its writable arguments; NULL = there was no memory for it */
    size_t writable_bytes;

    /* program.c's; what changes is guarded by programs_lock: */
    struct cox__cl_program *next;
    cl_context context;
    uint32_t device;
    unsigned char key[32];
    uint32_t users;
    bool uncached; /* made from source; the cache has no binary of it */
    bool unsound;  /* a user's device has hung or failed: no session gets it any more */
};

/* Get a program: one that is there, or its binary from the cache, or built. The compiler's log goes to the logger. On
 * success it is to be given back with cox__cl_program_put. Errors: COX_E_BUILD, COX_E_NOMEM, … */
cox_status cox__cl_program_get(struct cox__cl_backend *backend, uint32_t device, cl_context context,
                               const char *source, const char *options,
                               struct cox__cl_program **out);

/* Give it back; NULL is accepted. `sound`: its context and device are as they were. Once a sound
 * program has no user, its binary goes to the cache if it is not there. If that happened earlier,
 * the first use would wait, because some drivers (PoCL) compile again for it. The program stays for
 * the next session that asks for it, until many others have been used since. */
void cox__cl_program_put(struct cox__cl_backend *backend, struct cox__cl_program *program,
                         bool sound);

/* Release the programs that have no user; those of hung devices are leaked. */
void cox__cl_programs_drop(struct cox__cl_backend *backend);

/* ---- writable.c ---- */

/* The arguments of all kernels of a program made from source that are pointers to global memory that is not const: a
 * malloc'd list of `*bytes` bytes that the caller frees; NULL without memory. */
char *cox__cl_writable_list(cl_program program, size_t *bytes);

/* The length of a list at the beginning of a block of memory; 0 where it has no end there. */
size_t cox__cl_writable_bytes(const char *data, size_t bytes);

/* The name of the kernel's argument, "" if it is not known, or NULL where the argument is not in the list. */
const char *cox__cl_writable_find(const char *list, const char *kernel, uint32_t arg);

#endif
