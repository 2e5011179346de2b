/* Shadow runs: bands repeated on copies outside of a frame, to measure a device. On scripted devices with a virtual
 * clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "map_test.h"
#include <time.h>

TestSuite(engine_shadow, .timeout = 600);

/* ---- a policy that requests a shadow run in every frame ---- */

enum { MEASURED_MAX = 4096, ROWS = 120 };

static struct {
    struct cox_band shadow; /* 0 rows: no request */
    uint32_t pool_rows;     /* at the end of the frame */
    uint32_t views_without; /* views in which no shadow run was possible */
    uint32_t offers_to[COX_DEVICES_MAX];
    uint32_t measured_count;
    struct cox_measurement measured[MEASURED_MAX];
} cue;

/* Devices 0 and 1 share the rows that are not in the pool. */
static cox_status cue_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    const uint32_t rows = view->rows - cue.pool_rows, half = rows / 2;
    for (uint32_t d = 0, first = 0; d < 2; d++) {
        const uint32_t share = d ? rows - half : half;
        const uint32_t device = view->devices[d].usable ? d : view->devices[!d].usable ? !d : 2;
        if (share)
            out->bands[out->band_count++] = (struct cox_band){device, first, share};
        first += share;
    }
    out->pool_first_row = rows;
    out->pool_rows = cue.pool_rows;
    cue.views_without += !view->shadow;
    if (view->shadow && cue.shadow.rows && view->devices[cue.shadow.device].usable &&
        view->devices[0].usable == view->devices[1].usable)
        out->shadow = cue.shadow;
    return COX_OK;
}

static void cue_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    cr_assert_lt(cue.measured_count, MEASURED_MAX);
    cue.measured[cue.measured_count++] = *measurement;
}

static void cue_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                     struct cox_chunk *out)
{
    (void)state, (void)view;
    cue.offers_to[offer->device]++;
    out->rows = offer->rows < 10 ? offer->rows : 10;
}

static const struct cox_policy cue_policy = {.name = "cue",
                                             .state_bytes = rig_policy_bytes,
                                             .init = rig_policy_init,
                                             .split = cue_split,
                                             .observe = cue_observe,
                                             .assign = cue_next};

static uint32_t measured_shadows(uint32_t flags)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cue.measured_count; i++)
        count += cue.measured[i].flags == (COX_MEASURED_SHADOW | flags);
    return count;
}

/* ---- scenes ---- */

/* The third device is a hundred times slower. */
static const struct fake_params slow_third = {
    .device_count = 3,
    .devices = {{.name = "a", .fixed_ns = 10e3, .ns_per_row = 2e3},
                {.name = "b", .type = COX_DEVICE_GPU, .fixed_ns = 10e3, .ns_per_row = 2e3},
                {.name = "shadowed", .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .ns_per_row = 200e3}}};

static void wish(struct cox_band shadow)
{
    memset(&cue, 0, sizeof cue);
    cue.shadow = shadow;
}

static void begin(const struct fake_params *devices, struct cox_band shadow, const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    wish(shadow);
    params.custom_policy = &cue_policy;
    open_rig(devices, ROWS, 13, 6);
    open_session(&params);
}

/* Without a warm-up. */
static void begin_slow_third(uint32_t first_row, uint32_t rows, uint32_t in_flight)
{
    begin(&slow_third, (struct cox_band){2, first_row, rows},
          &(const struct cox__session_spec){.in_flight = in_flight, .no_warmup = true});
}

static void play(uint32_t to)
{
    rig_play(rig, frames, session, 0, to);
}

/* In real time, because the virtual clock may stand still. */
static void await_done(uint32_t count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int tries = 0; rig_done_count(rig) < count; tries++) {
        cr_assert_lt(tries, 60000, "frame %u was not delivered", count - 1);
        nanosleep(&pause, NULL);
    }
}

