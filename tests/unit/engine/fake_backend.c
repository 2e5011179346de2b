/* The scripted devices themselves: faults do what they are said to do, and what no driver would forgive is noted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_backend.h"
#include "engine/state.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(fake_backend, .timeout = 300);

enum { ROWS = 8, PITCH = 16, SLOTS = 4, ROW_NS = 1000, BAND_NS = ROWS * ROW_NS };

static void add_one(const struct fake_args *args)
{
    for (uint32_t i = 0; i < args->rows * PITCH; i++)
        args->data[1][i] = (unsigned char)(args->data[0][i] + 1);
}

/* One pipeline, two devices, two sets of memory, and jobs at will. */
struct bench {
    struct fake *fake;
    struct cox__backend *backend;
    const struct cox__backend_ops *ops;
    struct cox__log log;
    struct cox__pipeline pipeline;
    struct cox__mem *mems[2][2];
    unsigned char params[4];
    uint32_t posts;
};

static void count_post(void *ctx, struct cox__job *job)
{
    struct bench *bench = ctx;
    (void)job;
    bench->posts++;
}

static void bench_begin(struct bench *bench)
{
    static const struct cox_variant variant = {.source = "fake"};
    static const struct cox_stage stage = {.kernel = "add_one", .variant_count = 1, .variants = &variant};
    static const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = PITCH},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = PITCH},
    };
    memset(bench, 0, sizeof *bench);
    bench->fake = fake_new(&(const struct fake_params){.device_count = 2,
                                                       .devices = {{.ns_per_row = ROW_NS}, {.ns_per_row = ROW_NS}},
                                                       .kernel_count = 1,
                                                       .kernels = {{"add_one", add_one}}});
    cr_assert_eq(fake_make(bench->fake, (struct cox__post){.post = count_post, .ctx = bench}, &bench->log,
                           &bench->backend),
                 COX_OK);
    bench->ops = bench->backend->ops;
    cr_assert_eq(cox__pipeline_init(&bench->pipeline,
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage,
                                                       .params_bytes = sizeof bench->params),
                                    &bench->log),
                 COX_OK);
    bench->pipeline.passes[0].granule = 1;
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < 2; i++) {
            cr_assert_eq(bench->ops->mem_create(bench->backend, NULL, ROWS * PITCH, &bench->mems[s][i]), COX_OK);
            memset(bench->ops->mem_data(bench->mems[s][i]), 10 * (int)s, ROWS * PITCH);
        }
}

static struct cox__instance *instance_of(struct bench *bench, uint32_t device, bool fresh)
{
    struct cox__instance *instance = NULL;
    uint32_t max_rows[COX_PASSES_MAX];
    cr_assert_eq(bench->ops->instance_create(bench->backend, device, &bench->pipeline, SLOTS, fresh, &instance,
                                             max_rows),
                 COX_OK);
    return instance;
}

static struct cox__job job_on(struct bench *bench, struct cox__instance *instance, uint32_t slot, uint32_t set)
{
    return (struct cox__job){
        .instance = instance, .slot = slot, .rows = ROWS, .mems = bench->mems[set], .params = bench->params};
}

static void start(struct bench *bench, struct cox__job *job)
{
    cr_assert_eq(bench->ops->job_submit(bench->backend, job), COX_OK);
    bench->ops->instance_flush(bench->backend, job->instance);
}

static void let_pass(struct bench *bench, uint64_t ns)
{
    const uint64_t until = fake_now(bench->fake) + ns;
    while (fake_now(bench->fake) < until)
        bench->ops->advance(bench->backend, until);
}

/* The first byte of the output of the set. */
static unsigned char first_out(struct bench *bench, uint32_t set)
{
    return *(unsigned char *)bench->ops->mem_data(bench->mems[set][1]);
}

/* `clean`: nothing was done that must not be. Memory whose flag is set in `lost` is gone already. */
static void bench_end(struct bench *bench, bool clean, uint32_t lost)
{
    for (uint32_t m = 0; m < 4; m++)
        if (!(lost >> m & 1))
            bench->ops->mem_destroy(bench->backend, bench->mems[m / 2][m % 2]);
    bench->ops->destroy(bench->backend);
    if (clean)
        cr_assert_str_empty(fake_violation(bench->fake));
    else
        cr_assert_gt(fake_violations(bench->fake), 0);
    fake_free(&bench->fake);
    cox__pipeline_clear(&bench->pipeline);
}

static void bench_end_with(struct bench *bench, struct cox__instance *instance, bool clean, uint32_t lost)
{
    bench->ops->instance_destroy(bench->backend, instance, NULL, NULL);
    bench_end(bench, clean, lost);
}

/* ---- what faults do ---- */

