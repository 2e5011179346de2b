/* What the OpenCL backend does with drivers that lie, fail and hang. Its operations are called directly, without an
 * engine. This program replaces the driver's calls, in front of the loader.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "opencl/cl.h"
#include "host/leak.h"
#include "engine/pipeline.h"
#include "engine/failure/watchdog.h"
#include "support/captured_log.h"
#include "unit/opencl/driver.h"

#include <string.h>
#include <time.h>

enum { ROWS = 64, COLUMNS = 1024, BYTES = ROWS * COLUMNS * 4 };

/* ---- a backend, a pipeline, two buffers ---- */

static const char source[] =
    "kernel void work(global const uint *in, global uint *out, int columns, int first, int rows, int in_origin,\n"
    "                 int out_origin) {\n"
    "    int x = get_global_id(0), y = first + get_global_id(1);\n"
    "    if (x < columns && y < first + rows)\n"
    "        out[(y - out_origin) * columns + x] = in[(y - in_origin) * columns + x] * 3 + y;\n"
    "}\n";

static struct {
    struct cox__backend *backend;
    const struct cox__backend_ops *ops;
    struct cox__watchdog *watchdog; /* NULL: no watchdog */
    struct cox__log log;
    struct cox__pipeline pipeline;
    struct cox__mem *mems[2];
    struct cox__instance *instance; /* the test's first instance, destroyed at its end; NULL if the test destroys it */
    uint32_t *in, *out;
    uint32_t seed;
    _Atomic uint32_t posts;
    struct cox__job *_Atomic posted;
} rig;

static void on_post(void *ctx, struct cox__job *job)
{
    (void)ctx;
    rig.posted = job;
    rig.posts++;
}

static uint32_t value_at(uint32_t i)
{
    return i * 2654435761u + rig.seed;
}

static void fill(void)
{
    rig.seed++;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        rig.in[i] = value_at(i);
        rig.out[i] = 0xeeeeeeee;
    }
}

static void new_buffers(void)
{
    for (int m = 0; m < 2; m++)
        cr_assert_eq(rig.ops->mem_create(rig.backend, NULL, BYTES, &rig.mems[m]), COX_OK);
    rig.in = rig.ops->mem_data(rig.mems[0]);
    rig.out = rig.ops->mem_data(rig.mems[1]);
    fill();
}

static void begin_without_instance(const char *devices)
{
    const struct cox__cl_options options = {
        .devices = devices, .post = {.post = on_post, .watchdog = rig.watchdog}, .log = &rig.log};
    const cox_status status = cox__cl_create(&rig.backend, &options);
    if (status)
        cr_skip_test("skipped, because there is no such device as %s: %s", devices, cox_status_text(status));
    rig.ops = rig.backend->ops;
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = COLUMNS * 4},
        {.name = "out",
         .row_access = COX__ROWS,
         .access = COX__WRITE,
         .coverage = COX__COVERS_ALL,
         .pitch_bytes = COLUMNS * 4}};
    const struct cox__variant variant = {.source = source, .options = ""};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS,  COX__ARG_FIRST_ROW,
                                    COX__ARG_ROWS,      COX__ARG_ORIGIN(0), COX__ARG_ORIGIN(1)};
    const struct cox__stage stage = {
        .kernel = "work", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 7, .args = args};
    cr_assert_eq(cox__pipeline_init(&rig.pipeline,
                                    &(const struct cox__session_spec){.rows = ROWS,
                                                                      .binding_count = 2,
                                                                      .bindings = bindings,
                                                                      .stage_count = 1,
                                                                      .stages = &stage},
                                    &rig.log),
                 COX_OK);
    new_buffers();
}

static struct cox__instance *instance_new(uint32_t device, bool fresh)
{
    struct cox__instance *instance;
    uint32_t most[COX_PASSES_MAX];
    cr_assert_eq(rig.ops->instance_create(rig.backend, device, &rig.pipeline, 2, fresh, &instance, most), COX_OK);
    cr_assert_eq(most[0], ROWS);
    return instance;
}

static void destroy(struct cox__instance *instance)
{
    rig.ops->instance_destroy(rig.backend, instance, NULL, NULL);
    if (instance == rig.instance)
        rig.instance = NULL;
}

static struct cox__job job_of(struct cox__instance *instance, uint32_t slot, uint32_t first, uint32_t rows)
{
    return (struct cox__job){.instance = instance, .slot = slot, .first_row = first, .rows = rows, .mems = rig.mems};
}

/* A backend with one instance, and a job of the whole frame for it. */
static struct cox__job begin(const char *devices)
{
    begin_without_instance(devices);
    rig.instance = instance_new(0, false);
    return job_of(rig.instance, 0, 0, ROWS);
}

static void end(void)
{
    if (!rig.backend)
        return;
    if (rig.instance)
        destroy(rig.instance);
    while (kept_count)
        clReleaseEvent(kept[--kept_count].event);
    for (int m = 0; m < 2; m++)
        if (rig.mems[m])
            rig.ops->mem_destroy(rig.backend, rig.mems[m]);
    rig.ops->destroy(rig.backend);
    rig.backend = NULL;
    cox__pipeline_clear(&rig.pipeline);
}

TestSuite(cl_instances, .fini = end, .timeout = 600);

/* The queues created after `mark` hang. */
static void hang_from(uint32_t mark)
{
    hung_first = mark;
    hung_end = queue_count;
}

static enum cox__job_state poll_once(struct cox__job *job)
{
    return rig.ops->job_poll(rig.backend, job);
}

