/* What the files of cox-bench share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

#include "common/quantiles.h"
#include "common/host_machine.h"
#include "common/now.h"
#include "common/quiet.h"
#include "common/work.h"

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

enum { BENCH_POLICIES_MAX = 8 };

struct bench_options {
    const char *devices;            /* NULL = the command's default */
    uint32_t frames;                /* 0 = the command's default */
    uint32_t width, height;         /* kernels, stream: 0 = the default */
    bool pictures;                  /* stream: pictures instead of video */
    uint32_t in_flight;             /* stream: 0 = 1, 2, 3 and 6, one after the other */
    enum cox_arithmetic arithmetic; /* stream, kernels */
    double ratio; /* split: work per row of the second device over that of the first */
    const char *policies
        [BENCH_POLICIES_MAX]; /* split, stream, decide: NULL ends them; none = the command's default */
    bool calls;               /* overhead, stream: list the calls of the driver */
    double quiet_s;           /* time to spend on doing disturbed rounds again; 0 = keep all */
    bool json;
};

/* The commands. `*met` = every bar is met. Return false after saying why on standard error. */
bool bench_overhead(const struct bench_options *options, bool *met);
bool bench_split(const struct bench_options *options, bool *met);
bool bench_stream(const struct bench_options *options, bool *met);
bool bench_kernels(const struct bench_options *options, bool *met);
bool bench_decide(const struct bench_options *options, bool *met);
bool bench_finish(const struct bench_options *options, bool *met);
bool bench_passes(const struct bench_options *options, bool *met);
bool bench_resize(const struct bench_options *options, bool *met);
bool bench_start(const struct bench_options *options, bool *met);
bool bench_frames(const struct bench_options *options, bool *met);

/* This command has options of its own (guides/options.c): its arguments, beginning with its name. Returns the exit
 * status. */
int bench_guides(int argc, char **argv);

/* One line on standard error; returns false. */
bool bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The library's log, on standard error. */
void bench_log(void *user, enum cox_log_level level, const char *line);

/* --- ceilings (ceilings.c) --- */

struct bench_ceiling_params {
    int32_t in_pitch, out_pitch; /* words */
};

/* A session's pipeline that moves the bytes of a video frame, with or without arithmetic; valid while it lives. */
struct bench_ceiling {
    uint64_t bytes; /* read and written in a frame */
    struct cox_binding bindings[2];
    struct cox_arg args[6];
    struct cox_variant variants[2];
    struct cox_stage stage;
    struct bench_ceiling_params params; /* of its frames */
    char options[2][64];
};
/* `multiply_adds` for each pixel, a multiple of 3. */
void bench_ceiling_fill(struct bench_ceiling *ceiling, uint32_t width, uint32_t height,
                        uint32_t multiply_adds, const cox_runtime *runtime,
                        struct cox_session_params *session);
void bench_ceiling_input(const struct bench_ceiling *ceiling, uint32_t height, float *data);

/* --- vectors over scalars (vectors.c) --- */

enum { BENCH_VECTORS_FORMATS = 4 };

struct bench_vectors {
    uint32_t width, height;
    struct bench_vectors_format {
        const char *name;
        double vector_ms, scalar_ms; /* of a frame, the best one */
        double ratio;                /* how many times as fast vectors are */
    } formats[BENCH_VECTORS_FORMATS];
    double bar; /* on the least ratio */
    bool met;
};

/* Rounds of one frame of each variant and format, 20 at most, on a CPU. False after saying why on standard error. */
bool bench_vectors(cox_runtime *runtime, uint32_t device, uint32_t rounds, struct quiet *quiet,
                   struct bench_vectors *result);

/* --- a plane (plane.c) --- */

/* Floats from 1/1024 to 1. */
void bench_plane_fill(float *samples, size_t count);

/* Parameters of a blur by equal weights, the same radius across and down, 31 at most. Errors as
 * cox_filter_separable_prepare. */
cox_status bench_blur_prepare(const struct cox_filter_shape *shape,
                              struct cox_filter_params *params);

/* --- a scene (scene.c) --- */

struct bench_scene;

/* NULL = out of memory. */
struct bench_scene *bench_scene_create(uint32_t width, uint32_t height);
void bench_scene_destroy(struct bench_scene **scene);
void bench_scene_picture(const struct bench_scene *scene, enum cox_pixel_in pixel, void *pixels,
                         size_t pitch_bytes);
/* PQ or HLG with BT.2020, 4:2:0, 10 bits, limited range; three planes. */
void bench_scene_video(const struct bench_scene *scene, enum cox_transfer transfer,
                       void *const planes[3], const size_t pitch_bytes[3]);

/* --- heap (heap.c) --- */