Test(fake_backend, a_hang_that_ends_reads_and_writes_at_its_late_end)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false);
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_HANGS, .delay_ns = 1000000});
    struct cox__job job = job_on(&bench, instance, 0, 0);
    start(&bench, &job);
    let_pass(&bench, BAND_NS + 999999);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_RUNNING);
    cr_assert_eq(first_out(&bench, 0), 0);
    memset(bench.ops->mem_data(bench.mems[0][0]), 77, ROWS * PITCH);
    let_pass(&bench, 1);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_DONE);
    cr_assert_eq(first_out(&bench, 0), 78);
    bench_end_with(&bench, instance, true, 0);
}

Test(fake_backend, what_an_abandoned_unit_had_under_way_is_written_late_and_told_to_nobody)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        struct bench bench;
        bench_begin(&bench);
        struct cox__instance *instance = instance_of(&bench, 0, false);
        fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_HANGS, .delay_ns = 1000000});
        struct cox__job *job = malloc(sizeof *job);
        *job = job_on(&bench, instance, 0, 0);
        start(&bench, job);
        bench.ops->instance_abandon(bench.backend, instance);
        free(job);
        if (destroy)
            bench.ops->instance_destroy(bench.backend, instance, NULL, NULL);
        for (uint32_t i = 0; i < 2; i++)
            memset(bench.ops->mem_data(bench.mems[0][i]), 55, ROWS * PITCH);
        let_pass(&bench, BAND_NS + 1000000);
        cr_assert_eq(first_out(&bench, 0), 0xdb, "garbage");
        cr_assert_eq(bench.posts, 0);
        if (destroy)
            bench_end(&bench, true, 0);
        else
            bench_end_with(&bench, instance, true, 0);
    }
}

Test(fake_backend, abandoned_memory_is_written_late)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false);
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_HANGS, .delay_ns = 1000000});
    struct cox__job job = job_on(&bench, instance, 0, 0);
    start(&bench, &job);
    bench.ops->instance_abandon(bench.backend, instance);
    bench.ops->instance_destroy(bench.backend, instance, NULL, NULL);
    for (uint32_t i = 0; i < 2; i++)
        bench.ops->mem_abandon(bench.backend, bench.mems[0][i]);
    cr_assert_eq(fake_abandoned(bench.fake), 2);
    let_pass(&bench, BAND_NS + 1000000);
    cr_assert_eq(first_out(&bench, 0), 0xdb);
    bench_end(&bench, true, 3);
}

Test(fake_backend, a_failure_that_is_not_over_says_so_until_it_is)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false);
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_FAILS_LATE, .delay_ns = 5000});
    struct cox__job job = job_on(&bench, instance, 0, 0);
    start(&bench, &job);
    let_pass(&bench, BAND_NS - 1);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_RUNNING);
    cr_assert_not(job.failing);
    let_pass(&bench, 1);
    cr_assert_eq(bench.posts, 1);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_RUNNING);
    cr_assert(job.failing);
    cr_assert_eq(first_out(&bench, 0), 0);
    let_pass(&bench, 5000);
    cr_assert_eq(bench.posts, 2);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_FAILED);
    cr_assert_not(job.failing);
    cr_assert_neq(first_out(&bench, 0), 0);
    bench_end_with(&bench, instance, true, 0);
}

Test(fake_backend, a_device_that_died_comes_back_for_fresh_instances_alone)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false), *other = NULL;
    uint32_t max_rows[COX_PASSES_MAX];
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .delay_ns = 1000000});
    struct cox__job first = job_on(&bench, instance, 0, 0), second = job_on(&bench, instance, 1, 1);
    start(&bench, &first);
    start(&bench, &second);
    let_pass(&bench, BAND_NS);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &first), COX__JOB_FAILED);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &second), COX__JOB_FAILED);
    for (uint32_t later = 0; later < 2; later++) {
        cr_assert_eq(bench.ops->instance_create(bench.backend, 0, &bench.pipeline, SLOTS, false, &other, max_rows),
                     COX_E_DEVICE_LOST);
        const cox_status status = bench.ops->instance_create(bench.backend, 0, &bench.pipeline, SLOTS, true, &other,
                                                             max_rows);
        cr_assert_eq(status, later ? COX_OK : COX_E_DEVICE_LOST);
        let_pass(&bench, 1000000);
    }
    cr_assert_eq(bench.ops->job_submit(bench.backend, &first), COX_E_DEVICE_LOST);
    struct cox__job third = job_on(&bench, other, 0, 0);
    start(&bench, &third);
    let_pass(&bench, BAND_NS);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &third), COX__JOB_DONE);
    bench.ops->instance_destroy(bench.backend, instance, NULL, NULL);
    bench.ops->instance_destroy(bench.backend, other, NULL, NULL);
    bench_end(&bench, true, 0);
}

