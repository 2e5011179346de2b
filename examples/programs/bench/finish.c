/* cox-bench finish: how soon buffers and sessions can be destroyed. A buffer that no frame uses is
 * destroyed while three long frames run. A session with sixteen frames in flight is cancelled and
 * destroyed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "common/work.h"
#include "json_members.h"
#include "lines.h"
#include "message.h"
#include "session.h"

#include <math.h>
#include <semaphore.h>
#include <time.h>

enum { ROWS = 240, COLUMNS = 64, REPEATS = 5, LONG_FRAMES = 3, QUEUED = 16, SETS = QUEUED };

static const double long_ns = 1e9, short_ns = 5e7;
static const double bar_destroy_ms = 1, bar_cancel_frames = 2;

struct bench {
    cox_runtime *runtime;
    struct work_shape shape;
    cox_buffer *buffers[SETS][3]; /* each ends with NULL */
    sem_t done;
    double destroy_ms[REPEATS], cancel_frames[REPEATS];
    double long_frame_ms, short_frame_ms;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame, (void)status;
    sem_post(&((struct bench *)user)->done);
}

static cox_status open_session(struct bench *bench, uint32_t in_flight, cox_session **session)
{
    struct work_pipeline pipeline;
    struct cox_session_params params = {0};

    work_pipeline_fill(&pipeline, &bench->shape, -1, 1, &params);
    params.in_flight = in_flight;
    const cox_status status = bench_session_create(bench->runtime, &params, session);
    if (status)
        return status;

    const struct work_constants constants = work_constants_of(&bench->shape);

    return cox_session_warm(*session, &constants);
}

static cox_status submit(struct bench *bench, cox_session *session, uint32_t set)
{
    const struct work_constants constants = work_constants_of(&bench->shape);
    return cox_session_submit(session,
                              &(const struct cox_frame){.buffers = bench->buffers[set],
                                                        .constants = &constants},
                              on_done, bench);
}

static void await(struct bench *bench, uint32_t frames)
{
    for (uint32_t i = 0; i < frames;)
        i += sem_wait(&bench->done) == 0;
}

/* The time of a frame that runs alone, the median of `repeats` frames; 0 = failed. */
static double frame_ns(struct bench *bench, cox_session *session, int repeats)
{
    double times[REPEATS];

    for (int i = 0; i < repeats; i++) {
        const uint64_t began = now_ns();
        if (submit(bench, session, 0))
            return 0;
        await(bench, 1);
        times[i] = (double)(now_ns() - began);
    }

    return quantile_of(times, (size_t)repeats, 0.5);
}

/* Set the work so that a frame takes about `target_ns`. */
static bool calibrate(struct bench *bench, double target_ns, double *ns)
{
    bench->shape.work = 64;

    for (int step = 0; step < 6; step++) {
        cox_session *session = NULL;
        *ns = 0;
        if (open_session(bench, 1, &session) == COX_OK)
            *ns = frame_ns(bench, session, 1);
        bench_session_destroy(&session);
        if (*ns <= 0)
            return bench_fail("a short frame failed");
        if (*ns > 0.8 * target_ns && *ns < 1.5 * target_ns)
            break;
        const double work = bench->shape.work * target_ns / *ns;
        bench->shape.work = (int32_t)fmin(fmax(work, 1), 1e8);
    }

    return true;
}

/* Submit frames with the sets from 0 on, up to `most` of them. Returns how many were submitted. */
static uint32_t submit_frames(struct bench *bench, cox_session *session, uint32_t most)
{
    uint32_t submitted = 0;

    while (submitted < most && submit(bench, session, submitted) == COX_OK)
        submitted++;

    return submitted;
}

static void pause_ns(double ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};

    nanosleep(&pause, NULL);
}

/* The buffers of the last set had a frame before, and have none while the other sets do. */
static bool measure_destroy(struct bench *bench, double *ms)
{
    cox_session *session = NULL;
    bool good = open_session(bench, LONG_FRAMES, &session) == COX_OK &&
                submit(bench, session, SETS - 1) == COX_OK;
    uint32_t submitted = 0;

    if (good) {
        await(bench, 1);
        submitted = submit_frames(bench, session, LONG_FRAMES);
        good = submitted == LONG_FRAMES;
    }

    pause_ns(5e7);

    const uint64_t began = now_ns();
    for (int b = 0; b < 2; b++)
        cox_buffer_destroy(&bench->buffers[SETS - 1][b]);
    *ms = (double)(now_ns() - began) / 2e6;
    await(bench, submitted);
    bench_session_destroy(&session);
    for (int b = 0; b < 2 && good; b++)
        good = cox_buffer_create(bench->runtime, bench->shape.pitch_bytes * ROWS,
                                 &bench->buffers[SETS - 1][b]) == COX_OK;

    return good || bench_fail("a long frame failed");
}