struct bench_heap_count {
    uint64_t
        library; /* calls made by libcoxswain, libuv or hwloc, directly or through the C library */
    uint64_t others; /* by anyone else: the OpenCL drivers, this program */
};
/* Whether this build can count; not with sanitizers, which bring their own allocator. */
bool bench_heap_possible(void);
void bench_heap_start(void);
struct bench_heap_count bench_heap_stop(void);

/* --- calls of the driver (calls.c) --- */

enum bench_call_kind {
    BENCH_CALL_COMMAND, /* enqueues something for the device */
    BENCH_CALL_OTHER,
    BENCH_CALL_POLL, /* asks whether a command has ended */
};

/* The functions whose calls are counted. */
#define BENCH_CALLS(X)                       \
    X(clEnqueueNDRangeKernel, COMMAND)       \
    X(clEnqueueWriteBuffer, COMMAND)         \
    X(clEnqueueReadBuffer, COMMAND)          \
    X(clEnqueueMapBuffer, COMMAND)           \
    X(clEnqueueUnmapMemObject, COMMAND)      \
    X(clEnqueueFillBuffer, COMMAND)          \
    X(clEnqueueCopyBuffer, COMMAND)          \
    X(clEnqueueMarkerWithWaitList, COMMAND)  \
    X(clSetKernelArg, OTHER)                 \
    X(clFlush, OTHER)                        \
    X(clFinish, OTHER)                       \
    X(clWaitForEvents, OTHER)                \
    X(clGetEventInfo, OTHER) /* but polls */ \
    X(clGetEventProfilingInfo, OTHER)        \
    X(clReleaseEvent, OTHER)                 \
    X(clRetainEvent, OTHER)                  \
    X(clSetEventCallback, OTHER)             \
    X(clCreateBuffer, OTHER)                 \
    X(clCreateSubBuffer, OTHER)              \
    X(clReleaseMemObject, OTHER)             \
    X(poll, POLL) /* clGetEventInfo of the execution status */

enum bench_call {
#define BENCH_CALL_ENUM(name, kind) BENCH_CALL_##name,
    BENCH_CALLS(BENCH_CALL_ENUM)
#undef BENCH_CALL_ENUM
        BENCH_CALL_COUNT
};

struct bench_calls {
    uint64_t of[BENCH_CALL_COUNT];
    uint64_t
        ns[BENCH_CALL_COUNT]; /* inside them, in all threads together; 0 if they are not timed */
};

/* Counts from zero, in every thread and whatever object calls: the library or this program. One count at a time. */
void bench_calls_start(bool timed);
struct bench_calls bench_calls_stop(void);
void bench_calls_add(struct bench_calls *sum, const struct bench_calls *calls);
/* A line: how often each was called for each of so many frames, and how long a call took. */
void bench_calls_print(const struct bench_calls *calls, const char *name, double frames);
uint64_t bench_calls_sum(const struct bench_calls *calls, enum bench_call_kind kind);
const char *bench_call_name(enum bench_call call);

/* --- hand-written OpenCL (cl.c) --- */

struct bench_cl;

/* How a frame is done and waited for. */
enum bench_cl_form {
    BENCH_CL_FINISH,   /* the blocking form: flush, clFinish */
    BENCH_CL_CALLBACK, /* the asynchronous form: flush, event callback wakes the thread */
    BENCH_CL_LEAN, /* as FINISH, without unmapping and mapping: not valid OpenCL by the letter */
    BENCH_CL_FORMS
};

struct bench_cl_times {
    uint64_t visible_ns; /* from the first call to the result being visible in the calling thread */
    uint64_t callback_ns; /* CALLBACK: to the start of the driver's callback */
};

/* The device that `info` describes, found again, with buffers, queue and kernel of its own. NULL after a message. */
struct bench_cl *bench_cl_create(const struct cox_device_info *info,
                                 const struct work_shape *shape);
void bench_cl_destroy(struct bench_cl **bench);
float *bench_cl_input(struct bench_cl *bench);
const float *bench_cl_output(struct bench_cl *bench);
bool bench_cl_has(const struct bench_cl *bench, enum bench_cl_form form);
const char *bench_cl_describe(const struct bench_cl *bench, enum bench_cl_form form);
/* Times of 0 = failed (said on standard error). */
struct bench_cl_times bench_cl_frame(struct bench_cl *bench, enum bench_cl_form form);

/* What the link to a device carries: pinned host memory, one copy of `bytes` after the other, nothing else going on.
 * Gigabytes (10^9 bytes) a second, the median of `times` copies by the device's own profile. */
struct bench_cl_link {
    double write_gbs, read_gbs;
};
bool bench_cl_link(const struct cox_device_info *info, size_t bytes, uint32_t times,
                   struct bench_cl_link *link);

#endif
