/* The parts of suite_direct, for direct.c and direct_make.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_DIRECT_PARTS_H
#define BENCH_SUITE_DIRECT_PARTS_H

#include "arguments.h"
#include "direct.h"

/* A kernel's size on one device. */
struct suite_group {
    size_t local[2];
    uint32_t item_columns, item_rows;
};

struct suite_hand {
    struct cox_device_info info;
    cl_device_id id;
    cl_context context; /* of all devices of its platform */
    cl_command_queue queues[SUITE_LANES];
    cl_program programs[SUITE_PASSES_MAX];
    cl_kernel kernels[SUITE_PASSES_MAX][2]; /* for even and odd frames */
    struct suite_group groups[SUITE_PASSES_MAX];
    cl_mem stores[SUITE_STORES_MAX];
    cl_mem privates[COX_BUFFERS_MAX];
    cl_mem partials[COX_BUFFERS_MAX]; /* of merged buffers */
    void *partial_data[COX_BUFFERS_MAX];
};

struct suite_direct {
    const struct suite_problem *problem;
    uint32_t device_count;
    struct suite_hand devices[COX_DEVICES_MAX];
    struct suite_device_kind kinds[COX_DEVICES_MAX];
    cl_context contexts[COX_DEVICES_MAX];
    uint32_t context_count;

    struct suite_view view;
    struct suite_arguments arguments[SUITE_PASSES_MAX];
    uint32_t private_count;
    size_t private_bytes[COX_BUFFERS_MAX];

    /* The host's memory of each store. */
    size_t store_bytes[SUITE_STORES_MAX];
    void *data[SUITE_STORES_MAX];
    cl_mem pinned[SUITE_STORES_MAX]; /* what `data` maps; NULL = plain memory */
    cl_command_queue pinned_queue;

    /* The current plan. */
    struct suite_plan *plan;
    cl_event *events; /* of each command; NULL = nobody waits for it, or it is done */

    /* The current frame's constants. */
    struct cox_constants constants;
    bool constants_vary;
};

/* direct_make.c: fill all but the plan. False after a message. */
bool suite_direct_make(struct suite_direct *direct, const struct cox_device_info *devices);
void suite_direct_unmake(struct suite_direct *direct);

#endif