static bool measure_cancel(struct bench *bench, double *frames)
{
    cox_session *session = NULL;
    bool good = open_session(bench, QUEUED, &session) == COX_OK;
    double one_ns = 0;
    uint32_t submitted = 0;

    if (good) {
        one_ns = frame_ns(bench, session, REPEATS);
        submitted = submit_frames(bench, session, QUEUED);
        good = submitted == QUEUED;
    }

    pause_ns(short_ns / 2); /* until all devices work */

    const uint64_t began = now_ns();
    good = good && cox_session_cancel(session) == COX_OK;
    bench_session_destroy(&session);
    *frames = 0;
    if (one_ns > 0)
        *frames = (double)(now_ns() - began) / one_ns;
    await(bench, submitted);

    return (good && one_ns > 0) || bench_fail("a frame to be cancelled failed");
}

static bool measure(struct bench *bench)
{
    double ns = 0;
    bool good = calibrate(bench, long_ns, &ns);

    bench->long_frame_ms = ns / 1e6;
    for (int i = 0; i < REPEATS && good; i++)
        good = measure_destroy(bench, &bench->destroy_ms[i]);
    good = good && calibrate(bench, short_ns, &ns);
    bench->short_frame_ms = ns / 1e6;
    for (int i = 0; i < REPEATS && good; i++)
        good = measure_cancel(bench, &bench->cancel_frames[i]);

    return good;
}

static double most(const double *values)
{
    double found = values[0];
    for (int i = 1; i < REPEATS; i++)
        found = fmax(found, values[i]);
    return found;
}

static void print(const struct bench *bench, bool as_json, bool destroy_met, bool cancel_met)
{
    const double destroy_ms = most(bench->destroy_ms), cancel = most(bench->cancel_frames);

    if (as_json) {
        struct json json;
        json_begin(&json, stdout);
        json_open_object(&json, false);
        json_member_number(&json, "long_frame_ms", bench->long_frame_ms);
        json_member_number(&json, "destroy_ms", destroy_ms);
        json_member_number(&json, "short_frame_ms", bench->short_frame_ms);
        json_member_number(&json, "cancel_frames", cancel);
        json_report_end(&json);
        return;
    }

    printf("destroying an unused buffer during %d frames of %.0f ms: at most %.3f ms in %d "
           "repeats; bar %g: %s\n",
           LONG_FRAMES, bench->long_frame_ms, destroy_ms, REPEATS, bar_destroy_ms,
           bench_verdict(destroy_met));
    printf("cancelling %d frames of %.0f ms and destroying the session: at most %.2f frames "
           "in %d repeats; bar %g: %s\n",
           QUEUED, bench->short_frame_ms, cancel, REPEATS, bar_cancel_frames,
           bench_verdict(cancel_met));
}

bool bench_finish(const struct bench_options *options, bool *met)
{
    struct bench bench = {.shape = {.columns = COLUMNS, .rows = ROWS}};

    if (cox_runtime_create(&(const struct cox_runtime_params){.devices = options->devices,
                                                              .log = bench_log},
                           &bench.runtime))
        return false;
    sem_init(&bench.done, 0, 0);
    bench.shape.pitch_bytes = cox_runtime_pitch_bytes(bench.runtime, COLUMNS * WORK_ITEM_BYTES);
    bool good = true;
    for (int s = 0; s < SETS && good; s++)
        for (int b = 0; b < 2 && good; b++)
            good = cox_buffer_create(bench.runtime, bench.shape.pitch_bytes * ROWS,
                                     &bench.buffers[s][b]) == COX_OK;

    good = good && measure(&bench);
    const bool destroy_met = most(bench.destroy_ms) <= bar_destroy_ms;
    const bool cancel_met = most(bench.cancel_frames) <= bar_cancel_frames;
    if (good)
        print(&bench, options->json, destroy_met, cancel_met);
    *met = destroy_met && cancel_met;
    for (int s = 0; s < SETS; s++)
        for (int b = 0; b < 2; b++)
            cox_buffer_destroy(&bench.buffers[s][b]);

    cox_runtime_destroy(&bench.runtime);
    sem_destroy(&bench.done);
    return good;
}
