/* Tests of the fake backend itself: faults do what they are documented to do, and the fake records calls that no
 * driver would accept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/fake_backend.h"
#include "engine/state.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(fake_backend, .timeout = 300);

enum { ROWS = 8, PITCH = 16, SLOTS = 4, ROW_NS = 1000, BAND_NS = ROWS * ROW_NS };

static void add_one(const struct fake_args *args)
{
    for (uint32_t i = 0; i < args->rows * PITCH; i++)
        args->data[1][i] = (unsigned char)(args->data[0][i] + 1);
}

/* One pipeline, two devices, two sets of memory, and any number of jobs. */
static struct bench {
    struct fake *fake;
    struct cox__backend *backend;
    const struct cox__backend_ops *ops;
    struct cox__log log;
    struct cox__pipeline pipeline;
    struct cox__mem *mems[2][2];
    unsigned char params[4];
    uint32_t posts;
    struct cox__instance *instances[4]; /* NULL after they are destroyed */
    struct cox__job job;                /* the job of `begin_with` */
} bench;

static void count_post(void *ctx, struct cox__job *job)
{
    (void)ctx, (void)job;
    bench.posts++;
}

static void make_pipeline(const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    params.rows = ROWS;
    params.params_bytes = sizeof bench.params;
    cr_assert_eq(cox__pipeline_init(&bench.pipeline, &params, &bench.log), COX_OK);
    for (uint32_t p = 0; p < bench.pipeline.pass_count; p++)
        bench.pipeline.passes[p].row_alignment = 1;
}

static const struct cox__variant variant = {.source = "fake"};
static const struct cox__stage stage = {.kernel = "add_one", .variant_count = 1, .variants = &variant};

static void begin(void)
{
    static const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = PITCH},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = PITCH},
    };
    memset(&bench, 0, sizeof bench);
    bench.fake = fake_new(&(const struct fake_params){.device_count = 2,
                                                      .devices = {{.ns_per_row = ROW_NS}, {.ns_per_row = ROW_NS}},
                                                      .kernel_count = 1,
                                                      .kernels = {{"add_one", add_one}}});
    cr_assert_eq(fake_make(bench.fake, (struct cox__post){.post = count_post}, &bench.log, &bench.backend), COX_OK);
    bench.ops = bench.backend->ops;
    make_pipeline(&(const struct cox__session_spec){
        .binding_count = 2, .bindings = bindings, .stage_count = 1, .stages = &stage});
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < 2; i++) {
            cr_assert_eq(bench.ops->mem_create(bench.backend, NULL, ROWS * PITCH, &bench.mems[s][i]), COX_OK);
            memset(bench.ops->mem_data(bench.mems[s][i]), 10 * (int)s, ROWS * PITCH);
        }
}

static cox_status create(uint32_t device, bool fresh, struct cox__instance **out)
{
    uint32_t max_rows[COX_PASSES_MAX];
    return bench.ops->instance_create(bench.backend, device, &bench.pipeline, SLOTS, fresh, out, max_rows);
}

static struct cox__instance *instance_of(uint32_t device, bool fresh)
{
    uint32_t i = 0;
    while (bench.instances[i])
        i++;
    cr_assert_eq(create(device, fresh, &bench.instances[i]), COX_OK);
    return bench.instances[i];
}

static void destroy(struct cox__instance *instance)
{
    for (uint32_t i = 0; i < 4; i++)
        if (bench.instances[i] == instance)
            bench.instances[i] = NULL;
    bench.ops->instance_destroy(bench.backend, instance, NULL, NULL);
}

static void abandon(struct cox__instance *instance)
{
    bench.ops->instance_abandon(bench.backend, instance);
}

/* Leak both buffers of the first set. */
static void abandon_memory(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        bench.ops->mem_abandon(bench.backend, bench.mems[0][i]);
        bench.mems[0][i] = NULL;
    }
}

static struct cox__job job_on(struct cox__instance *instance, uint32_t slot, uint32_t set)
{
    return (struct cox__job){
        .instance = instance, .slot = slot, .rows = ROWS, .mems = bench.mems[set], .params = bench.params};
}

static void start(struct cox__job *job)
{
    cr_assert_eq(bench.ops->job_submit(bench.backend, job), COX_OK);
    bench.ops->instance_flush(bench.backend, job->instance);
}