static enum cox__job_state poll_end(struct cox__job *job)
{
    const time_t wait_ends = time(NULL) + WAIT_SECONDS;
    enum cox__job_state state;
    while ((state = poll_once(job)) == COX__JOB_RUNNING)
        pause_until(wait_ends, "a band's end");
    return state;
}

/* Enqueue all parts of a band. */
static cox_status submit(struct cox__job *job)
{
    const cox_status status = rig.ops->job_submit(rig.backend, job);
    while (status == COX_OK && job->unfinished)
        rig.ops->job_continue(rig.backend, job);
    return status;
}

static void start(struct cox__job *job)
{
    cr_assert_eq(submit(job), COX_OK);
    rig.ops->instance_flush(rig.backend, job->instance);
}

static void run(struct cox__job *job)
{
    start(job);
    cr_assert_eq(poll_end(job), COX__JOB_DONE);
}

static void check_rows(uint32_t first, uint32_t rows)
{
    for (uint32_t i = first * COLUMNS; i < (first + rows) * COLUMNS; i++)
        if (rig.out[i] != value_at(i) * 3 + i / COLUMNS)
            cr_assert_fail("element %u of frame %u", i, rig.seed);
}

static void check_untouched(uint32_t rows)
{
    for (uint32_t i = 0; i < rows * COLUMNS; i++)
        if (rig.out[i] != 0xeeeeeeee)
            cr_assert_fail("element %u of frame %u was written", i, rig.seed);
}

/* One successful band of the whole frame. */
static void run_frame(struct cox__instance *instance)
{
    struct cox__job job = job_of(instance, 0, 0, ROWS);
    fill();
    run(&job);
    cr_assert_neq(job.end_ns, 0);
    check_rows(0, ROWS);
}

static void keep_first(void *into, const void *partial, size_t bytes, void *user)
{
    (void)into, (void)partial, (void)bytes, (void)user;
}

/* ---- an instance's own contexts ---- */

static const char *const selections[] = {"cpu:2x1=shared", "cpu:2x1=mapped", "cpu:2x1=staged"};

Test(cl_instances, a_fresh_instance_gives_the_same_bits_beside_an_old_one)
{
    for (int s = 0; s < 3; s++) {
        begin(selections[s]);
        struct cox__instance *lost = rig.instance, *other = instance_new(1, false);
        for (uint32_t frame = 0; frame < 12; frame++) {
            if (frame == 4) {
                rig.instance = instance_new(0, true);
                destroy(lost);
            }
            const uint32_t cut = frame % 3 ? 24 : 40;
            struct cox__job jobs[2] = {job_of(rig.instance, 0, 0, cut), job_of(other, 0, cut, ROWS - cut)};
            fill();
            for (int j = 0; j < 2; j++)
                start(&jobs[j]);
            for (int j = 0; j < 2; j++)
                cr_assert_eq(poll_end(&jobs[j]), COX__JOB_DONE);
            check_rows(0, ROWS);
        }
        destroy(other);
        end();
    }
}

Test(cl_instances, a_device_that_was_lost_gets_a_context_of_its_own_in_later_sessions_too)
{
    begin_without_instance("cpu");
    destroy(instance_new(0, true));
    const uint32_t before = contexts_released;
    struct cox__instance *second = instance_new(0, false);
    run_frame(second);
    destroy(second);
    cr_assert_eq(contexts_released, before + 1);
}

/* ---- band objects ---- */

/* LONG bands are enough to make all other band objects count as out of use. */
enum { LONG = 1100, RANGES = 24 };

static void run_band(struct cox__instance *instance, uint32_t first, uint32_t rows)
{
    struct cox__job job = job_of(instance, 0, first, rows);
    run(&job);
}

static void run_ranges(struct cox__instance *instance, uint32_t rows)
{
    for (uint32_t r = 0; r < RANGES; r++)
        run_band(instance, r, rows);
}

Test(cl_instances, band_objects_out_of_use_give_their_places_to_new_ones)
{
    begin("cpu=mapped");
    run_band(rig.instance, 0, ROWS);
    run_ranges(rig.instance, 1);
    const int before = buffers;
    run_ranges(rig.instance, 2);
    cr_assert_eq(buffers, before + 2 * RANGES, "objects in use stay");
    for (int i = 0; i < LONG; i++)
        run_band(rig.instance, 0, ROWS);
    run_ranges(rig.instance, 3);
    run_ranges(rig.instance, 4);
    cr_assert_eq(buffers, before + 2 * RANGES);
    run_frame(rig.instance);
}

Test(cl_instances, the_queue_of_a_lost_instance_goes_with_its_band_objects)
{
    begin("cpu=mapped");
    run_ranges(rig.instance, 1);
    struct cox__instance *lost = instance_new(0, true);
    run_frame(lost);
    struct cox__job job = job_of(lost, 1, 0, ROWS);
    flush_code = CL_OUT_OF_RESOURCES;
    start(&job);
    cr_assert_eq(poll_end(&job), COX__JOB_FAILED);
    flush_code = 0;
    destroy(lost);
    for (int i = 0; i < LONG; i++)
        run_band(rig.instance, RANGES, 1);
    const uint32_t before = queues_released;
    run_band(rig.instance, RANGES + 1, 1);
    run_band(rig.instance, RANGES + 2, 1);
    cr_assert_eq(queues_released, before + 1);
    run_frame(rig.instance);
}

/* ---- callbacks ---- */

