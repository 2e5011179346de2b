/* Devices with separate memory keep rows from pass to pass. These tests use fake devices to check two things:
 *   How little is copied.
 *   What happens when a device that holds rows is lost.
 *
 * Wrong rows would show in the output: until correct rows are copied to a fake device, its memory holds rows of
 * another frame, or garbage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "passes_test.h"

TestSuite(residency, .timeout = 600);

#define STAGED(the_name)                                                                                            \
    {                                                                                                               \
        .name = (the_name), .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .align_bytes = 128, .ns_per_row = 500, \
        .fixed_ns = 20000, .copy_in_ns_per_row = 100, .copy_out_ns_per_row = 100                                    \
    }
#define MAPPED(the_name)                                                                                            \
    {                                                                                                               \
        .name = (the_name), .type = COX_DEVICE_CPU, .mode = COX_MODE_MAPPED, .align_bytes = 128, .ns_per_row = 700, \
        .fixed_ns = 5000                                                                                            \
    }
static const struct fake_params one_staged = {.device_count = 1, .devices = {STAGED("staged")}};
static const struct fake_params two_staged = {.device_count = 2, .devices = {STAGED("one"), STAGED("other")}};
static const struct fake_params mixed = {.device_count = 3,
                                         .devices = {STAGED("one"), STAGED("other"), MAPPED("mapped")}};

/* ---- the pipeline: in -> a (near) -> b (near) -> out (in turned, and b) ---- */

enum { IN, A, B, OUT, BINDINGS };
static const struct cox__binding bindings[] = {BY_ROWS(.name = "in"), BY_ROWS(.name = "a", .scratch = true),
                                               BY_ROWS(.name = "b", .scratch = true),
                                               BY_ROWS(.name = "out", .access = COX__WRITE)};
static const struct cox__stage to_a[] = {RIG_STAGE("rig_near", IN, A)};
static const struct cox__stage to_b[] = {RIG_STAGE("rig_near", A, B)};
static const struct cox__stage to_out[] = {RIG_STAGE("rig_turn", B, OUT)};
static const struct cox__pass_binding use_a[] = {{.binding = IN, .row_access = COX__HALO, .halo_rows = 1},
                                                 {.binding = A, .access = COX__WRITE}};
static const struct cox__pass_binding use_b[] = {{.binding = A, .row_access = COX__HALO, .halo_rows = 1},
                                                 {.binding = B, .access = COX__WRITE}};
static const struct cox__pass_binding use_out[] = {{.binding = B, .row_access = COX__WHOLE},
                                                   {.binding = OUT, .access = COX__WRITE}};
static const struct cox__pass_spec passes[] = {RIG_PASS(use_a, to_a), RIG_PASS(use_b, to_b), RIG_PASS(use_out, to_out)};

#define SESSION(...)                                                                                      \
    &(const struct cox__session_spec)                                                                     \
    {                                                                                                     \
        .rows = ROWS, .binding_count = BINDINGS, .bindings = bindings, .pass_count = 3, .passes = passes, \
        .in_flight = 2, __VA_ARGS__                                                                       \
    }

static void open_bench(const struct fake_params *devices, const struct cox__session_spec *params)
{
    static unsigned char a[BYTES], b[BYTES];
    open_buffers(devices);
    for (uint32_t f = 0; f < FRAMES; f++) {
        near_rows(cox_buffer_data(in[f]), a);
        near_rows(a, b);
        turn_rows(b, expected[f]);
    }
    cr_assert_eq(try_session(params), COX_OK, "%s", rig_log(rig));
}

/* Copies of the frames submitted since the record was cleared. */
struct copies {
    uint32_t bands;
    uint32_t fetches;
    uint32_t fetched_rows;
    uint32_t back_rows;
    uint32_t in[3];   /* rows copied in, per pass */
    uint32_t kept[3]; /* bands of a pass that leave rows on their device */
};

static struct copies count_copies(void)
{
    struct copies copies = {0};
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    for (size_t i = 0; i < count; i++) {
        if (record[i].step != FAKE_STEP_SUBMIT || record[i].failed)
            continue;
        if (record[i].kind == COX__JOB_FETCH) {
            copies.fetches++;
            copies.fetched_rows += record[i].copied_rows;
            continue;
        }
        copies.bands++;
        copies.back_rows += record[i].back_rows;
        copies.in[record[i].pass] += record[i].copied_rows;
        copies.kept[record[i].pass] += record[i].kept != 0;
    }
    free(record);
    return copies;
}

