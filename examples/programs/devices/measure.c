/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROWS = 64, WARM = 40, FRAMES = 200, LARGE_WARM = 4, LARGE_FRAMES = 20 };

static const size_t small_bytes = 64 << 10, large_bytes = 64 << 20;

/* No memory is this fast, in bytes a nanosecond. A frame that takes less time than a copy at this
 * speed was not copied. */
static const double fastest_copy = 200;

/* One device's session and its frames, one after the other. */
struct stand {
    cox_session *session;
    cox_buffer *in, *out;
    uint32_t warm, most; /* frames before the measurement, and in it */
    uint32_t count;
    bool told;
    uint64_t clock_error_ns;
    double late_ns[FRAMES];
    double least_ns; /* of a frame */
    atomic_int status;
};

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct stand *stand = user;
    if (report->warmup || report->shadow || report->index < stand->warm ||
        stand->count == stand->most)
        return;

    const struct cox_band_report *band = &report->bands[0];
    stand->told = stand->told && band->clock_error_ns != UINT64_MAX;
    if (stand->told && band->clock_error_ns > stand->clock_error_ns)
        stand->clock_error_ns = band->clock_error_ns;

    stand->least_ns = fmin(stand->least_ns,
                           (double)(report->total.end_ns - report->total.start_ns));
    stand->late_ns[stand->count++] = (double)(band->noticed_ns - band->end_ns);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stand *stand = user;
    (void)frame;
    if (status)
        atomic_store(&stand->status, status);
}

static cox_status run_frames(struct stand *stand)
{
    const struct cox_frame frame = {.buffers = COX_BUFFERS(stand->in, stand->out)};
    cox_status status = COX_OK;

    for (uint32_t f = 0; f < stand->warm + stand->most && status == COX_OK; f++) {
        status = cox_session_submit(stand->session, &frame, on_done, stand);
        cox_session_wait(stand->session);
        if (status == COX_OK)
            status = (cox_status)atomic_load(&stand->status);
    }
    return status;
}

/* Run frames of `bytes` bytes in and out, of which the kernel touches one word. */
static cox_status measure(cox_runtime *runtime, uint32_t device, size_t bytes, struct stand *stand)
{
    static const char source[] = "kernel void touch(global const uint *in, global uint *out)\n"
                                 "{\n"
                                 "    if (get_global_id(1) == 0)\n"
                                 "        out[0] = in[0];\n"
                                 "}\n";
    char only[16];
    snprintf(only, sizeof only, "#%u", device);

    const struct cox_session_params params = {
        .columns = 1,
        .rows = ROWS,
        .passes = COX_LIST(struct cox_pass, {.source = source}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in", .pitch_bytes = bytes / ROWS},
                            {.name = "out", .pitch_bytes = bytes / ROWS}),
        .devices = only,
        .in_flight = 1,
        .policy = "single",
        .no_profile = true,
        .report = on_report,
        .report_user = stand};

    stand->told = true;
    stand->least_ns = INFINITY;

    cox_status status = cox_session_create(runtime, &params, &stand->session);
    if (status == COX_OK)
        status = cox_buffer_create(runtime, bytes, &stand->in);
    if (status == COX_OK)
        status = cox_buffer_create(runtime, bytes, &stand->out);
    if (status == COX_OK)
        status = run_frames(stand);

    cox_session_destroy(&stand->session);
    cox_buffer_destroy(&stand->in);
    cox_buffer_destroy(&stand->out);
    return status;
}

static void measure_ends(cox_runtime *runtime, uint32_t device, struct measured_ends *out)
{
    struct stand stand = {.warm = WARM, .most = FRAMES};

    out->status = measure(runtime, device, small_bytes, &stand);
    if (out->status || !stand.told || !stand.count)
        return;

    out->told = true;
    out->clock_error_us = (double)stand.clock_error_ns / 1e3;
    out->p50_us = percentile_of(stand.late_ns, stand.count, 50) / 1e3;
    out->p99_us = percentile_of(stand.late_ns, stand.count, 99) / 1e3;
}

/* The least time of a frame. */
static cox_status measure_least(cox_runtime *runtime, uint32_t device, size_t bytes,
                                double *least_ns)
{
    struct stand stand = {.warm = LARGE_WARM, .most = LARGE_FRAMES};
    const cox_status status = measure(runtime, device, bytes, &stand);

    *least_ns = stand.least_ns;
    return status;
}

static void measure_memory(cox_runtime *runtime, uint32_t device, struct measured_memory *out)
{
    double small_ns = 0, large_ns = 0;
    const double more = 2 * (double)(large_bytes - small_bytes);
    out->status = measure_least(runtime, device, small_bytes, &small_ns);
    if (out->status == COX_OK)
        out->status = measure_least(runtime, device, large_bytes, &large_ns);
    if (out->status)
        return;

    const double extra_ns = fmax(large_ns - small_ns, 1);
    out->extra_us = extra_ns / 1e3;
    out->gb_per_s = more / extra_ns;
    out->wrapped = out->gb_per_s > fastest_copy;
}

void measure_device(cox_runtime *runtime, uint32_t device, struct measured *out)
{
    *out = (struct measured){.ends = {.status = COX_OK}};
    measure_ends(runtime, device, &out->ends);
    measure_memory(runtime, device, &out->memory);
}