Test(cl_instances, a_callback_posts_the_band)
{
    struct cox__job job = begin("cpu");
    const time_t wait_ends = time(NULL) + WAIT_SECONDS;
    start(&job);
    while (!rig.posts)
        pause_until(wait_ends, "a callback");
    cr_assert_eq(rig.posted, &job);
    cr_assert_eq(poll_end(&job), COX__JOB_DONE);
}

Test(cl_instances, callbacks_that_never_come_or_are_refused_cost_no_band)
{
    begin("cpu");
    callbacks = CALLBACKS_ARE_KEPT;
    for (int i = 0; i < 10; i++)
        run_frame(rig.instance);
    cr_assert_eq(rig.posts, 0);
    callbacks = CALLBACKS_ARE_REFUSED;
    for (int i = 0; i < 200; i++)
        run_frame(rig.instance);
    destroy(rig.instance);
    cr_assert_eq(rig.posts, 0);
}

Test(cl_instances, a_callback_that_comes_twice_posts_no_band_that_is_over)
{
    struct cox__job job = begin("cpu"), next = job;
    callbacks = CALLBACKS_ARE_KEPT;
    start(&job);
    call_kept(0, CL_COMPLETE);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(rig.posts, 2);
    cr_assert_eq(poll_end(&job), COX__JOB_DONE);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(rig.posts, 2);
    run(&next);
    call_kept(0, CL_COMPLETE);
    call_kept(1, CL_COMPLETE);
    cr_assert_eq(rig.posts, 2);
    destroy(rig.instance);
    for (uint32_t i = 0; i < kept_count; i++)
        call_kept(i, -9999);
    cr_assert_eq(rig.posts, 2);
}

Test(cl_instances, a_callback_that_comes_again_much_later_speaks_for_no_other_band)
{
    enum { BANDS = 200 }; /* more than the initial number of records, so they are reused */
    struct cox__job job = begin("cpu");
    callbacks = CALLBACKS_ARE_KEPT;
    for (uint32_t i = 0; i < BANDS; i++) {
        start(&job);
        for (uint32_t k = 0; k < i; k++)
            call_kept(k, CL_COMPLETE);
        cr_assert_eq(rig.posts, i);
        call_kept(i, CL_COMPLETE);
        cr_assert_eq(rig.posts, i + 1);
        cr_assert_eq(poll_end(&job), COX__JOB_DONE);
    }
}

Test(cl_instances, a_late_callback_does_not_speak_for_the_next_band)
{
    struct cox__job jobs[20] = {begin("cpu")};
    callbacks = CALLBACKS_ARE_KEPT;
    for (uint32_t i = 0; i < 20; i++) {
        jobs[i] = job_of(rig.instance, 0, 0, ROWS);
        start(&jobs[i]);
        if (i)
            call_kept(i - 1, CL_COMPLETE);
        cr_assert_eq(rig.posts, 0);
        cr_assert_eq(poll_end(&jobs[i]), COX__JOB_DONE);
    }
    destroy(rig.instance);
    call_kept(19, CL_COMPLETE);
    cr_assert_eq(rig.posts, 0);
}

/* Start a band whose callback comes while it still runs. */
static void start_with_early_callback(struct cox__job *job)
{
    const uint32_t mark = queue_count;
    *job = begin("cpu");
    callbacks = CALLBACKS_ARE_KEPT;
    hang_from(mark);
    start(job);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(poll_once(job), COX__JOB_RUNNING);
}

Test(cl_instances, a_bands_end_is_not_taken_from_a_callback_that_came_early)
{
    struct cox__job job;
    profile_queued = profile_start = profile_end = 0; /* the device's clock says that it has ended */
    profile_lies = true;
    start_with_early_callback(&job);
    const uint64_t after_the_early_one = rig.ops->now_ns(rig.backend);
    hung_end = 0;
    cr_assert_eq(poll_end(&job), COX__JOB_DONE);
    cr_assert_geq(job.end_ns, after_the_early_one);
    profile_lies = false;
}

Test(cl_instances, a_callback_that_comes_again_after_an_early_one_is_heard)
{
    struct cox__job job;
    start_with_early_callback(&job);
    hung_end = 0;
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(rig.posts, 2);
    cr_assert_eq(poll_end(&job), COX__JOB_DONE);
}

Test(cl_instances, callbacks_that_came_as_they_should_leave_nothing)
{
    rig.log = (struct cox__log){.fn = on_log, .level = COX_LOG_WARN};
    struct cox__job job = begin("cpu");
    callbacks = CALLBACKS_ARE_KEPT;
    for (uint32_t i = 0; i < 10; i++) {
        start(&job);
        cr_assert_eq(clWaitForEvents(1, &kept[i].event), CL_SUCCESS);
        call_kept(i, CL_COMPLETE);
        cr_assert_eq(poll_end(&job), COX__JOB_DONE);
    }
    end();
    cr_assert_str_empty(logged);
}

/* ---- driver calls ---- */

static void ignore_revocation(void *ctx, void *session, void *instance, int role, struct cox__stuck_thread *stuck)
{
    (void)ctx, (void)session, (void)instance, (void)role, (void)stuck;
}

/* If the backend does not report the end of a call, the watchdog gives up an idle device. The call counter is odd
 * inside a call. */
Test(cl_instances, every_call_that_is_watched_is_said_to_be_over)
{
    const struct cox__watchdog_handler handler = {.revoked = ignore_revocation};
    cr_assert_eq(cox__watchdog_create(&rig.watchdog, &handler), COX_OK);
    for (int s = 0; s < 3; s++) {
        struct cox__job job = begin(selections[s]);
        for (int i = 0; i < 3; i++) {
            run(&job);
            const struct cox__driver_call call = cox__watchdog_call_begin(rig.watchdog);
            cr_assert(call.number % 2 && cox__watchdog_call_end(&call), "%s, band %d", selections[s], i);
        }
        end();
    }
    cox__watchdog_destroy(&rig.watchdog);
}