static enum cox__job_state poll(struct cox__job *job)
{
    return bench.ops->job_poll(bench.backend, job);
}

/* Open a bench, start a job on it and inject this fault. */
static struct cox__instance *begin_with(enum fake_fault_kind kind, uint64_t delay_ns)
{
    begin();
    struct cox__instance *instance = instance_of(0, false);
    if (kind)
        FAKE_FAULT(bench.fake, .kind = kind, .delay_ns = delay_ns);
    bench.job = job_on(instance, 0, 0);
    start(&bench.job);
    return instance;
}

static void let_pass(uint64_t ns)
{
    const uint64_t until = fake_now(bench.fake) + ns;
    while (fake_now(bench.fake) < until)
        bench.ops->advance(bench.backend, until);
}

/* The first byte of the set's output. */
static unsigned char first_out(uint32_t set)
{
    return *(unsigned char *)bench.ops->mem_data(bench.mems[set][1]);
}

/* With `clean`, no forbidden call may have been recorded. */
static void end(bool clean)
{
    for (uint32_t i = 0; i < 4; i++)
        if (bench.instances[i])
            bench.ops->instance_destroy(bench.backend, bench.instances[i], NULL, NULL);
    for (uint32_t m = 0; m < 4; m++)
        if (bench.mems[m / 2][m % 2])
            bench.ops->mem_destroy(bench.backend, bench.mems[m / 2][m % 2]);
    bench.ops->destroy(bench.backend);
    if (clean)
        cr_assert_str_empty(fake_violation(bench.fake));
    else
        cr_assert_gt(fake_violations(bench.fake), 0);
    fake_free(&bench.fake);
    cox__pipeline_clear(&bench.pipeline);
}

/* ---- what each fault does ---- */

Test(fake_backend, a_hang_that_ends_reads_and_writes_at_its_late_end)
{
    begin_with(FAKE_HANGS, 1000000);
    let_pass(BAND_NS + 999999);
    cr_assert_eq(poll(&bench.job), COX__JOB_RUNNING);
    cr_assert_eq(first_out(0), 0);
    memset(bench.ops->mem_data(bench.mems[0][0]), 77, ROWS * PITCH);
    let_pass(1);
    cr_assert_eq(poll(&bench.job), COX__JOB_DONE);
    cr_assert_eq(first_out(0), 78);
    end(true);
}

Test(fake_backend, what_an_abandoned_unit_had_under_way_is_written_late_and_told_to_nobody)
{
    for (uint32_t destroyed = 0; destroyed < 2; destroyed++) {
        struct cox__instance *instance = begin_with(FAKE_HANGS, 1000000);
        abandon(instance);
        memset(&bench.job, 0x5a, sizeof bench.job); /* from now on its owner may free it */
        if (destroyed)
            destroy(instance);
        for (uint32_t i = 0; i < 2; i++)
            memset(bench.ops->mem_data(bench.mems[0][i]), 55, ROWS * PITCH);
        let_pass(BAND_NS + 1000000);
        cr_assert_eq(first_out(0), 0xdb, "garbage");
        cr_assert_eq(bench.posts, 0);
        end(true);
    }
}

Test(fake_backend, abandoned_memory_is_written_late)
{
    struct cox__instance *instance = begin_with(FAKE_HANGS, 1000000);
    const unsigned char *out = bench.ops->mem_data(bench.mems[0][1]);
    abandon(instance);
    destroy(instance);
    abandon_memory();
    cr_assert_eq(fake_abandoned(bench.fake), 2);
    let_pass(BAND_NS + 1000000);
    cr_assert_eq(*out, 0xdb);
    end(true);
}

Test(fake_backend, a_failure_that_is_not_over_says_so_until_it_is)
{
    begin_with(FAKE_FAILS_LATE, 5000);
    let_pass(BAND_NS - 1);
    cr_assert_eq(poll(&bench.job), COX__JOB_RUNNING);
    cr_assert_not(bench.job.failing);
    let_pass(1);
    cr_assert_eq(bench.posts, 1);
    cr_assert_eq(poll(&bench.job), COX__JOB_RUNNING);
    cr_assert(bench.job.failing);
    cr_assert_eq(first_out(0), 0);
    let_pass(5000);
    cr_assert_eq(bench.posts, 2);
    cr_assert_eq(poll(&bench.job), COX__JOB_FAILED);
    cr_assert_not(bench.job.failing);
    cr_assert_neq(first_out(0), 0);
    end(true);
}

