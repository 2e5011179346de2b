/* The state of cox-bench kernels, which kernels.c fills and kernels_print.c reads.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_KERNELS_STATE_H
#define BENCH_KERNELS_STATE_H

#include "ceilings.h"
#include "common/quiet.h"
#include "kernels_frames.h"
#include "vectors.h"

enum {
    KERNELS_CEILINGS = 6,
    KERNELS_COUNT = 11,
    KERNELS_ENTRANTS = KERNELS_CEILINGS + KERNELS_COUNT,
    KERNELS_BUFFERS_MAX = 2 * COX_VIDEO_PLANES_MAX + 1
};

/* --- What is measured (kernels_list.c) --- */

/* Multiply-adds per pixel of each ceiling. */
extern const uint32_t kernels_multiply_adds[KERNELS_CEILINGS];

enum kernels_kind {
    KERNELS_PICTURE,
    KERNELS_HISTOGRAM, /* of a picture */
    KERNELS_VIDEO,
    KERNELS_ANALYSIS, /* of video */
    KERNELS_BLUR,
    KERNELS_GAUSSIAN
};

struct kernels_entry {
    const char *name;
    const char *key; /* in JSON */
    enum kernels_kind kind;
    enum cox_pixel_in in;
    enum cox_pixel_out out;
    enum cox_transfer transfer;
    bool analyse;
    enum cox_filter_form form;
    double operations[2]; /* per pixel, with muladd and with fma; 0 = not counted */
};
extern const struct kernels_entry kernels_list[KERNELS_COUNT];

/* --- Measurements --- */

/* A ceiling or a kernel with its own session. */
struct kernels_entrant {
    cox_session *session;
    cox_buffer *buffers[KERNELS_BUFFERS_MAX + 1]; /* ends with NULL */
    uint32_t buffer_count;
    uint64_t bytes; /* read and written for a frame */
    struct cox_constants constants;
    uint64_t kernel_ns; /* of the current frame */
    bool unprofiled;    /* the device does not report kernel times */
    double *ns;         /* one for each frame */
    double frame_ns, low_ns, high_ns;
};

struct kernels {
    cox_runtime *runtime;
    struct kernels_frames frames;
    uint32_t rounds;
    struct quiet quiet;
    struct kernels_entrant entrants[KERNELS_ENTRANTS]; /* ceilings first */
    double *memory;
    /* Of the current device. */
    struct cox_device_info device;
    struct bench_vectors vectors; /* CPUs only */
};

static inline bool kernels_is_cpu(const struct kernels *kernels)
{
    return kernels->device.type == COX_DEVICE_CPU;
}

#endif