/* ---- partial results ---- */

Test(cl_instances, several_partial_results_of_a_band_begin_with_zeros)
{
    static const char sums_source[] =
        "kernel void sums(global const uint *in, global uint *low, global uint *high, int columns, int rows) {\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    if (x >= columns || y >= rows) return;\n"
        "    atomic_add(low, in[y * columns + x] & 255);\n"
        "    atomic_add(high, in[y * columns + x] >> 24);\n"
        "}\n";
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = COLUMNS * 4},
        {.name = "low", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 4, .merge = keep_first},
        {.name = "high", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 4, .merge = keep_first}};
    const struct cox__variant variant = {.source = sums_source, .options = ""};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2), COX__ARG_COLUMNS,
                                    COX__ARG_ROWS};
    const struct cox__stage stage = {
        .kernel = "sums", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 5, .args = args};
    for (int s = 0; s < 3; s++) {
        begin_without_instance(selections[s]);
        cox__pipeline_clear(&rig.pipeline);
        cr_assert_eq(cox__pipeline_init(&rig.pipeline,
                                        &(const struct cox__session_spec){.rows = ROWS,
                                                                          .binding_count = 3,
                                                                          .bindings = bindings,
                                                                          .stage_count = 1,
                                                                          .stages = &stage},
                                        &rig.log),
                     COX_OK);
        rig.instance = instance_new(0, false);
        struct cox__mem *mems[3] = {rig.mems[0]};
        uint32_t low = 0, high = 0;
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
            low += value_at(i) & 255;
            high += value_at(i) >> 24;
        }
        for (int i = 0; i < 3; i++) {
            struct cox__job job = job_of(rig.instance, 0, 0, ROWS);
            job.mems = mems;
            run(&job);
            cr_assert_eq(*(const uint32_t *)rig.ops->job_partial(rig.backend, &job, 1), low, "%s", selections[s]);
            cr_assert_eq(*(const uint32_t *)rig.ops->job_partial(rig.backend, &job, 2), high, "%s", selections[s]);
        }
        end();
    }
}

/* ---- profiles and statuses ---- */

Test(cl_instances, profiles_that_make_no_sense_are_left_out)
{
    static const struct {
        const char *what;
        cl_ulong queued, start, end;
    } lies[] = {
        {"ends before it starts", 1000, 3000, 2000},
        {"starts before the band was enqueued", 30000000000, 20000000000, 20000001000},
        {"nothing was filled in", 0, 0, 0},
        {"only the end was filled in", 0, 0, 1000},
        {"longer than the band", 1000, 2000, 2000 + 3600000000000ull},
        {"as long as can be", 0, 1, UINT64_MAX},
        {"began at the end of time", 1, UINT64_MAX, 0},
    };
    begin_without_instance("cpu=staged");
    rig.pipeline.profile = true;
    rig.instance = instance_new(0, false);
    struct cox__job job = job_of(rig.instance, 0, 0, ROWS);
    run(&job);
    cr_assert_neq(job.kernel_ns, 0, "the driver reports none, so the test checks nothing");
    profile_lies = true;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        profile_queued = lies[i].queued;
        profile_start = lies[i].start;
        profile_end = lies[i].end;
        job.kernel_ns = job.copy_in_ns = job.copy_out_ns = 77;
        run(&job);
        cr_assert(!job.kernel_ns && !job.copy_in_ns && !job.copy_out_ns, "%s", lies[i].what);
    }
    profile_lies = false;
}

/* Only the end of a band is timed, and nothing if the engine sees the end without delay. */
Test(cl_instances, a_staged_device_times_no_copies_and_kernels_unless_asked)
{
    for (int watched = 0; watched < 2; watched++) {
        begin_without_instance("cpu=staged");
        rig.pipeline.watched = watched;
        rig.instance = instance_new(0, false);
        for (int i = 0; i < 3; i++) { /* the device's clock is trusted after a few bands */
            struct cox__job job = job_of(rig.instance, 0, 0, ROWS);
            profile_calls = 0;
            run(&job);
            cr_assert(!job.kernel_ns && !job.copy_in_ns && !job.copy_out_ns);
            cr_assert_neq(job.end_ns, 0);
            cr_assert_eq(profile_calls > 0, !watched);
        }
        end();
    }
}

/* ---- pieces ---- */

enum { TALL = 1100, TALL_BYTES = TALL * COLUMNS * 4 };

/* The kernel leaves elements alone, so their memory must have been cleared. */
static const char pieces_source[] =
    "kernel void work(global const uint *in, global const uint *wide, global uint *out, int columns, int first,\n"
    "                 int rows, int frame_rows, int in_origin, int wide_origin, int out_origin) {\n"
    "    int x = get_global_id(0), y = first + get_global_id(1);\n"
    "    if (x >= columns || y >= first + rows)\n"
    "        return;\n"
    "    uint v = in[(y - in_origin) * columns + x];\n"
    "    int up = max(y - 2, 0), down = min(y + 2, frame_rows - 1);\n"
    "    if (v & 4)\n"
    "        out[(y - out_origin) * columns + x] = v + 3 * wide[(up - wide_origin) * columns + x] +\n"
    "                                              5 * wide[(down - wide_origin) * columns + x];\n"
    "}\n";