Test(fake_backend, a_hang_holds_up_its_own_context)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *hung = instance_of(&bench, 0, false), *same = instance_of(&bench, 0, false);
    struct cox__instance *fresh = instance_of(&bench, 0, true);
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_HANGS, .delay_ns = UINT64_MAX});
    struct cox__job first = job_on(&bench, hung, 0, 0), behind = job_on(&bench, same, 0, 0);
    struct cox__job beside = job_on(&bench, fresh, 0, 1);
    start(&bench, &first);
    start(&bench, &behind);
    start(&bench, &beside);
    let_pass(&bench, 10000000000u);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &first), COX__JOB_RUNNING);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &behind), COX__JOB_RUNNING);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &beside), COX__JOB_DONE);
    cr_assert_eq(first_out(&bench, 1), 11);
    bench.ops->instance_abandon(bench.backend, hung);
    bench.ops->instance_abandon(bench.backend, same);
    bench.ops->instance_destroy(bench.backend, hung, NULL, NULL);
    bench.ops->instance_destroy(bench.backend, same, NULL, NULL);
    bench.ops->instance_destroy(bench.backend, fresh, NULL, NULL);
    for (uint32_t i = 0; i < 2; i++)
        bench.ops->mem_abandon(bench.backend, bench.mems[0][i]);
    bench_end(&bench, true, 3);
}

Test(fake_backend, lies_are_told_as_scripted)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false);
    const uint64_t began = fake_now(bench.fake);
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_CORRUPTS});
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_LIES_PROFILE});
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_END_EARLY, .delay_ns = 500});
    fake_script(bench.fake, &(struct fake_fault){.kind = FAKE_SUBMIT_BLOCKS, .delay_ns = 3000});
    struct cox__job job = job_on(&bench, instance, 0, 0);
    start(&bench, &job);
    cr_assert_eq(fake_now(bench.fake), began + 3000);
    let_pass(&bench, BAND_NS);
    cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_DONE);
    cr_assert_gt(job.kernel_ns, UINT64_C(1) << 60);
    cr_assert_eq(atomic_load(&job.end_ns), began + 2500);
    const unsigned char *out = bench.ops->mem_data(bench.mems[0][1]);
    int wrong = 0;
    for (uint32_t i = 0; i < ROWS * PITCH; i++)
        wrong += __builtin_popcount(out[i] ^ 1u);
    cr_assert_eq(wrong, 1);
    bench_end_with(&bench, instance, true, 0);
}

/* ---- what is noted ---- */

Test(fake_backend, notes_memory_destroyed_under_a_job_abandoned_or_not)
{
    for (uint32_t abandoned = 0; abandoned < 2; abandoned++)
        for (uint32_t binding = 0; binding < 2; binding++) {
            struct bench bench;
            bench_begin(&bench);
            struct cox__instance *instance = instance_of(&bench, 0, false);
            struct cox__job job = job_on(&bench, instance, 0, 0);
            start(&bench, &job);
            if (abandoned)
                bench.ops->instance_abandon(bench.backend, instance);
            cr_assert_eq(fake_violations(bench.fake), 0);
            bench.ops->mem_destroy(bench.backend, bench.mems[0][binding]);
            cr_assert_eq(fake_violations(bench.fake), 1);
            let_pass(&bench, BAND_NS);
            cr_assert_eq(fake_violations(bench.fake), 2, "it worked on memory that was not there");
            bench_end_with(&bench, instance, false, 1u << binding);
        }
}

Test(fake_backend, notes_rows_written_while_another_context_is_at_them)
{
    for (uint32_t fresh = 0; fresh < 2; fresh++)
        for (uint32_t abandoned = 0; abandoned < 2; abandoned++) {
            struct bench bench;
            bench_begin(&bench);
            struct cox__instance *one = instance_of(&bench, 0, false), *two = instance_of(&bench, !fresh, fresh);
            struct cox__job first = job_on(&bench, one, 0, 0), second = job_on(&bench, two, 0, 0);
            start(&bench, &first);
            if (abandoned)
                bench.ops->instance_abandon(bench.backend, one);
            start(&bench, &second);
            cr_assert_eq(fake_violations(bench.fake), !abandoned);
            let_pass(&bench, BAND_NS + 1);
            bench.ops->instance_destroy(bench.backend, one, NULL, NULL);
            bench.ops->instance_destroy(bench.backend, two, NULL, NULL);
            bench_end(&bench, abandoned, 0);
        }
}