/* Submit `count` frames while the clock stands still, until `running` bands are under way. */
static void submit_held(uint32_t count, uint32_t running)
{
    fake_hold(fake);
    submit_frames(0, count);
    cr_assert(fake_await_running(fake, running), "fewer than %u bands are under way", running);
    fake_release(fake);
}

/* A frame with buffers that the test destroys itself. */
static cox_buffer *own[2];

static void submit_own(cox_done_fn *done)
{
    static const struct rig_params params = {.add = 1, .columns = 16};
    for (int b = 0; b < 2; b++)
        own[b] = new_buffer(ROWS * 16);
    cr_assert_eq(cox__session_submit(session,
                                     &(const struct cox__frame_spec){
                                         .buffers = own, .buffer_count = 2, .params = &params},
                                     done, rig),
                 COX_OK);
}

static void destroy_own(void)
{
    cox_buffer_destroy(&own[0]);
    cox_buffer_destroy(&own[1]);
}

/* ---- results of a shadow run ---- */

Test(engine_shadow, is_measured_told_as_one_and_reported_apart)
{
    for (uint32_t warm = 0; warm < 2; warm++) {
        begin(&slow_third, (struct cox_band){2, 40, 8},
              &(const struct cox__session_spec){.in_flight = 2, .no_warmup = !warm});
        play(12);
        uint32_t reports = 0;
        for (uint32_t i = 0; i < rig_report_count(rig); i++) {
            const struct rig_report *report = rig_report_at(rig, i);
            if (!report->frame.shadow)
                continue;
            reports++;
            cr_assert_not(report->frame.warmup);
            cr_assert_eq(report->frame.status, COX_OK);
            cr_assert_eq(report->frame.band_count, 1);
            cr_assert_lt(report->frame.joules, 0);
            cr_assert_eq(report->bands[0].device, 2);
            cr_assert_eq(report->bands[0].first_row, 40);
            cr_assert_eq(report->bands[0].rows, 8);
            cr_assert_eq(report->bands[0].wall_ns, 1600000);
        }
        cr_assert_geq(reports, 1);
        cr_assert_eq(measured_shadows(0), reports);
        for (uint32_t i = 0; i < cue.measured_count; i++)
            if (cue.measured[i].flags & COX_MEASURED_SHADOW) {
                cr_assert_eq(cue.measured[i].device, 2);
                cr_assert_eq(cue.measured[i].first_row, 40);
                cr_assert_eq(cue.measured[i].rows, 8);
                cr_assert_eq(cue.measured[i].wall_ns, 1600000);
            } else {
                cr_assert_neq(cue.measured[i].device, 2);
            }
        close_rig();
    }
}

Test(engine_shadow, never_delays_a_frame)
{
    uint64_t took[2][30] = {{0}};
    for (uint32_t with = 0; with < 2; with++)
        for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
            begin(&slow_third, (struct cox_band){2, 0, with ? ROWS : 0},
                  &(const struct cox__session_spec){.in_flight = in_flight, .no_warmup = true});
            fake_hold(fake);
            for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(rig_submit(frames, session, i, i >= in_flight), i < in_flight ? COX_OK : COX_E_BUSY);
            cr_assert(fake_await_running(fake, 2 * in_flight + with));
            fake_release(fake);
            cox_session_wait(session);
            cr_assert_eq(measured_shadows(0), with);
            for (uint32_t i = 0, n = 0; i < rig_report_count(rig); i++) {
                const struct cox_frame_report *frame = reported(i);
                if (!frame->shadow)
                    took[with][10 * in_flight - 10 + n++] = frame->total.end_ns - frame->total.start_ns;
                else
                    cr_assert_eq(i, in_flight, "the frames come before the shadow");
            }
            close_rig();
        }
    cr_assert_gt(took[0][0], 0);
    cr_assert_gt(took[0][11], 0);
    cr_assert_arr_eq(took[0], took[1], sizeof took[0]);
}