static void make_tall_pipeline(void)
{
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = COLUMNS * 4},
        {.name = "wide", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = COLUMNS * 4, .halo_rows = 2},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = COLUMNS * 4}};
    const struct cox__variant variant = {.source = pieces_source, .options = ""};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2),  COX__ARG_COLUMNS,
                                    COX__ARG_FIRST_ROW, COX__ARG_ROWS,      COX__ARG_FRAME_ROWS, COX__ARG_ORIGIN(0),
                                    COX__ARG_ORIGIN(1), COX__ARG_ORIGIN(2)};
    const struct cox__stage stage = {
        .kernel = "work", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 10, .args = args};
    cox__pipeline_clear(&rig.pipeline);
    cr_assert_eq(cox__pipeline_init(&rig.pipeline,
                                    &(const struct cox__session_spec){.rows = TALL,
                                                                      .binding_count = 3,
                                                                      .bindings = bindings,
                                                                      .stage_count = 1,
                                                                      .stages = &stage},
                                    &rig.log),
                 COX_OK);
}

static void check_tall_rows(uint32_t *const data[3], uint32_t first, uint32_t end)
{
    for (uint32_t y = first; y < end; y++)
        for (uint32_t x = 0; x < COLUMNS; x++) {
            const uint32_t up = y < 2 ? 0 : y - 2, down = y + 2 < TALL ? y + 2 : TALL - 1;
            const uint32_t v = data[0][y * COLUMNS + x];
            uint32_t want = v + 3 * data[1][up * COLUMNS + x] + 5 * data[1][down * COLUMNS + x];
            if (!(v & 4))
                want = 0;
            if (data[2][y * COLUMNS + x] != want)
                cr_assert_fail("row %u, column %u: %u instead of %u", y, x, data[2][y * COLUMNS + x], want);
        }
}

/* Pieces of 2 MB or more: three of the larger band below. */
Test(cl_instances, a_band_in_pieces_gives_the_rows_of_one_in_one_piece)
{
    const uint32_t wishes[] = {1, 2, 3, 4, 64}, counts[] = {1, 2, 3, 3, 3};
    struct cox__mem *mems[3];
    uint32_t *data[3], most[COX_PASSES_MAX];

    begin_without_instance("cpu=staged");
    make_tall_pipeline();
    cr_assert_eq(rig.ops->instance_create(rig.backend, 0, &rig.pipeline, 2, false, &rig.instance, most), COX_OK);
    for (int m = 0; m < 3; m++) {
        cr_assert_eq(rig.ops->mem_create(rig.backend, NULL, TALL_BYTES, &mems[m]), COX_OK);
        data[m] = rig.ops->mem_data(mems[m]);
    }

    for (uint32_t w = 0; w < 5; w++)
        for (uint32_t b = 0; b < 2; b++) {
            const uint32_t first = b ? 514 : 0, rows = b ? 62 : 540 + w;
            struct cox__job job = job_of(rig.instance, 0, first, rows);
            job.mems = mems;
            job.alone = true;
            job.pieces = wishes[w];
            rig.seed++;
            for (uint32_t i = 0; i < TALL * COLUMNS; i++) {
                data[0][i] = value_at(i);
                data[1][i] = value_at(i ^ 0x5555);
                data[2][i] = 0xeeeeeeee;
            }

            run(&job);
            cr_expect_eq(job.pieces, b ? 1 : counts[w], "%u of %u rows", job.pieces, rows);
            check_tall_rows(data, first, first + rows);
        }

    for (int m = 0; m < 3; m++)
        rig.ops->mem_destroy(rig.backend, mems[m]);
}

Test(cl_instances, a_band_that_is_polled_without_a_pause_is_not_posted)
{
    struct cox__job job = begin("cpu");
    job.polled = true;
    run(&job);
    cr_assert_eq(rig.posts, 0);
    check_rows(0, ROWS);
}

/* What a band's state is after a status query:
 *   An unknown positive status: it runs.
 *   The query fails: it will have failed.
 *   An unknown negative status: it has failed. */
Test(cl_instances, what_a_status_query_says_decides_what_becomes_of_a_band)
{
    static const struct {
        cl_int status, code;
        bool failing;
        enum cox__job_state during, end;
    } cases[] = {{12345, 0, false, COX__JOB_RUNNING, COX__JOB_DONE},
                 {0, CL_INVALID_EVENT, true, COX__JOB_RUNNING, COX__JOB_FAILED},
                 {-9999, 0, true, COX__JOB_FAILED, COX__JOB_FAILED}};
    for (int c = 0; c < 3; c++) {
        struct cox__job job = begin("cpu");
        start(&job);
        cr_assert(!job.failing);
        query_status = cases[c].status;
        query_code = cases[c].code;
        for (int i = 0; i < 5 && cases[c].during == COX__JOB_RUNNING; i++) {
            cr_assert_eq(poll_once(&job), COX__JOB_RUNNING);
            cr_assert_eq(job.failing, cases[c].failing);
        }
        if (cases[c].during == COX__JOB_RUNNING)
            query_status = query_code = 0;
        cr_assert_eq(poll_end(&job), cases[c].end, "status %d, code %d", cases[c].status, cases[c].code);
        query_status = query_code = 0;
        if (cases[c].end == COX__JOB_DONE)
            check_rows(0, ROWS);
        end();
    }
}