static struct copies run_counted(uint32_t frames)
{
    fake_clear_record(fake);
    run_more(frames);
    return count_copies();
}

#define NO_WARMUP .no_warmup = true

/* ---- what is copied ---- */

/* `in` belongs to one pass, as in a session of a single pass. */
Test(residency, a_device_alone_is_given_nothing_between_passes_and_gives_nothing_back)
{
    open_bench(&one_staged, SESSION(NO_WARMUP));
    const struct copies copies = run_counted(4);
    cr_expect_eq(copies.bands, 12);
    cr_expect_eq(copies.fetches, 0);
    cr_expect(copies.in[0] == 0 && copies.in[1] == 0 && copies.in[2] == 0, "%u, %u, %u rows", copies.in[0],
              copies.in[1], copies.in[2]);
    cr_expect(copies.kept[0] == 4 && copies.kept[1] == 4);
    close_bench();
}

/* The kernel gets the band's rows, not the frame's. */
Test(residency, a_kernel_that_does_not_ask_where_its_rows_begin_gets_copies)
{
    const struct cox__arg args[] = {COX__ARG_BUFFER(A), COX__ARG_BUFFER(B)};
    struct cox__stage plain = RIG_STAGE("rig_near", A, B);
    struct cox__pass_spec steps[] = {passes[0], passes[1], passes[2]};
    struct cox__session_spec params = *SESSION(NO_WARMUP);
    plain.args = args;
    plain.arg_count = 2;
    steps[1].stages = &plain;
    params.passes = steps;
    open_bench(&one_staged, &params);
    const struct copies copies = run_counted(1);
    cr_expect(copies.kept[0] == 0 && copies.kept[1] == 0);
    close_bench();
}

static const double halves[] = {0.5, 0.5};
#define HALVES                                                               \
    .policy = "static", .policy_options = &(const struct cox_policy_options) \
    {                                                                        \
        .ratios = halves, .ratio_count = 2                                   \
    }

Test(residency, two_devices_are_given_the_rows_that_they_have_not)
{
    open_bench(&two_staged, SESSION(NO_WARMUP, HALVES));
    const struct copies copies = run_counted(1);
    cr_expect_eq(copies.bands, 6);
    /* Of `a` each device hands over the row at the boundary, of `b` each fetches the other device's half. */
    cr_expect_eq(copies.fetches, 2);
    cr_expect_eq(copies.fetched_rows, ROWS / 2 + ROWS / 2);
    cr_expect_eq(copies.in[1], 2);
    cr_expect_eq(copies.in[2], ROWS);
    close_bench();
}

/* From the second frame on, each device hands over at once all of `b`, because the other one needed it before. */
Test(residency, what_was_handed_over_before_is_handed_over_at_once)
{
    open_bench(&two_staged, SESSION(NO_WARMUP, HALVES));
    run_more(1);
    const struct copies copies = run_counted(4);
    cr_expect_eq(copies.fetches, 0);
    cr_expect_eq(copies.back_rows, 4 * (2 + ROWS));
    cr_expect_eq(copies.in[1], 4 * 2);
    cr_expect_eq(copies.in[2], 4 * ROWS);
    close_bench();
}

Test(residency, what_is_not_handed_over_any_more_stays_on_its_device)
{
    rig_add_split(2, (const uint32_t[][2]){{0, ROWS / 2}, {1, ROWS / 2}}); /* for the first frame */
    rig_add_split(1, (const uint32_t[][2]){{0, ROWS}});
    open_bench(&two_staged, SESSION(NO_WARMUP, .split_each_pass = true, .custom_policy = &rig_policy));
    const struct copies before = run_counted(4);
    cr_expect_gt(before.back_rows, 0);
    run_more(40);
    const struct copies copies = run_counted(4);
    cr_expect(copies.fetches == 0 && copies.back_rows == 0, "%u fetches, %u rows", copies.fetches, copies.back_rows);
    close_bench();
}

