/* The commands of one run in hand-written OpenCL, in the order in which they are enqueued.
 *
 * A plan knows where each row is: in the host's memory, which processors use directly, or in the
 * memory of a device. It copies rows only to where a kernel reads them. Each command lists the
 * commands that it must wait for. A plan is made before a run, so its making is not timed.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_PLAN_H
#define BENCH_SUITE_PLAN_H

#include "view.h"

/* The queues of a device. A device that works in host memory has the second one only. */
enum suite_lane { SUITE_LANE_IN, SUITE_LANE_COMPUTE, SUITE_LANE_OUT, SUITE_LANES };

enum suite_command_kind {
    SUITE_WRITE,        /* rows from the host to the device */
    SUITE_READ,         /* rows from the device to the host */
    SUITE_COPY,         /* rows from device `from` to this device */
    SUITE_KERNEL,       /* one step over `rows` */
    SUITE_ZERO,         /* zeros into the device's own copy of a merged buffer */
    SUITE_READ_PARTIAL, /* this copy to the host */
    /* The following are done by the host, which waits for what they need. */
    SUITE_MERGE,       /* the copies of the devices in the set `devices` */
    SUITE_STEP_DONE,   /* cox_pass.done of the step */
    SUITE_AFTER_FRAME, /* suite_problem.after_frame */
};

struct suite_command {
    enum suite_command_kind kind;
    uint32_t device, from, lane;
    uint32_t frame, step, buffer, store;
    struct suite_range rows; /* of the buffer, or of the step */
    size_t pitch_bytes;
    uint32_t devices; /* MERGE: one bit per device */
    uint32_t first_need, need_count;
    bool awaited; /* a later command or the host waits for it */
};

struct suite_plan {
    const struct suite_view *view;
    uint32_t device_count;
    struct suite_command *commands;
    uint32_t count, room;
    uint32_t *needs; /* indices of commands */
    uint32_t need_count, need_room;
    uint32_t last[COX_DEVICES_MAX * SUITE_LANES]; /* of each queue: 1 + index; 0 = unused */
    struct suite_range bands[COX_DEVICES_MAX][SUITE_PASSES_MAX];
};

struct suite_device_kind {
    bool on_host;     /* kernels use the host's memory */
    uint32_t context; /* devices with the same number can wait for each other */
    uint32_t peers;   /* devices with the same number copy to each other */
};

/* Make a plan. `shares` are the devices' parts of the rows; their sum is 1. NULL after a message. */
struct suite_plan *suite_plan_create(const struct suite_view *view,
                                     const struct suite_device_kind *devices, const double *shares,
                                     uint32_t device_count);

/* Accepts NULL. */
void suite_plan_destroy(struct suite_plan **plan);

#endif