Test(cl_instances, a_flush_that_fails_fails_the_bands_under_way_once_they_have_ended)
{
    const uint32_t mark = queue_count;
    struct cox__job job = begin("cpu");
    hang_from(mark);
    flush_code = CL_OUT_OF_RESOURCES;
    start(&job);
    flush_code = 0;
    cr_assert_eq(poll_once(&job), COX__JOB_RUNNING);
    cr_assert(job.failing);
    hung_end = 0;
    cr_assert_eq(poll_end(&job), COX__JOB_FAILED);
    run_frame(rig.instance); /* and for no other frame */
}

/* ---- what stays on the device ---- */

static struct cox__job keeping_job(uint32_t first, uint32_t rows)
{
    struct cox__job job = job_of(rig.instance, 0, first, rows);
    job.resident = 3;
    job.set = 1;
    return job;
}

static void keep_rows_on_the_device(void)
{
    rig.pipeline.resident = 3;
    rig.pipeline.sets = 2;
}

Test(cl_instances, rows_stay_on_the_device_until_they_are_fetched)
{
    enum { HALF = ROWS / 2 };
    begin_without_instance("cpu=staged");
    keep_rows_on_the_device();
    rig.instance = instance_new(0, false);
    cr_assert_eq(rig.ops->instance_resident(rig.backend, rig.instance), 3);
    struct cox__job job = keeping_job(0, HALF);
    job.ranges[job.range_count++] = (struct cox__job_range){0, 0, ROWS}; /* more than this band reads */
    run(&job);
    check_untouched(ROWS);
    struct cox__job rest = keeping_job(HALF, ROWS - HALF); /* copies nothing in: the device has the rows */
    rest.ranges[rest.range_count++] = (struct cox__job_range){0, HALF, ROWS - HALF};
    rest.out = 2;
    run(&rest);
    check_rows(HALF, ROWS - HALF);
    struct cox__job fetch = keeping_job(0, 1);
    fetch.kind = COX__JOB_FETCH;
    fetch.ranges[fetch.range_count++] = (struct cox__job_range){1, 1, HALF - 1};
    run(&fetch);
    check_rows(1, ROWS - 1);
    check_untouched(1);
    struct cox__job again = keeping_job(0, HALF);
    again.back[again.back_count++] = (struct cox__job_range){1, 0, 1};
    run(&again);
    check_rows(0, ROWS);
}

/* The number of buffers after an instance was created. It counts releases of sub-buffers, but not their creation. */
static int buffers_after_an_instance(void)
{
    const int before = buffers;
    struct cox__instance *instance = instance_new(0, false);
    cr_assert_eq(rig.ops->instance_resident(rig.backend, instance), 0);
    run_frame(instance);
    destroy(instance);
    return buffers - before;
}

Test(cl_instances, nothing_is_kept_where_there_is_no_memory_for_it)
{
    begin_without_instance("cpu=staged");
    const int plain = buffers_after_an_instance();
    keep_rows_on_the_device();
    for (uint32_t which = 1; which <= 4; which++) {
        refuse_buffer = 4 + which; /* after the buffers of two queue slots */
        cr_assert_eq(buffers_after_an_instance(), plain);
        cr_assert_eq(refuse_buffer, 0);
    }
}

/* ---- memory between fused stages ---- */

/* Bindings: 0 is the input, 1 to OWN are a band's own, and LAST is the output. Stage s writes binding s + 1. */
enum { STAGES = 8, OWN = STAGES - 1, LAST = STAGES, SLOTS = 2 };

static const char chain_source[] =
    "kernel void next(global const uint *from, global uint *to, global const uint *also, int columns, int first,\n"
    "                 int rows, int from_origin, int to_origin, int also_origin, int frame) {\n"
    "    int x = get_global_id(0), y = first + get_global_id(1), up = max(y - 1, 0), down = min(y + 1, frame - 1);\n"
    "    if (x < columns && y < first + rows)\n"
    "        to[(y - to_origin) * columns + x] = from[(down - from_origin) * columns + x] * 3 +\n"
    "                                            from[(up - from_origin) * columns + x] * 7 +\n"
    "                                            also[(y - also_origin) * columns + x] * 5 + x;\n"
    "}\n";

/* Every stage reads what the one before it wrote. The last stage reads `also`, too. `large` has rows of twice the
 * bytes; 0: none. */
static void make_chain(uint32_t also, uint32_t large)
{
    const struct cox__variant variant = {.source = chain_source, .options = ""};
    struct cox__binding bindings[LAST + 1];
    struct cox__arg args[STAGES][10];
    struct cox__stage stages[STAGES];

    for (uint32_t i = 0; i <= LAST; i++)
        bindings[i] = (struct cox__binding){.row_access = COX__HALO,
                                            .access = i ? COX__READ_WRITE : COX__READ,
                                            .pitch_bytes = COLUMNS * (i && i == large ? 8 : 4),
                                            .halo_rows = 1,
                                            .scratch = i > 0};
    bindings[LAST] = (struct cox__binding){
        .row_access = COX__ROWS, .access = COX__WRITE, .coverage = COX__COVERS_ALL, .pitch_bytes = COLUMNS * 4};

    for (uint32_t s = 0; s < STAGES; s++) {
        const uint32_t other = s == STAGES - 1 ? also : s;
        memcpy(args[s],
               (const struct cox__arg[]){COX__ARG_BUFFER(s), COX__ARG_BUFFER(s + 1), COX__ARG_BUFFER(other),
                                         COX__ARG_COLUMNS, COX__ARG_FIRST_ROW, COX__ARG_ROWS, COX__ARG_ORIGIN(s),
                                         COX__ARG_ORIGIN(s + 1), COX__ARG_ORIGIN(other), COX__ARG_FRAME_ROWS},
               sizeof args[s]);
        stages[s] = (struct cox__stage){.kernel = "next",
                                        .columns = COLUMNS,
                                        .variant_count = 1,
                                        .variants = &variant,
                                        .arg_count = 10,
                                        .args = args[s]};
    }

    cox__pipeline_clear(&rig.pipeline);
    cr_assert_eq(cox__pipeline_init(&rig.pipeline,
                                    &(const struct cox__session_spec){.rows = ROWS,
                                                                      .binding_count = LAST + 1,
                                                                      .bindings = bindings,
                                                                      .stage_count = STAGES,
                                                                      .stages = stages},
                                    &rig.log),
                 COX_OK);
}