Test(residency, a_device_without_memory_for_it_has_everything_copied)
{
    struct fake_params devices = two_staged;
    devices.devices[1].keeps_nothing = true;
    open_bench(&devices, SESSION(NO_WARMUP, HALVES));
    const struct copies copies = run_counted(1);
    /* The device reads its half of `a` from the host, although it wrote it itself. It fetches the other's half of
     * `b`. */
    cr_expect_eq(copies.fetches, 1);
    cr_expect_eq(copies.fetched_rows, ROWS / 2);
    cr_expect_eq(copies.in[1], 1);
    cr_expect_eq(copies.in[2], ROWS / 2);
    close_bench();
}

Test(residency, nothing_is_kept_where_rows_are_verified)
{
    open_bench(&two_staged, SESSION(NO_WARMUP, HALVES, .verify = 1));
    const struct copies copies = run_counted(2);
    cr_expect(copies.fetches == 0 && copies.kept[0] == 0 && copies.kept[1] == 0);
    close_bench();
}

/* The warm-up measures a cheap pass as a frame on that device alone runs it: 96 rows, none of them copied. */
Test(residency, warm_up_runs_count_what_the_passes_before_have_left)
{
    open_bench(&two_staged, SESSION(.policy = "static"));
    run_more(1);
    uint32_t whole[3] = {0};
    for (uint32_t i = 0; i < rig_report_count(rig); i++) {
        const struct rig_report *report = rig_report_at(rig, i);
        if (report->frame.warmup && report->bands[0].rows == ROWS)
            whole[report->bands[0].pass]++;
    }
    cr_expect(whole[0] > 2 && whole[1] > 2 && whole[2] > 2);
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    uint32_t in = 0, kept = 0;
    for (size_t i = 0; i < count && record[i].step != FAKE_STEP_DESTROY; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && record[i].rows == ROWS && record[i].kind != COX__JOB_FETCH) {
            in += record[i].copied_rows;
            kept += record[i].kept != 0;
        }
    free(record);
    cr_expect_eq(in, 0);
    cr_expect_gt(kept, 0);
    close_bench();
}

/* ---- any split ---- */

static cox_status shadowed_split(void *seed, const struct cox_sched_view *view, struct cox_split *out)
{
    random_split(seed, view, out);
    if (rig_random(seed) % 4 == 0)
        out->shadow = (struct cox_band){random_usable(seed, view), view->rows / 3, 5};
    return COX_OK;
}

static const struct cox_policy random_policy = {.name = "random",
                                                .state_bytes = rig_policy_bytes,
                                                .init = rig_policy_init,
                                                .split = shadowed_split,
                                                .assign = random_next};

Test(residency, any_split_of_any_pass_gives_the_same)
{
    uint32_t fetches = 0, kept = 0;
    for (rig_policy_seed = 0; rig_policy_seed < 10; rig_policy_seed++) {
        open_bench(&mixed, SESSION(.split_each_pass = true, .custom_policy = &random_policy));
        const struct copies copies = run_counted(4 * FRAMES);
        fetches += copies.fetches;
        kept += copies.kept[0] + copies.kept[1];
        close_bench();
    }
    cr_expect_gt(fetches, 0);
    cr_expect_gt(kept, 0);
}

static const struct cox__stage to_a_again[] = {RIG_STAGE("rig_near", B, A)};
static const struct cox__stage turned_a[] = {RIG_STAGE("rig_turn", A, OUT)};

/* `a` is written twice. After the second write no copy of the first contents may be used, wherever it is. */
Test(residency, what_a_later_pass_overwrites_is_not_taken_for_the_new)
{
    static const struct cox__pass_binding use_again[] = {{.binding = B, .row_access = COX__HALO, .halo_rows = 1},
                                                         {.binding = A, .access = COX__WRITE}};
    static const struct cox__pass_binding use_last[] = {{.binding = A, .row_access = COX__WHOLE},
                                                        {.binding = OUT, .access = COX__WRITE}};
    static const struct cox__pass_spec four[] = {RIG_PASS(use_a, to_a), RIG_PASS(use_b, to_b),
                                                 RIG_PASS(use_again, to_a_again), RIG_PASS(use_last, turned_a)};
    for (rig_policy_seed = 0; rig_policy_seed < 10; rig_policy_seed++) {
        static unsigned char rows[BYTES], more[BYTES];
        struct cox__session_spec params = *SESSION(.split_each_pass = true, .custom_policy = &random_policy);
        params.passes = four;
        params.pass_count = 4;
        open_bench(&mixed, &params);
        for (uint32_t f = 0; f < FRAMES; f++) {
            turn_rows(expected[f], rows); /* b + 2, turned twice */
            for (uint32_t i = 0; i < BYTES; i++)
                rows[i] = (unsigned char)(rows[i] - 2);
            near_rows(rows, more);
            turn_rows(more, expected[f]);
        }
        run_more(4 * FRAMES);
        close_bench();
    }
}

