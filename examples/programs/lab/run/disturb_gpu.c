/* SPDX-License-Identifier: Apache-2.0 */
#include "disturb_gpu.h"
#include "common/now.h"
#include "common/work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { COLUMNS = 1024, ROWS = 256, IN_FLIGHT = 2, WORK_MOST = 1 << 20 };

/* A frame this long fills the device, and still ends soon after a switch. */
static const double frame_ns = 2e6;

/* In memory that parent and child share; all but `device` is only used by the child. */
struct gpu_hog {
    char device[48]; /* for cox_runtime_create */
    cox_runtime *runtime;
    cox_session *session;
    cox_buffer *in, *out[IN_FLIGHT];
    struct work_shape shape;
    uint64_t frames;
    _Atomic bool failed;
};

void lab_gpu_hog_choose(void *memory, const struct cox_device_info *gpu)
{
    struct gpu_hog *hog = memory;

    snprintf(hog->device, sizeof hog->device, "%u.%u", gpu->platform_index, gpu->device_index);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct gpu_hog *hog = user;
    (void)frame;

    if (status != COX_OK)
        atomic_store(&hog->failed, true);
}

static cox_status submit(struct gpu_hog *hog)
{
    const struct work_constants constants = work_constants_of(&hog->shape);
    const struct cox_frame frame = {
        .buffers = COX_BUFFERS(hog->in, hog->out[hog->frames++ % IN_FLIGHT]),
        .constants = &constants};

    return cox_session_submit(hog->session, &frame, on_done, hog);
}

/* Increase the work until a frame is long enough. */
static cox_status calibrate(struct gpu_hog *hog)
{
    cox_status status = COX_OK;

    for (hog->shape.work = 64; status == COX_OK && hog->shape.work < WORK_MOST;
         hog->shape.work *= 2) {
        uint64_t begin = now_ns();

        status = submit(hog);
        cox_session_wait(hog->session);
        if ((double)(now_ns() - begin) >= frame_ns)
            break;
    }
    return status;
}

static bool prepare(void *memory, char *why, size_t why_bytes)
{
    struct gpu_hog *hog = memory;
    struct work_pipeline pipeline;
    struct cox_session_params params = {
        .in_flight = IN_FLIGHT, .policy = "single", .no_profile = true};
    cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = hog->device,
                                                              .reserve = COX_RESERVE_OFF},
                           &hog->runtime);

    if (status == COX_OK) {
        hog->shape = (struct work_shape){
            .columns = COLUMNS,
            .rows = ROWS,
            .work = 64,
            .pitch_bytes = cox_runtime_pitch_bytes(hog->runtime,
                                                   (size_t)COLUMNS * WORK_ITEM_BYTES)};

        work_pipeline_fill(&pipeline, &hog->shape, -1, 1, &params);
        status = cox_session_create(hog->runtime, &params, &hog->session);
    }

    if (status == COX_OK)
        status = cox_buffer_create(hog->runtime, ROWS * hog->shape.pitch_bytes, &hog->in);
    for (int i = 0; i < IN_FLIGHT && status == COX_OK; i++)
        status = cox_buffer_create(hog->runtime, ROWS * hog->shape.pitch_bytes, &hog->out[i]);

    if (status == COX_OK)
        status = calibrate(hog);

    snprintf(why, why_bytes, "its process cannot use device %s: %s", hog->device,
             cox_status_text(status));
    return status == COX_OK;
}

static void work(void *memory)
{
    struct gpu_hog *hog = memory;

    if (atomic_load(&hog->failed) || submit(hog) != COX_OK)
        _exit(1); /* the parent notices at the next switch */
}

static void rest(void *memory)
{
    struct gpu_hog *hog = memory;

    cox_session_wait(hog->session);
}

const struct lab_child_job lab_gpu_hog_job = {
    .memory_bytes = sizeof(struct gpu_hog), .prepare = prepare, .work = work, .rest = rest};