Test(engine_shadow, leaves_the_frame_s_buffers_alone_once_the_frame_is_delivered)
{
    begin_slow_third(0, ROWS, 1);
    /* Twice: a shadow run that fails leaves garbage in its outputs. */
    for (uint32_t fails = 0; fails < 2; fails++) {
        if (fails)
            FAULT(.kind = FAKE_EVENT_FAILS, .device = 2);
        fake_hold(fake);
        submit_own(rig_done);
        cr_assert(fake_await_running(fake, 3));
        /* The shadow run ends 24 ms after the two bands. The memory of a running band must not be destroyed. */
        fake_release(fake);
        await_done(1 + fails);
        memset(cox_buffer_data(own[1]), 0x33, ROWS * 16);
        if (fails) {
            cox_session_wait(session);
            for (uint32_t i = 0; i < ROWS * 16; i++)
                cr_assert_eq(((unsigned char *)cox_buffer_data(own[1]))[i], 0x33, "byte %u", i);
        }
        destroy_own();
        cox_session_wait(session);
    }
    cr_assert_eq(measured_shadows(0), 1);
    cr_assert_eq(measured_shadows(COX_MEASURED_UNFINISHED), 1);
    close_rig();
}

/* The buffers of a delivered frame are destroyed during its shadow run. Meanwhile the clock stands still. */
static void hold_when_done(void *user, uint64_t frame, cox_status status)
{
    fake_hold(fake);
    rig_done(user, frame, status);
}

Test(engine_shadow, does_not_need_the_frame_s_buffers_any_more)
{
    begin_slow_third(0, ROWS, 1);
    submit_own(hold_when_done);
    await_done(1);
    cr_assert_eq(measured_shadows(0), 0, "the shadow run is still under way");
    destroy_own(); /* a violation if the shadow run used them */
    fake_release(fake);
    cox_session_wait(session);
    cr_assert_eq(measured_shadows(0), 1, "cox_session_wait waits for the shadow run");
    close_rig();
}

Test(engine_shadow, a_session_may_be_destroyed_while_one_is_under_way)
{
    for (uint32_t fails = 0; fails < 3; fails++) {
        begin_slow_third(0, ROWS, 1);
        if (fails)
            FAULT(.kind = fails == 1 ? FAKE_EVENT_FAILS : FAKE_NO_POST, .device = 2);
        cr_assert_eq(rig_submit(frames, session, 0, false), COX_OK);
        await_done(1);
        close_rig();
    }
}

Test(engine_shadow, one_at_a_time)
{
    begin_slow_third(0, 40, 3);
    submit_held(3, 5); /* two bands on each of two devices, and a shadow run */
    cox_session_wait(session);
    size_t count;
    struct fake_record *record = fake_take_record(fake, &count);
    uint32_t under_way = 0, shadows = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].device == 2 && record[i].step == FAKE_STEP_SUBMIT) {
            cr_assert_eq(under_way++, 0);
            shadows++;
        } else if (record[i].device == 2 && record[i].step == FAKE_STEP_END) {
            under_way--;
        }
    cr_assert_eq(shadows, 1, "the requests of frames 1 and 2 are dropped");
    free(record);
    close_rig();
}

/* ---- the device of a shadow run fails ---- */

Test(engine_shadow, the_loss_of_its_device_costs_the_device_and_no_frame)
{
    static const enum fake_fault_kind kinds[] = {FAKE_SUBMIT_FAILS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t skip = 0; skip < 2; skip++) {
            begin_slow_third(0, 8, 2);
            FAULT(.kind = kinds[k], .device = 2, .skip = skip, .status = COX_E_DEVICE_LOST);
            play(12);
            const struct cox_session_info info = rig_info(session);
            cr_assert_neq(info.devices[2].state, COX_DEVICE_ACTIVE);
            cr_assert_eq(measured_shadows(0), skip);
            cr_assert_eq(measured_shadows(COX_MEASURED_UNFINISHED), k > 0);
            uint32_t failed = 0;
            for (uint32_t i = 0; i < rig_report_count(rig); i++) {
                const struct cox_frame_report *frame = reported(i);
                failed += frame->shadow && frame->status != COX_OK;
                if (!frame->shadow)
                    cr_assert_eq(frame->band_count, 2, "no frame's band is run again");
            }
            cr_assert_eq(failed, 1);
            close_rig();
        }
}