/* Two passes, the second of which reads what the first one writes. */
static void make_two_passes(struct bench *bench)
{
    static const struct cox_variant variant = {.source = "fake"};
    static const struct cox_stage stage = {.kernel = "add_one", .variant_count = 1, .variants = &variant};
    static const struct cox_binding bindings[] = {{.contract = COX_ROWS, .pitch_bytes = PITCH},
                                                  {.contract = COX_ROWS, .pitch_bytes = PITCH}};
    static const struct cox_use first[] = {{.binding = 0}, {.binding = 1, .access = COX_WRITE}};
    static const struct cox_use second[] = {{.binding = 1, .contract = COX_HALO, .halo_rows = 1},
                                            {.binding = 0, .access = COX_WRITE}};
    static const struct cox_pass passes[] = {{.use_count = 2, .uses = first, .stage_count = 1, .stages = &stage},
                                             {.use_count = 2, .uses = second, .stage_count = 1, .stages = &stage}};
    cox__pipeline_clear(&bench->pipeline);
    cr_assert_eq(cox__pipeline_init(&bench->pipeline,
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                       .pass_count = 2, .passes = passes,
                                                       .params_bytes = sizeof bench->params),
                                    &bench->log),
                 COX_OK);
    bench->pipeline.passes[0].granule = bench->pipeline.passes[1].granule = 1;
}

/* The rows of the first pass that are there when the second one's first half begins, which needs one more. */
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
        struct bench bench;
        bench_begin(&bench);
        make_two_passes(&bench);
        struct cox__instance *one = instance_of(&bench, 0, false), *two = instance_of(&bench, 1, false);
        struct cox__job writer = job_on(&bench, one, 0, 0), reader = job_on(&bench, cases[c].waits ? two : one, 1, 0);
        frame.index = 1;
        writer.frame = reader.frame = &frame;
        writer.rows = cases[c].rows;
        reader.rows = ROWS / 2;
        reader.pass = 1;
        start(&bench, &writer);
        if (cases[c].waits)
            let_pass(&bench, BAND_NS + 1);
        frame.index += cases[c].of_another_frame;
        start(&bench, &reader);
        let_pass(&bench, 2 * BAND_NS + 1);
        bench.ops->instance_destroy(bench.backend, one, NULL, NULL);
        bench.ops->instance_destroy(bench.backend, two, NULL, NULL);
        bench_end(&bench, cases[c].clean, 0);
    }
}

Test(fake_backend, notes_what_is_done_with_an_abandoned_instance)
{
    for (uint32_t what = 0; what < 4; what++) {
        struct bench bench;
        bench_begin(&bench);
        struct cox__instance *instance = instance_of(&bench, 0, false);
        struct cox__job job = job_on(&bench, instance, 0, 0);
        start(&bench, &job);
        bench.ops->instance_abandon(bench.backend, instance);
        cr_assert_eq(fake_violations(bench.fake), 0);
        if (what == 0)
            bench.ops->job_poll(bench.backend, &job);
        if (what == 1)
            bench.ops->instance_flush(bench.backend, instance);
        if (what == 2)
            bench.ops->instance_abandon(bench.backend, instance);
        if (what == 3) {
            struct cox__job next = job_on(&bench, instance, 1, 1);
            cr_assert_neq(bench.ops->job_submit(bench.backend, &next), COX_OK);
        }
        cr_assert_eq(fake_violations(bench.fake), 1, "%u", what);
        let_pass(&bench, BAND_NS);
        bench_end_with(&bench, instance, false, 0);
    }
}

Test(fake_backend, notes_a_job_that_is_changed_while_it_is_under_way)
{
    for (uint32_t what = 0; what < 2; what++) {
        struct bench bench;
        bench_begin(&bench);
        struct cox__instance *instance = instance_of(&bench, 0, false);
        struct cox__job job = job_on(&bench, instance, 0, 0);
        start(&bench, &job);
        if (what)
            bench.params[1] = 1;
        else
            job.mems = bench.mems[1];
        let_pass(&bench, BAND_NS);
        cr_assert_eq(fake_violations(bench.fake), 1);
        cr_assert_eq(bench.ops->job_poll(bench.backend, &job), COX__JOB_DONE);
        bench_end_with(&bench, instance, false, 0);
    }
}

Test(fake_backend, notes_a_unit_destroyed_with_a_job_under_way)
{
    struct bench bench;
    bench_begin(&bench);
    struct cox__instance *instance = instance_of(&bench, 0, false);
    struct cox__job job = job_on(&bench, instance, 0, 0);
    start(&bench, &job);
    bench.ops->instance_destroy(bench.backend, instance, NULL, NULL);
    cr_assert_eq(fake_violations(bench.fake), 1);
    let_pass(&bench, BAND_NS);
    bench_end(&bench, false, 0);
}
