/* The backend, its devices and its contexts. Included by all files of the OpenCL backend, and by no
 * others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_INTERNAL_H
#define COX_OPENCL_INTERNAL_H

#include "argument_list.h"
#include "cl.h"
#include "device_clock.h"
#include "base/bounds.h"
#include "base/clock.h"
#include "engine/pipeline.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>

enum { COX__CL_PLATFORMS_MAX = 16, COX__CL_OUTPUTS_MAX = 16, COX__CL_LEFT_OUT_MAX = 64 };

/* How long the driver may take for work outside of frames before its device counts as hung. The
 * short time applies after a failure. */
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
    bool clock_checked;  /* the clock has given an end that matches what the host saw */
    uint32_t clock_lies; /* impossible ends in a row (job.c) */
};

/* Devices that share a context. */
struct cox__cl_group {
    cl_context context;
    bool subbuffers; /* the group passed the self-test: bands are sub-buffers of one buffer */
};

/* Compiler output in the log: of which source and options, and of which device. */
struct cox__cl_output {
    unsigned char key[32];
    uint32_t device;
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
    uint32_t left_out_count;
    struct cox_left_out left_out[COX__CL_LEFT_OUT_MAX];
    uint32_t device_count;
    struct cox__cl_device devices[COX_DEVICES_MAX];
    uint32_t group_count;
    struct cox__cl_group groups[COX_DEVICES_MAX];
    struct cox__cl_callbacks *callbacks;
    pthread_mutex_t hang_lock;
    struct cox__cl_deferred *deferred; /* guarded by hang_lock */
    pthread_mutex_t host_lock;         /* a leaf; see cox__cl_mem_add_host */
    pthread_mutex_t programs_lock;     /* a leaf: no other lock is taken while it is held */
    /* guarded by programs_lock; the most recently requested one comes first */
    struct cox__cl_program *programs;
    struct cox__cl_output outputs[COX__CL_OUTPUTS_MAX]; /* guarded by programs_lock; a ring */
    uint32_t output_count;                              /* added so far */
};

/* Call this after a driver call in a job_* function or instance_flush. It does not return if the
 * engine lock was revoked during the call. */
static inline void cox__cl_returned(const struct cox__driver_call *call)
{
    if (!cox__watchdog_call_end(call))
        cox__watchdog_call_abandon(call);
}

/* ---- error.c ---- */

/* Map an error code to a status, and log the call and the code's name. CL_SUCCESS gives COX_OK. */
cox_status cox__cl_error_check(const struct cox__log *log, cl_int code, const char *call,
                               const char *device);
const char *cox__cl_error_name(cl_int code);

/* ---- platform.c ---- */

/* Find platforms and devices, apply the selection, make sub-devices. Errors: see
 * cox_runtime_create. */
cox_status cox__cl_platforms_discover(struct cox__cl_backend *backend,
                                      const struct cox__cl_options *options);

/* ---- context.c ---- */

/* Make contexts, or use those that the application gives (NULL = none). Run the self-test and set
 * each device's memory mode. Before this call info.mode holds the mode that the selection requests,
 * or 0 if it leaves the mode open. */
cox_status cox__cl_contexts_make(struct cox__cl_backend *backend, const cl_context *given);
void cox__cl_contexts_drop(struct cox__cl_backend *backend);

/* ---- host_memory.c ---- */

/* Whether the queue's device works in the memory that a buffer wraps. Measured: takes some
 * milliseconds. */
enum cox_host_memory cox__cl_host_memory(cl_context context, cl_command_queue queue);

/* ---- arithmetic.c ---- */

/* The device's fma by its own report; for a CPU, by the processor's instructions too. `info` must
 * hold the type and the platform. */
enum cox_fma cox__cl_arithmetic_fma_of(cl_device_id id, const struct cox_device_info *info);

/* Choose what the kernels of all devices use. Errors (logged): E_UNSUPPORTED. */
cox_status cox__cl_arithmetic_choose(struct cox__cl_backend *backend, enum cox_arithmetic asked);

/* ---- build.c ---- */

/* Build a program whose sources or binary the driver has. Returns the driver's code. */
cl_int cox__cl_build(cl_program program, const struct cox__cl_device *device, const char *options);

/* Whether the device takes SPIR-V. */
bool cox__cl_build_takes_spirv(const struct cox__cl_device *device);

/* Compile the kernel's source, or its SPIR-V if it has `code`. Errors (logged): COX_E_BUILD,
 * COX_E_UNSUPPORTED (the driver cannot link), COX_E_NOMEM, … */
cox_status cox__cl_build_kernel(struct cox__cl_backend *backend,
                                const struct cox__cl_device *device, cl_context context,
                                const struct cox__variant *kernel, cl_program *out);

/* ---- program.c ---- */

/* A program for one device, shared by all users of the same source and options in one context. */
struct cox__cl_program {
    cl_program id;
    char *arguments; /* what the driver reports about them; NULL = out of memory */
    size_t arguments_bytes;

    /* for program.c only; the fields that change are guarded by programs_lock: */
    struct cox__cl_program *next;
    cl_context context;
    uint32_t device;
    unsigned char key[32];
    uint32_t users;
    bool uncached; /* made from source, and its binary is not in the cache */
    bool unsound;  /* a user's device has hung or failed: no session gets this program any more */
};

/* Get a program: an existing one, one from a cached binary, or a new one. Of `kernel`, all texts
 * and the code are read, but no sizes. The compiler's log goes to the logger. On success
 * the caller gives it back with cox__cl_program_put. Errors: COX_E_BUILD, COX_E_NOMEM, … */
cox_status cox__cl_program_get(struct cox__cl_backend *backend, uint32_t device, cl_context context,
                               const struct cox__variant *kernel, struct cox__cl_program **out);

/* The kernel's options with the runtime's arithmetic. The caller frees them. NULL: no memory. */
char *cox__cl_program_options(const struct cox__cl_backend *backend,
                              const struct cox__variant *kernel);

/* As the backend's operations code_refusal and compile. */
const char *cox__cl_binary_refusal(struct cox__backend *base, uint32_t device, const void *code,
                                   size_t bytes);
cox_status cox__cl_program_compile(struct cox__backend *base, uint32_t device,
                                   const struct cox__variant *kernel, FILE *file);

/* Build a program that is not shared, without log lines. NULL = it does not build. */
cl_program cox__cl_program_try(const struct cox__cl_backend *backend, uint32_t device,
                               cl_context context, const char *source, const char *options);

/* Give a program back; NULL is accepted. `sound`: its context and device have not failed. When a
 * sound program loses its last user, its binary goes to the cache if it is not there. Earlier would
 * delay the first use: some drivers (PoCL) compile again for the binary. The program stays for the
 * next session that needs it, until many others have been used since. */
void cox__cl_program_put(struct cox__cl_backend *backend, struct cox__cl_program *program,
                         bool sound);

/* Release the programs without users; those of hung devices are leaked. */
void cox__cl_programs_drop(struct cox__cl_backend *backend);

#endif