Test(engine_shadow, the_device_may_be_needed_while_its_shadow_is_under_way)
{
    begin_slow_third(0, 40, 1);
    for (uint32_t d = 0; d < 2; d++)
        FAULT(.kind = FAKE_EVENT_FAILS, .device = d, .skip = d);
    play(6);
    const struct cox_session_info info = rig_info(session);
    cr_assert(info.devices[0].lost && info.devices[1].lost);
    close_rig();
}

/* ---- when no shadow run is possible ---- */

Test(engine_shadow, without_memory_for_it_the_policy_hears_that_there_are_none)
{
    begin_slow_third(0, 8, 1);
    FAULT(.kind = FAKE_MEM_FAILS, .skip = 1, .status = COX_E_DEVICE_MEMORY);
    play(6);
    cr_assert_eq(cue.views_without, 5);
    cr_assert_eq(measured_shadows(0), 0);
    cr_assert(rig_logged(rig, "shadow runs and checks are"), "%s", rig_log(rig));
    close_rig();
}

/* A run that hangs costs the copies that it works on. A frame takes 0.3 s, because the pauses of the device become
 * long. */
Test(engine_shadow, after_eight_that_hang_the_policy_hears_that_there_are_none)
{
    enum { COPIES = 8, MORE = 6 };
    struct fake_params params = slow_third;
    uint32_t count = 0;
    params.devices[0].ns_per_row = params.devices[1].ns_per_row = 5e6;
    begin(&params, (struct cox_band){2, 0, 8},
          &(const struct cox__session_spec){.in_flight = 1, .no_warmup = true, .device_timeout_ns = 100000000});
    FAULT(.kind = FAKE_HANGS, .device = 2, .count = UINT32_MAX, .delay_ns = UINT64_MAX);
    for (; !rig_logged(rig, "devices hung in them too often"); count += 3) {
        cr_assert_lt(count, 900, "%s", rig_log(rig));
        rig_play(rig, frames, session, count, count + 3);
    }
    cr_assert_eq(fake_struck(fake), COPIES);
    const uint32_t before = cue.views_without;
    rig_play(rig, frames, session, count, count + MORE);
    cr_assert_eq(cue.views_without, before + MORE);
    cr_assert_eq(fake_struck(fake), COPIES);
    cr_assert_eq(rig_info(session).devices[2].state, COX_DEVICE_ACTIVE, "there is nothing that it could show");
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig); /* the memory of runs that never end is not released */
}

Test(engine_shadow, a_device_that_computes_inside_the_enqueue_call_does_none)
{
    struct fake_params params = slow_third;
    params.devices[2] = (struct fake_device){.ns_per_row = 200e3, .inside_submit = true};
    begin(&params, (struct cox_band){2, 0, 8}, &(const struct cox__session_spec){.in_flight = 1});
    play(6);
    cr_assert_eq(measured_shadows(0), 0);
    cr_assert_eq(cue.views_without, 0);
    close_rig();
}

Test(engine_shadow, there_is_none_where_rows_are_written_in_place)
{
    static const struct cox__binding binding = {
        .name = "buffer", .row_access = COX__ROWS, .access = COX__READ_WRITE, .pitch_bytes = 16};
    wish((struct cox_band){2, 0, 8});
    open_rig(&slow_third, ROWS, 16, 1);
    create_session(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = 1,
                                                     .bindings = &binding,
                                                     .stage_count = 1,
                                                     .stages = &rig_stage_inplace,
                                                     .params_bytes = sizeof(struct rig_params),
                                                     .custom_policy = &cue_policy,
                                                     .allow_in_place = true,
                                                     .in_flight = 1});
    cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = frames->in,
                                                                           .buffer_count = 1,
                                                                           .params = frames->params}),
                 COX_OK);
    cr_assert_eq(cue.views_without, 1);
    close_rig();
}