Test(fake_backend, a_device_that_died_comes_back_for_fresh_instances_alone)
{
    struct cox__instance *instance = begin_with(FAKE_DEVICE_DIES, 1000000), *other = NULL;
    struct cox__job second = job_on(instance, 1, 1);
    start(&second);
    let_pass(BAND_NS);
    cr_assert_eq(poll(&bench.job), COX__JOB_FAILED);
    cr_assert_eq(poll(&second), COX__JOB_FAILED);
    cr_assert_eq(create(0, false, &other), COX_E_DEVICE_LOST);
    cr_assert_eq(create(0, true, &other), COX_E_DEVICE_LOST);
    let_pass(1000000);
    cr_assert_eq(create(0, false, &other), COX_E_DEVICE_LOST);
    other = instance_of(0, true);
    let_pass(1000000);
    cr_assert_eq(bench.ops->job_submit(bench.backend, &bench.job), COX_E_DEVICE_LOST);
    struct cox__job third = job_on(other, 0, 0);
    start(&third);
    let_pass(BAND_NS);
    cr_assert_eq(poll(&third), COX__JOB_DONE);
    end(true);
}

Test(fake_backend, a_hang_holds_up_its_own_context)
{
    struct cox__instance *hung = begin_with(FAKE_HANGS, UINT64_MAX), *same = instance_of(0, false);
    struct cox__job behind = job_on(same, 0, 0), beside = job_on(instance_of(0, true), 0, 1);
    start(&behind);
    start(&beside);
    let_pass(10000000000u);
    cr_assert_eq(poll(&bench.job), COX__JOB_RUNNING);
    cr_assert_eq(poll(&behind), COX__JOB_RUNNING);
    cr_assert_eq(poll(&beside), COX__JOB_DONE);
    cr_assert_eq(first_out(1), 11);
    abandon(hung);
    abandon(same);
    destroy(hung);
    destroy(same);
    abandon_memory();
    end(true);
}

Test(fake_backend, lies_are_told_as_scripted)
{
    begin();
    const uint64_t began = fake_now(bench.fake);
    struct cox__job job = job_on(instance_of(0, false), 0, 0);
    FAKE_FAULT(bench.fake, .kind = FAKE_CORRUPTS);
    FAKE_FAULT(bench.fake, .kind = FAKE_LIES_PROFILE);
    FAKE_FAULT(bench.fake, .kind = FAKE_END_EARLY, .delay_ns = 500);
    FAKE_FAULT(bench.fake, .kind = FAKE_SUBMIT_BLOCKS, .delay_ns = 3000);
    start(&job);
    cr_assert_eq(fake_now(bench.fake), began + 3000);
    let_pass(BAND_NS);
    cr_assert_eq(poll(&job), COX__JOB_DONE);
    cr_assert_gt(job.kernel_ns, UINT64_C(1) << 60);
    cr_assert_eq(atomic_load(&job.end_ns), began + 2500);
    const unsigned char *out = bench.ops->mem_data(bench.mems[0][1]);
    int wrong = 0;
    for (uint32_t i = 0; i < ROWS * PITCH; i++)
        wrong += __builtin_popcount(out[i] ^ 1u);
    cr_assert_eq(wrong, 1);
    end(true);
}

/* ---- what the fake records ---- */

Test(fake_backend, notes_memory_destroyed_under_a_job_abandoned_or_not)
{
    for (uint32_t abandoned = 0; abandoned < 2; abandoned++)
        for (uint32_t binding = 0; binding < 2; binding++) {
            struct cox__instance *instance = begin_with(0, 0);
            if (abandoned)
                abandon(instance);
            cr_assert_eq(fake_violations(bench.fake), 0);
            bench.ops->mem_destroy(bench.backend, bench.mems[0][binding]);
            cr_assert_eq(fake_violations(bench.fake), 1);
            let_pass(BAND_NS);
            cr_assert_eq(fake_violations(bench.fake), 2, "it worked on memory that does not exist");
            bench.mems[0][binding] = NULL;
            end(false);
        }
}