/* Run bands of a frame and compare them with what the stages compute one after another. */
static void run_chain(uint32_t also)
{
    static uint32_t held[LAST + 1][ROWS * COLUMNS];
    struct cox__mem *mems[LAST + 1] = {[0] = rig.mems[0], [LAST] = rig.mems[1]};
    const uint32_t cuts[] = {0, 13, 40, ROWS};

    fill();
    memcpy(held[0], rig.in, BYTES);
    for (uint32_t s = 0; s < STAGES; s++)
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
            const uint32_t up = i < COLUMNS ? i : i - COLUMNS, down = i / COLUMNS + 1 < ROWS ? i + COLUMNS : i;
            held[s + 1][i] = held[s][down] * 3 + held[s][up] * 7 + held[s == STAGES - 1 ? also : s][i] * 5 +
                             i % COLUMNS;
        }

    for (int c = 0; c < 3; c++) {
        struct cox__job job = job_of(rig.instance, c % SLOTS, cuts[c], cuts[c + 1] - cuts[c]);
        job.mems = mems;
        run(&job);
    }
    cr_assert(memcmp(rig.out, held[LAST], BYTES) == 0);
}

/* Buffers that each queue slot has for the bands' own bindings. */
static int own_buffers(const char *devices, uint32_t also, uint32_t large)
{
    const int rows_copied = strstr(devices, "staged") ? 2 : 0; /* the input and the output */
    begin_without_instance(devices);
    make_chain(also, large);

    const int before = buffers_created;
    rig.instance = instance_new(0, false);
    const int made = buffers_created - before;
    run_chain(also);
    end();

    cr_assert_eq(made % SLOTS, 0);
    return made / SLOTS - rows_copied;
}

/* The memory of one stage's rows is free again two stages later. */
Test(cl_instances, stages_far_apart_use_the_same_memory)
{
    for (int s = 0; s < 3; s++) {
        const char *devices = selections[s];
        cr_expect_eq(own_buffers(devices, OWN, 0), 2, "%s", devices);
        cr_expect_eq(own_buffers(devices, 1, 0), 3, "%s: the last stage reads the first one's rows", devices);
        cr_expect_eq(own_buffers(devices, OWN, 5), 3, "%s: rows that do not fit get memory of their own", devices);
        cr_expect_eq(own_buffers(devices, OWN, 1), 2, "%s: large memory is used by smaller rows", devices);
    }
}

Test(cl_instances, no_memory_between_stages_gives_back_what_is_shared)
{
    begin_without_instance("cpu:2x1=mapped");
    make_chain(OWN, 0);
    for (uint32_t which = 1; which <= 2 * SLOTS; which++) {
        struct cox__instance *instance = NULL;
        uint32_t most[COX_PASSES_MAX];
        refuse_buffer = which;
        cr_expect_neq(rig.ops->instance_create(rig.backend, 0, &rig.pipeline, SLOTS, false, &instance, most), COX_OK);
        cr_expect_null(instance);
        cr_assert_eq(refuse_buffer, 0);
    }
    rig.instance = instance_new(0, false);
    run_chain(OWN);
}

/* ---- no memory ---- */

Test(cl_instances, no_memory_at_the_first_launch_is_said_at_submission)
{
    struct cox__job job = begin("cpu");
    refuse_launch = 1;
    cr_assert_eq(submit(&job), COX_E_DEVICE_MEMORY);
    check_untouched(ROWS);
    run_frame(rig.instance); /* the memory that was unmapped without use is mapped again */
}

Test(cl_instances, an_argument_that_was_refused_is_set_again)
{
    struct cox__job job = begin("cpu");
    job.rows = ROWS / 2;
    run(&job);
    job.rows = ROWS;
    refuse_arg = 3; /* after those of the buffers: the number of rows */
    cr_assert_neq(submit(&job), COX_OK);
    cr_assert_eq(refuse_arg, 0);
    run_frame(rig.instance);
}

Test(cl_instances, no_memory_after_something_was_enqueued_is_a_band_that_fails)
{
    const uint32_t mark = queue_count;
    struct cox__job job = begin("cpu=staged");
    hang_from(mark);
    refuse_launch = 1; /* after its copy */
    cr_assert_eq(submit(&job), COX_OK);
    cr_assert(job.failing);
    cr_assert_eq(poll_once(&job), COX__JOB_RUNNING);
    cr_assert(job.failing);
    hung_end = 0;
    cr_assert_eq(poll_end(&job), COX__JOB_FAILED);
    refuse_write = 1;
    cr_assert_eq(submit(&job), COX_E_DEVICE_MEMORY);
    run_frame(rig.instance);
}

Test(cl_instances, no_memory_for_a_bands_object_is_said_at_submission)
{
    struct cox__job job = begin("cpu");
    for (uint32_t which = 1; which <= 2; which++) {
        refuse_buffer = which;
        cr_assert_eq(submit(&job), COX_E_DEVICE_MEMORY);
    }
    run_frame(rig.instance);
}