Test(engine_shadow, its_device_is_offered_no_rows_meanwhile)
{
    begin_slow_third(0, ROWS, 3);
    cue.pool_rows = 40;
    submit_held(3, 3);
    cox_session_wait(session);
    cr_assert_eq(measured_shadows(0), 1);
    cr_assert_gt(cue.offers_to[0] + cue.offers_to[1], 0);
    cr_assert_eq(cue.offers_to[2], 0);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_str_empty(rig_check(frames, i));
    close_rig();
}

Test(engine_shadow, is_cut_to_what_the_device_can_hold)
{
    struct fake_params params = slow_third;
    params.devices[2].max_rows = 20;
    begin(&params, (struct cox_band){2, 40, 60}, &(const struct cox__session_spec){.in_flight = 1, .no_warmup = true});
    play(3);
    cr_assert_geq(measured_shadows(0), 1);
    for (uint32_t i = 0; i < cue.measured_count; i++)
        if (cue.measured[i].flags & COX_MEASURED_SHADOW)
            cr_assert_eq(cue.measured[i].rows, 20);
    close_rig();
}

/* ---- memory of a shadow run ---- */

enum { SPY_MAX = 65536 };

static struct {
    uint32_t calls;
    uint32_t first_row, rows;
    uint32_t bytes;
    unsigned char out[SPY_MAX];
} spied;

/* The contents that the third device wrote. */
static void spy(const struct fake_args *args, uint32_t out)
{
    const struct cox__binding *binding = &args->pass->bindings[out];
    if (args->device != 2)
        return;
    spied.calls++;
    spied.first_row = args->first_row;
    spied.rows = args->rows;
    spied.bytes = args->rows * (uint32_t)binding->pitch_bytes;
    cr_assert_leq(spied.bytes, SPY_MAX);
    memcpy(spied.out, args->data[out] + (args->first_row - args->origin[out]) * binding->pitch_bytes, spied.bytes);
}

static void run_spied(const struct cox__stage *stage, uint32_t binding_count, const struct cox__binding *bindings,
                      enum cox_memory_mode mode)
{
    struct fake_params params = slow_third;
    params.devices[2].mode = mode;
    cox_buffer *buffers[3] = {NULL};
    const struct rig_params block = {.add = 5, .columns = 16};
    uint64_t seed = 4;
    wish((struct cox_band){2, 36, 24});
    memset(&spied, 0, sizeof spied);
    rig_spy = spy;
    open_rig(&params, ROWS, 16, 1);
    for (uint32_t i = 0; i < binding_count; i++) {
        const size_t bytes = bindings[i].bytes ? bindings[i].bytes : ROWS * bindings[i].pitch_bytes;
        buffers[i] = new_buffer(bytes);
        for (size_t b = 0; b < bytes; b++)
            ((unsigned char *)cox_buffer_data(buffers[i]))[b] = (unsigned char)rig_random(&seed);
    }
    create_session(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = binding_count,
                                                     .bindings = bindings,
                                                     .stage_count = 1,
                                                     .stages = stage,
                                                     .params_bytes = sizeof block,
                                                     .custom_policy = &cue_policy,
                                                     .in_flight = 1,
                                                     .no_warmup = true});
    cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                           .buffer_count = binding_count,
                                                                           .params = &block}),
                 COX_OK);
    cox_session_wait(session);
    cr_assert_eq(spied.calls, 1);
    cr_assert_eq(spied.first_row, 36);
    cr_assert_eq(spied.rows, 24);
    cr_assert_arr_eq(spied.out, (char *)cox_buffer_data(buffers[1]) + 36 * 16, spied.bytes,
                     "it computes what the frame holds there");
    rig_spy = NULL;
    for (uint32_t i = 0; i < binding_count; i++)
        cox_buffer_destroy(&buffers[i]);
    close_rig();
}