Test(fake_backend, notes_rows_written_while_another_context_is_at_them)
{
    for (uint32_t fresh = 0; fresh < 2; fresh++)
        for (uint32_t abandoned = 0; abandoned < 2; abandoned++) {
            struct cox__instance *one = begin_with(0, 0);
            struct cox__job second = job_on(instance_of(!fresh, fresh), 0, 0);
            if (abandoned)
                abandon(one);
            start(&second);
            cr_assert_eq(fake_violations(bench.fake), !abandoned);
            let_pass(BAND_NS + 1);
            end(abandoned);
        }
}

/* Two passes; the second one reads what the first one writes. */
static void make_two_passes(void)
{
    static const struct cox__binding bindings[] = {{.row_access = COX__ROWS, .pitch_bytes = PITCH},
                                                   {.row_access = COX__ROWS, .pitch_bytes = PITCH}};
    static const struct cox__pass_binding first[] = {{.binding = 0}, {.binding = 1, .access = COX__WRITE}};
    static const struct cox__pass_binding second[] = {{.binding = 1, .row_access = COX__HALO, .halo_rows = 1},
                                                      {.binding = 0, .access = COX__WRITE}};
    static const struct cox__pass_spec passes[] = {
        {.use_count = 2, .uses = first, .stage_count = 1, .stages = &stage},
        {.use_count = 2, .uses = second, .stage_count = 1, .stages = &stage}};
    cox__pipeline_clear(&bench.pipeline);
    make_pipeline(&(const struct cox__session_spec){
        .binding_count = 2, .bindings = bindings, .pass_count = 2, .passes = passes});
}

/* Rows of the first pass that are complete when the first half of the second pass begins. That half needs one row
 * more. */
Test(fake_backend, notes_a_pass_that_does_not_find_what_it_reads)
{
    static const struct {
        uint32_t rows;
        bool waits, of_another_frame, clean;
    } cases[] = {{ROWS / 2 + 1, true, false, true},
                 {ROWS, true, false, true},
                 {ROWS / 2, true, false, false},
                 {ROWS, false, false, false},
                 {ROWS, true, true, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct cox__frame frame;
        begin();
        make_two_passes();
        struct cox__instance *one = instance_of(0, false), *two = instance_of(1, false);
        struct cox__job writer = job_on(one, 0, 0), reader = job_on(cases[c].waits ? two : one, 1, 0);
        frame.index = 1;
        writer.frame = reader.frame = &frame;
        writer.rows = cases[c].rows;
        reader.rows = ROWS / 2;
        reader.pass = 1;
        start(&writer);
        if (cases[c].waits)
            let_pass(BAND_NS + 1);
        frame.index += cases[c].of_another_frame;
        start(&reader);
        let_pass(2 * BAND_NS + 1);
        end(cases[c].clean);
    }
}

Test(fake_backend, notes_what_is_done_with_an_abandoned_instance)
{
    for (uint32_t what = 0; what < 4; what++) {
        struct cox__instance *instance = begin_with(0, 0);
        struct cox__job next = job_on(instance, 1, 1);
        abandon(instance);
        cr_assert_eq(fake_violations(bench.fake), 0);
        if (what == 0)
            poll(&bench.job);
        if (what == 1)
            bench.ops->instance_flush(bench.backend, instance);
        if (what == 2)
            abandon(instance);
        if (what == 3)
            cr_assert_neq(bench.ops->job_submit(bench.backend, &next), COX_OK);
        cr_assert_eq(fake_violations(bench.fake), 1, "%u", what);
        let_pass(BAND_NS);
        end(false);
    }
}

Test(fake_backend, notes_a_job_that_is_changed_while_it_is_under_way)
{
    for (uint32_t what = 0; what < 2; what++) {
        begin_with(0, 0);
        if (what)
            bench.params[1] = 1;
        else
            bench.job.mems = bench.mems[1];
        let_pass(BAND_NS);
        cr_assert_eq(fake_violations(bench.fake), 1);
        cr_assert_eq(poll(&bench.job), COX__JOB_DONE);
        end(false);
    }
}

Test(fake_backend, notes_a_unit_destroyed_with_a_job_under_way)
{
    destroy(begin_with(0, 0));
    cr_assert_eq(fake_violations(bench.fake), 1);
    let_pass(BAND_NS);
    end(false);
}