/* The devices alternate from row to row. A job cannot list that many missing pieces. */
Test(residency, a_frame_in_too_many_pieces_begins_anew_and_keeps_nothing)
{
    enum { SCRATCH = 6 };
    struct cox__binding all[SCRATCH + 2] = {[IN] = bindings[IN], [SCRATCH + 1] = bindings[OUT]};
    struct cox__stage stages[SCRATCH + 1] = {{0}};
    struct cox__arg args[SCRATCH][4];
    struct cox__pass_binding uses[SCRATCH + 1][2], use_last[SCRATCH + 1] = {{0}};
    struct cox__pass_spec steps[SCRATCH + 1] = {{0}};
    uint32_t turns[ROWS][2];
    for (uint32_t i = 0; i < SCRATCH; i++) {
        all[i + 1] = bindings[A];
        stages[i] = (struct cox__stage)RIG_STAGE("rig_near", IN, i + 1);
        memcpy(args[i], stages[i].args, sizeof args[i]);
        stages[i].args = args[i];
        uses[i][0] = use_a[0];
        uses[i][1] = (struct cox__pass_binding){.binding = i + 1, .access = COX__WRITE};
        steps[i] = (struct cox__pass_spec){.use_count = 2, .uses = uses[i], .stage_count = 1, .stages = &stages[i]};
        use_last[i] = (struct cox__pass_binding){.binding = i + 1, .row_access = COX__WHOLE};
    }
    stages[SCRATCH] = (struct cox__stage)RIG_STAGE("rig_turn", 1, SCRATCH + 1);
    use_last[SCRATCH] = (struct cox__pass_binding){.binding = SCRATCH + 1, .access = COX__WRITE};
    steps[SCRATCH] = (struct cox__pass_spec){
        .use_count = SCRATCH + 1, .uses = use_last, .stage_count = 1, .stages = &stages[SCRATCH]};
    for (uint32_t r = 0; r < ROWS; r++) {
        turns[r][0] = r % 2;
        turns[r][1] = 1;
    }
    rig_add_split(ROWS, turns);
    open_bench(&two_staged, &(const struct cox__session_spec){.rows = ROWS,
                                                              .binding_count = SCRATCH + 2,
                                                              .bindings = all,
                                                              .pass_count = SCRATCH + 1,
                                                              .passes = steps,
                                                              NO_WARMUP,
                                                              .split_each_pass = true,
                                                              .custom_policy = &rig_policy});
    cox_buffer *buffers[SCRATCH + 2] = {[IN] = in[0], [SCRATCH + 1] = out[0]};
    cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                           .buffer_count = SCRATCH + 2,
                                                                           .params = &kernel_params}),
                 COX_OK, "%s", rig_log(rig));
    static unsigned char one[BYTES], two[BYTES];
    near_rows(cox_buffer_data(in[0]), one);
    turn_rows(one, two);
    check_rows(out[0], two, 0);
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    uint32_t first_passes = 0, kept_last = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && record[i].kind != COX__JOB_FETCH) {
            first_passes += record[i].pass == 0;
            kept_last = record[i].kept;
        }
    free(record);
    cr_expect_eq(first_passes, 2 * ROWS);
    cr_expect_eq(kept_last, 0);
    close_bench();
}

/* ---- faults ---- */

Test(residency, rows_that_a_lost_device_had_are_done_again)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_FAILS_LATE, FAKE_DEVICE_DIES, FAKE_HANGS,
                                                 FAKE_SUBMIT_FAILS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t skip = 0; skip < 12; skip++) {
            rig_policy_seed = skip;
            open_bench(&mixed, SESSION(NO_WARMUP, .device_timeout_ns = 1000000, .split_each_pass = true,
                                       .custom_policy = &random_policy));
            FAULT(.kind = kinds[k], .device = skip % 2, .skip = skip * 10, .count = 1 + skip % 3 / 2,
                  .status = COX_E_DEVICE_LOST, .delay_ns = 50000000);
            run_more(4 * FRAMES);
            close_bench();
        }
}

