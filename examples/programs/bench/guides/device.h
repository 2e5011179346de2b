/* One device of cox-bench guides: its OpenCL objects, inputs, limits and measured rates.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_DEVICE_H
#define BENCH_GUIDES_DEVICE_H

#include "bench/cl.h"
#include "common/quiet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GUIDES_TAIL = 64, /* zeros after the last pixel; a kernel may read them */
    GUIDES_TAPS = 9,  /* of the Gaussian; 81 weights for two dimensions follow them */
    GUIDES_FILTER = 16
};

struct guides_experiment;

/* Arguments of kernels, by their letters in `struct guides_launch`. Other letters: w width, h
 * height, n the variant's number, c log2 of the pixel count, a the pixel count. */
enum guides_buffer {
    GUIDES_IN,      /* i */
    GUIDES_OUT,     /* o */
    GUIDES_THERE,   /* t: between passes */
    GUIDES_BETWEEN, /* u: likewise */
    GUIDES_GAUSS,   /* g: weights */
    GUIDES_RATIOS,  /* r: of the recursive Gaussian */
    GUIDES_STEPS,   /* f: the taps of a filter */
    GUIDES_IMAGE,   /* I: the input as an image; NULL without images */
    GUIDES_BUFFERS
};

struct guides_device {
    struct cox_device_info info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_mem buffers[GUIDES_BUFFERS];
    const char *no_image; /* why there is no image; NULL = there is one */
    uint32_t width, height, log_pixels;
    size_t pixels;
    uint64_t copy_ns; /* the fastest of the first copies, by the host's clock */
    uint32_t tile;    /* side of a square work-group: 16, 8 or 4 */
    uint32_t group;   /* a large work-group: 256 or what the device allows */
    size_t line;      /* values per cache line of global memory */
    uint32_t major;   /* OpenCL version */
    bool collective;  /* has work_group_scan_* and similar functions */
    bool subgroups;
    bool cpu;
    bool profiled; /* its profile gives the times of kernels */
    float *input, *expected, *result;
    /* `expected` holds the result of this experiment and variant number. */
    const struct guides_experiment *expected_of;
    uint32_t expected_number;
    size_t expected_count;
    float gauss[GUIDES_TAPS * (GUIDES_TAPS + 1)], ratios[4], taps[GUIDES_FILTER];
    bool quick;
    struct quiet *quiet; /* shared by all devices */
    /* Measured rates, for predictions; NaN until known. */
    double copy_rate;  /* of a copy, Mpixel/s */
    double add_rate;   /* 10^6 multiply-adds per second */
    double local_rate; /* of side-by-side reads of local memory, Mread/s */
};

/* Open the device that `info` describes; `quick` and `quiet` must be set. Returns false after a
 * message. Close the device in either case. */
bool guides_device_open(struct guides_device *device);
void guides_device_close(struct guides_device *device);

#endif
