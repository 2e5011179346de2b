/* Many threads submit to sessions whose policy leaves rows in the pool and asks for shadow runs. One device is lost
 * meanwhile, and sessions are destroyed during a shadow run. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

enum { THREADS = 3, ROUNDS = 12, FRAMES = 60, ROWS = 64, COLUMNS = 16 };

/* ---- a random policy ---- */

struct chance {
    uint64_t seed; /* not atomic: only one thread at a time calls a policy */
    uint64_t observed, shadows, frames;
};

static size_t chance_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct chance);
}

static cox_status chance_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)view, (void)options;
    ((struct chance *)state)->seed = 1;
    return COX_OK;
}

static cox_status chance_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    struct chance *chance = state;
    const uint32_t first = (uint32_t)(rig_random(&chance->seed) % (view->rows + 1));
    uint32_t device = (uint32_t)(rig_random(&chance->seed) % view->device_count);
    while (!view->devices[device].usable)
        device = (device + 1) % view->device_count;
    if (first > 0)
        out->bands[out->band_count++] = (struct cox_band){device, 0, first};
    out->pool_first_row = first;
    out->pool_rows = view->rows - first;
    const uint32_t other = (device + 1) % view->device_count;
    if (view->shadow && view->devices[other].usable && other != device)
        out->shadow = (struct cox_band){other, 0, 1 + (uint32_t)(rig_random(&chance->seed) % view->rows)};
    return COX_OK;
}

static void chance_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                        struct cox_chunk *out)
{
    struct chance *chance = state;
    (void)view;
    out->rows = (uint32_t)(rig_random(&chance->seed) % (offer->rows + 2)); /* may be 0 or more than are left */
}

static void chance_observe(void *state, const struct cox_measurement *measurement)
{
    struct chance *chance = state;
    chance->observed++;
    chance->shadows += (measurement->flags & COX_MEASURED_SHADOW) != 0;
}

static void chance_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    struct chance *chance = state;
    CHECK(measurement->frame >= chance->frames);
    chance->frames = measurement->frame + 1;
}

static const struct cox_policy chance_policy = {.name = "chance",
                                                .state_bytes = chance_bytes,
                                                .init = chance_init,
                                                .split = chance_split,
                                                .observe = chance_observe,
                                                .assign = chance_next,
                                                .observe_frame = chance_observe_frame};

/* ---- threads ---- */

struct shared {
    struct rig *rig;
    cox_session *session;
    uint64_t frames, shadows; /* not atomic: only the report callback uses them */
};

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct shared *shared = user;
    shared->shadows += report->shadow;
    shared->frames += !report->shadow && !report->warmup;
}

static double meter(void *user)
{
    (void)user;
    return 1;
}

/* Half of the threads wait inside cox_session_run, where they run the engine themselves. */
static void *submit_frames(void *data)
{
    struct shared *shared = data;
    struct rig_frames *frames = rig_frames_new(shared->rig, ROWS, COLUMNS, COLUMNS, 1);
    cox_buffer *buffers[2];
    const struct cox__frame_spec frame = race_map_frame(frames, 0, buffers);
    for (uint32_t i = 0; i < FRAMES; i++) {
        memset(cox_buffer_data(frames->out[0]), 0, ROWS * COLUMNS);
        CHECK(cox__session_run(shared->session, &frame) == COX_OK);
        race_right("frame", i, rig_check(frames, 0));
        /* The input belongs to the application again, even if a shadow run still uses a copy of its rows. */
        ((unsigned char *)cox_buffer_data(frames->in[0]))[i] ^= 0x5a;
    }
    rig_frames_free(&frames);
    return NULL;
}

static void *submit_and_go_on(void *data)
{
    struct shared *shared = data;
    struct rig_frames *frames = rig_frames_new(shared->rig, ROWS, COLUMNS, COLUMNS, FRAMES);
    for (uint32_t i = 0; i < FRAMES; i++)
        CHECK(rig_submit(frames, shared->session, i, false) == COX_OK);
    cox_session_wait(shared->session);
    for (uint32_t i = 0; i < FRAMES; i++)
        race_right("frame", i, rig_check(frames, i));
    rig_frames_free(&frames);
    return NULL;
}

int main(void)
{
    uint64_t shadows = 0;
    check_limit("frames with rows on demand and shadows");
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rig *rig =
            rig_new(&(const struct fake_params){.device_count = 3,
                                                .real_time = true,
                                                .devices = {{.fixed_ns = 20e3, .ns_per_row = 500},
                                                            {.fixed_ns = 50e3, .jitter = 0.5},
                                                            {.mode = COX_MODE_STAGED, .ns_per_row = 20e3}}});
        struct shared shared = {.rig = rig};
        pthread_t goes_on;
        if (round % 3)
            fake_script(rig_fake(rig),
                        &(struct fake_fault){.kind = round % 3 == 1 ? FAKE_DEVICE_DIES : FAKE_SUBMIT_FAILS,
                                             .device = round / 3 % 3,
                                             .skip = 20 + 7 * round,
                                             .status = COX_E_DEVICE_LOST});
        shared.session = race_map_session(rig, ROWS, COLUMNS,
                                          &(const struct cox__session_spec){.custom_policy = &chance_policy,
                                                                            .in_flight = 1 + round % 4,
                                                                            .no_warmup = round % 2,
                                                                            .report = on_report,
                                                                            .report_user = &shared,
                                                                            .meter = meter});
        race_start(&goes_on, 1, submit_and_go_on, &shared, 0);
        race_run(THREADS - 1, submit_frames, &shared, 0);
        race_join(&goes_on, 1);
        cox_session_destroy(&shared.session);
        CHECK(shared.frames == THREADS * FRAMES);
        shadows += shared.shadows;
        race_end("round", round, &rig);
    }
    CHECK(shadows > 0);
    printf("%u frames, %llu shadows\n", ROUNDS * THREADS * FRAMES, (unsigned long long)shadows);
    return 0;
}