/* The second device fails in the first frame. Only a later pass needs the rows of an earlier one. */
Test(residency, a_frame_starts_again_when_rows_of_an_earlier_pass_are_lost)
{
    for (uint32_t pass = 0; pass < 3; pass++) {
        open_bench(&two_staged, SESSION(NO_WARMUP, HALVES));
        FAULT(.kind = FAKE_DEVICE_DIES, .device = 1, .skip = pass, .delay_ns = 1000000);
        run_more(1);
        cr_expect_eq(fake_struck(fake), 1);
        cr_expect_eq(rig_logged_times(rig, "restarts"), pass > 0, "pass %u: %s", pass, rig_log(rig));
        close_bench();
    }
}

static cox_status count_passes(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    static uint32_t next;
    (void)view;
    (void)options;
    *(uint64_t *)state = next++ % 3;
    return COX_OK;
}

/* In the last pass the second device has two bands. The first device has all others. */
static cox_status last_on_second_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    const bool last = *(uint64_t *)state == 2 && view->devices[1].usable;
    out->bands[out->band_count++] = (struct cox_band){0, 0, last ? ROWS / 3 : ROWS};
    for (uint32_t b = 1; last && b < 3; b++)
        out->bands[out->band_count++] = (struct cox_band){1, b * ROWS / 3, ROWS / 3};
    return COX_OK;
}

static const struct cox_policy last_on_second = {
    .name = "last-on-second", .state_bytes = rig_policy_bytes, .init = count_passes, .split = last_on_second_split};

/* The second band reads rows whose copy to the device was part of the first band. The second band's end may be posted
 * before the first band's failure. Bands of a GPU would be polled by then. */
Test(residency, a_band_does_not_count_where_the_copies_of_the_one_before_it_failed)
{
    struct fake_params devices = two_staged;
    devices.devices[1].type = COX_DEVICE_CPU;
    for (uint64_t late_ns = 0; late_ns <= 1000000; late_ns += 500000) {
        open_bench(&devices, SESSION(NO_WARMUP, .split_each_pass = true, .custom_policy = &last_on_second));
        run_more(3);
        const struct copies copies = run_counted(1);
        cr_expect_eq(copies.in[2], ROWS); /* for both bands */
        FAULT(.kind = FAKE_EVENT_FAILS, .device = 1);
        if (late_ns)
            FAULT(.kind = FAKE_POST_LATE, .device = 1, .delay_ns = late_ns);
        run_more(2 * FRAMES);
        cr_expect_eq(fake_struck(fake), late_ns ? 2 : 1);
        close_bench();
    }
}

/* A device on probation repeats rows of a delivered frame, so they must be in host memory. */
Test(residency, a_device_comes_back)
{
    open_bench(&two_staged, SESSION(NO_WARMUP, HALVES, .device_timeout_ns = 1000000));
    FAULT(.kind = FAKE_DEVICE_DIES, .device = 1, .skip = 7, .delay_ns = 1000000);
    for (int i = 0; i < 400 && !rig_logged(rig, "is back"); i++)
        run_more(FRAMES);
    cr_expect(rig_logged(rig, "is back"), "%s", rig_log(rig));
    run_more(1);
    const struct copies copies = run_counted(1);
    cr_expect(copies.kept[0] == 2 && copies.kept[1] == 2);
    close_bench();
}

/* Rows that are not in host memory are fetched for the shadow run. */
Test(residency, a_shadow_run_has_what_it_reads)
{
    uint32_t shadows = 0;
    for (rig_policy_seed = 0; rig_policy_seed < 8; rig_policy_seed++) {
        open_bench(&mixed, SESSION(.split_each_pass = true, .custom_policy = &random_policy));
        run_more(4 * FRAMES);
        for (uint32_t i = 0; i < rig_report_count(rig); i++) {
            const struct rig_report *report = rig_report_at(rig, i);
            shadows += report->frame.shadow && report->frame.bands && report->bands[0].pass > 0;
        }
        close_bench();
    }
    cr_expect_gt(shadows, 0);
}
