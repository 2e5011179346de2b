/* A frame in hand-written OpenCL, and the copy rates of a device's link.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HAND_H
#define BENCH_HAND_H

#include "common/work.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_hand;

/* How a frame is submitted and awaited. */
enum bench_hand_form {
    BENCH_HAND_FINISH,   /* blocking: flush, clFinish */
    BENCH_HAND_CALLBACK, /* asynchronous: flush, an event callback wakes the thread */
    BENCH_HAND_LEAN,     /* as FINISH, without unmapping and mapping: invalid by the standard */
    BENCH_HAND_FORMS
};

struct bench_hand_times {
    uint64_t visible_ns;  /* from the first call until the thread can see the result */
    uint64_t callback_ns; /* CALLBACK: from the first call to the start of the callback */
};

/* Find the device that `info` describes, and create its buffers, queue and kernel. Returns NULL
 * after a message. */
struct bench_hand *bench_hand_create(const struct cox_device_info *info,
                                     const struct work_shape *shape);
void bench_hand_destroy(struct bench_hand **hand);

float *bench_hand_input(struct bench_hand *hand);
const float *bench_hand_output(struct bench_hand *hand);

bool bench_hand_has(const struct bench_hand *hand, enum bench_hand_form form);
const char *bench_hand_describe(const struct bench_hand *hand, enum bench_hand_form form);

/* Run one frame. Times of 0 = failed, after a message. */
struct bench_hand_times bench_hand_frame(struct bench_hand *hand, enum bench_hand_form form);

/* Rates of copies to and from an idle device, in 10^9 bytes per second. The host memory is pinned.
 * Each rate is the median of `times` copies of `bytes` each, by the device's profile. */
struct bench_link {
    double write_gbs, read_gbs;
};
bool bench_link_measure(const struct cox_device_info *info, size_t bytes, uint32_t times,
                        struct bench_link *link);

#endif