Test(engine_shadow, works_on_the_frame_s_own_inputs)
{
    static const struct cox__binding halo[] = {
        {.name = "in", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = 16, .halo_rows = 3},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 16}};
    static const struct cox__binding table[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 16},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 16},
        {.name = "table", .row_access = COX__WHOLE, .access = COX__READ, .bytes = 256}};
    static const enum cox_memory_mode modes[] = {COX_MODE_MAPPED, COX_MODE_STAGED};
    for (int m = 0; m < 2; m++) {
        run_spied(&rig_stage_halo, 2, halo, modes[m]);
        run_spied(&rig_stage_table, 3, table, modes[m]);
    }
}

enum { USED = 12, PITCH = 16 };
static uint32_t copied, strays;

/* Count the input's bytes that were copied for the third device: those of its rows, and those around them. */
static void count_copied(const struct fake_args *args, uint32_t out)
{
    (void)out;
    if (args->device != 2)
        return;
    const unsigned char *above = args->data[0] - PITCH;
    for (uint32_t i = 0; i < (args->rows + 2) * PITCH; i++) {
        const bool own = i / PITCH > 0 && i / PITCH <= args->rows && i % PITCH < USED;
        copied += own && above[i];
        strays += !own && above[i];
    }
}

/* Other devices may be writing the rows next to them, and the bytes between rows are not the frame's. */
Test(engine_shadow, copies_the_rows_of_its_band_and_nothing_else)
{
    static const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = PITCH, .row_bytes = USED},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = PITCH, .row_bytes = USED}};
    struct fake_params params = slow_third;
    params.devices[2].mode = COX_MODE_MAPPED;
    wish((struct cox_band){2, 36, 24});
    open_rig(&params, ROWS, USED, 1);
    memset(cox_buffer_data(frames->in[0]), 0x55, ROWS * PITCH);
    create_session(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = 2,
                                                     .bindings = bindings,
                                                     .stage_count = 1,
                                                     .stages = &rig_stage_map,
                                                     .params_bytes = sizeof(struct rig_params),
                                                     .custom_policy = &cue_policy,
                                                     .in_flight = 1,
                                                     .no_warmup = true});
    rig_spy_first = count_copied;
    cr_assert_eq(cox__session_run(session, RIG_FRAME(frames, 0)), COX_OK);
    cox_session_wait(session);
    rig_spy_first = NULL;
    cr_assert_eq(copied, 24 * USED);
    cr_assert_eq(strays, 0);
    close_rig();
}

Test(engine_shadow, its_partial_results_are_not_counted)
{
    static const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 16},
        {.name = "histogram", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 1024, .merge = rig_merge_sum}};
    struct fake_params params = slow_third;
    params.devices[2].ns_per_row = 10; /* it ends before the frame does */
    wish((struct cox_band){2, 0, ROWS});
    open_rig(&params, ROWS, 16, 1);
    cox_buffer *histogram = new_buffer(1024);
    create_session(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = 2,
                                                     .bindings = bindings,
                                                     .stage_count = 1,
                                                     .stages = &rig_stage_count,
                                                     .params_bytes = sizeof(struct rig_params),
                                                     .custom_policy = &cue_policy,
                                                     .in_flight = 2});
    uint32_t want[256] = {0};
    for (uint32_t b = 0; b < ROWS * 16; b++)
        want[((unsigned char *)cox_buffer_data(frames->in[0]))[b]]++;
    for (uint32_t i = 0; i < 10; i++) {
        cox_buffer *const buffers[] = {frames->in[0], histogram};
        cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                               .buffer_count = 2,
                                                                               .params = &frames->params[0]}),
                     COX_OK);
        cr_assert_arr_eq(cox_buffer_data(histogram), want, sizeof want, "run %u", i);
    }
    cox_session_wait(session);
    cr_assert_eq(measured_shadows(0), 10);
    cox_session_destroy(&session);
    cox_buffer_destroy(&histogram);
    close_rig();
}