Test(cl_instances, memory_is_had_where_none_can_be_pinned)
{
    struct cox__mem *mem;
    begin_without_instance("cpu=staged");
    refuse_buffer = 1;
    cr_assert_eq(rig.ops->mem_create(rig.backend, NULL, BYTES, &mem), COX_OK);
    cr_assert_not_null(rig.ops->mem_data(mem));
    cr_assert_eq(rig.ops->mem_bytes(mem), BYTES);
    rig.ops->mem_destroy(rig.backend, mem);
}

/* ---- devices that hang ---- */

/* A backend whose first instance has one band that never ends, and one that has ended, so both kinds of band
 * objects exist. Returns an instance of the second device. The first instance is abandoned. */
static struct cox__instance *begin_with_a_hung_one(const char *devices, struct cox__job *job)
{
    begin_without_instance(devices);
    const uint32_t mark = queue_count;
    rig.instance = instance_new(0, false);
    run_frame(rig.instance);
    *job = job_of(rig.instance, 1, 0, ROWS / 2);
    hang_from(mark);
    start(job);
    cr_assert_eq(poll_once(job), COX__JOB_RUNNING);
    asked_of_hung = 0;
    struct cox__instance *other = instance_new(1, false);
    rig.ops->instance_abandon(rig.backend, rig.instance);
    return other;
}

Test(cl_instances, nothing_waits_for_an_abandoned_instance)
{
    for (int s = 0; s < 3; s++) {
        struct cox__job job;
        struct cox__mem *later;
        rig.posts = 0;
        callbacks = CALLBACKS_ARE_KEPT;
        struct cox__instance *other = begin_with_a_hung_one(selections[s], &job);
        for (uint32_t i = 0; i < kept_count; i++)
            call_kept(i, CL_COMPLETE);
        cr_assert_eq(rig.posts, 0);

        struct cox__mem *hostage[2] = {rig.mems[0], rig.mems[1]};
        new_buffers();
        struct cox__instance *fresh = instance_new(0, true);
        run_frame(other);
        run_frame(fresh);
        rig.ops->mem_abandon(rig.backend, hostage[1]);
        rig.ops->mem_destroy(rig.backend, hostage[0]);
        cr_assert_eq(rig.ops->mem_create(rig.backend, NULL, BYTES, &later), COX_OK);
        rig.ops->mem_destroy(rig.backend, later);
        cr_assert_eq(asked_of_hung, 0, "%s", selections[s]);

        hung_end = 0;
        destroy(rig.instance);
        destroy(fresh);
        destroy(other);
        end();
    }
}

Test(cl_instances, what_an_abandoned_instance_shares_is_used_as_before_once_it_is_over)
{
    struct cox__job job;
    struct cox__instance *other = begin_with_a_hung_one("cpu:2x1=shared", &job);
    run_frame(other);
    cr_assert_eq(asked_of_hung, 0);
    hung_end = 0;
    destroy(rig.instance);
    const uint32_t before = contexts_released;
    run_frame(other);
    destroy(other);
    end();
    cr_assert_eq(contexts_released, before + 1);
}

Test(cl_instances, what_a_hung_device_had_is_released_once_it_is_over)
{
    struct cox__job job;
    struct cox__instance *other = begin_with_a_hung_one("cpu:2x1=mapped", &job);
    for (int m = 0; m < 2; m++) {
        rig.ops->mem_abandon(rig.backend, rig.mems[m]);
        rig.mems[m] = NULL;
    }
    cr_expect_gt(buffers, 0);
    hung_end = 0;
    destroy(rig.instance);
    cr_expect_eq(buffers, 0);
    destroy(other);
}

Test(cl_instances, a_context_with_an_abandoned_instance_is_not_released)
{
    struct cox__job job;
    struct cox__instance *other = begin_with_a_hung_one("cpu:2x1=shared", &job), *hung = rig.instance;
    destroy(other);
    const uint32_t before = contexts_released;
    for (int m = 0; m < 2; m++) {
        rig.ops->mem_abandon(rig.backend, rig.mems[m]);
        rig.mems[m] = NULL;
    }
    rig.instance = NULL;
    end();
    cr_assert_eq(contexts_released, before);
    cr_assert_eq(asked_of_hung, 0);
    cox__leak(hung);
}

Test(cl_instances, a_device_that_does_not_answer_takes_no_part)
{
    struct cox__instance *instance;
    uint32_t most[COX_PASSES_MAX];
    const uint32_t before = contexts_released;
    begin_without_instance("cpu");
    markers_never_end = true;
    cr_assert_eq(rig.ops->instance_create(rig.backend, 0, &rig.pipeline, 2, false, &instance, most), COX_E_DEVICE_LOST);
    end();
    cr_assert_eq(contexts_released, before);
}

Test(cl_instances, memory_that_a_device_does_not_give_back_in_time_is_leaked)
{
    time_t waited[2];
    begin("cpu");
    run_frame(rig.instance);
    markers_never_end = true;
    for (int m = 1; m >= 0; m--) {
        const time_t before = seconds_ahead;
        rig.ops->mem_destroy(rig.backend, rig.mems[m]);
        rig.mems[m] = NULL;
        waited[m] = seconds_ahead - before;
    }
    rig.out[0] = 1; /* the memory still exists */
    markers_never_end = false;
    cr_expect_lt(2 * waited[0], waited[1], "after a device was late once it is not waited for as long: %ld s, then %ld",
                 (long)waited[1], (long)waited[0]);
}
