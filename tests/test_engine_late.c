/* Bands that are late: others do their rows on copies, the first finished copy counts, nobody waits for who hangs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"
#include "scene_trio.h"
#include <stdlib.h>
#include <string.h>

TestSuite(engine_late, .timeout = 60);

/* The devices are known by then. */
static void begin(struct scene *scene, const struct fake_params *devices, enum shape shape, uint32_t in_flight)
{
    in_thirds();
    scene_begin(scene, devices, shape, 0,
                COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = in_flight, .no_warmup = true));
    scene_play(scene, LEARN);
}

static void hang(struct scene *scene, uint32_t device, uint64_t delay_ns)
{
    fake_script(scene->fake, &(struct fake_fault){.kind = FAKE_HANGS, .device = device, .delay_ns = delay_ns});
}

/* Bands of a frame that ended so on a device. */
static uint32_t bands(struct scene *scene, uint32_t frame, uint32_t device, cox_status status)
{
    const struct rig_report *report = scene_report(scene, frame);
    uint32_t count = 0;
    for (uint32_t b = 0; report && b < report->frame.band_count; b++)
        count += report->bands[b].device == device && report->bands[b].status == status;
    return count;
}

/* Every row of a frame has counted once. */
static void check_rows(struct scene *scene, uint32_t frame)
{
    const struct rig_report *report = scene_report(scene, frame);
    uint32_t counted[SCENE_ROWS] = {0};
    cr_assert_not_null(report);
    for (uint32_t b = 0; b < report->frame.band_count; b++)
        for (uint32_t r = 0; report->bands[b].status == COX_OK && r < report->bands[b].rows; r++)
            counted[report->bands[b].first_row + r]++;
    for (uint32_t r = 0; r < SCENE_ROWS; r++)
        cr_assert_eq(counted[r], 1, "frame %u, row %u counts %u times", frame, r, counted[r]);
}

/* An earlier session's times are not those of a first launch, which may have to compile. */
Test(engine_late, the_first_band_of_a_device_that_is_known_from_before_may_meet_a_compiler)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        in_thirds();
        scene_begin(&scene, &trio, SHAPE_MAP, 0,
                    COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true));
        for (uint32_t d = 0; d < 3; d++)
            scene.session->units[d].solo_ns = 9 * ms;
        hang(&scene, device, 5000 * ms);
        scene_play(&scene, LEARN);
        cr_assert_eq(scene_failed(&scene, 0, LEARN), 0);
        cr_assert_geq(scene_took(&scene, 0), 5000 * ms);
        cr_assert_eq(scene_device(&scene, device).lost, 0);
        cr_assert_eq(scene_device(&scene, device).late, 0);
        hang(&scene, device, 200 * ms);
        scene_play(&scene, LEARN);
        cr_assert_eq(scene_device(&scene, device).late, 1, "it is known now");
        END(&scene);
    }
}

/* ---- the first copy counts ---- */

Test(engine_late, rows_of_a_late_band_are_done_by_others_and_nobody_waits_for_it)
{
    for (enum shape shape = SHAPE_MAP; shape < SHAPE_INPLACE; shape++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
                struct scene scene;
                begin(&scene, &trio, shape, in_flight);
                hang(&scene, device, 200 * ms);
                scene_play(&scene, 12);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0);
                for (uint32_t i = LEARN; i < LEARN + 12; i++) {
                    cr_assert_lt(scene_took(&scene, i), 150 * ms, "%s: frame %u waited for device %u",
                                 shape_name(shape), i, device);
                    check_rows(&scene, i);
                }
                cr_assert_eq(bands(&scene, LEARN, device, COX_E_LATE), 1);
                cr_assert_geq(scene_device(&scene, device).late, 1);
                cr_assert_eq(scene_device(&scene, device).lost, 0);
                END(&scene);
            }
}

Test(engine_late, the_report_tells_the_late_attempt_and_those_that_counted)
{
    struct scene scene;
    begin(&scene, &trio, SHAPE_MAP, 2);
    hang(&scene, 1, 200 * ms);
    scene_play(&scene, 1);
    const struct rig_report *report = scene_report(&scene, LEARN);
    cr_assert_not_null(report);
    cr_assert_eq(report->frame.status, COX_OK);
    cr_assert_eq(report->frame.reason, COX_REASON_RERUN);
    const struct cox_band_report *late = NULL;
    uint32_t rows_again = 0;
    for (uint32_t b = 0; b < report->frame.band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        if (band->status == COX_E_LATE) {
            late = band;
            cr_assert_eq(band->device, 1);
            cr_assert_eq(band->attempt, 0);
            cr_assert_eq(band->first_row, THIRD);
            cr_assert_eq(band->rows, THIRD);
        } else if (band->attempt > 0) {
            cr_assert_not_null(late, "it comes after what it replaces");
            cr_assert_eq(band->status, COX_OK);
            cr_assert_neq(band->device, 1);
            cr_assert_leq(band->end_ns, late->end_ns);
            rows_again += band->rows;
        }
    }
    cr_assert_eq(rows_again, THIRD);
    END(&scene);
}

Test(engine_late, the_original_counts_when_it_comes_before_its_copies)
{
    for (enum shape shape = SHAPE_MAP; shape < SHAPE_INPLACE; shape++)
        for (uint32_t device = 0; device < 3; device++) {
            struct scene scene;
            begin(&scene, &trio, shape, 2);
            /* Who helps is slow: its next band is of this frame, the one after that is the copy. */
            hang(&scene, device, 40 * ms);
            for (uint32_t d = 0; d < 3; d++)
                if (d != device)
                    fake_script(scene.fake, &(struct fake_fault){
                                                .kind = FAKE_SLOW, .device = d, .skip = 1, .count = 1, .factor = 300});
            scene_play(&scene, 1);
            cr_assert_eq(scene.status[LEARN], COX_OK);
            cr_assert_lt(scene_took(&scene, LEARN), 60 * ms, "%s: frame waited for a copy", shape_name(shape));
            cr_assert_gt(scene_took(&scene, LEARN), 40 * ms);
            cr_assert_eq(bands(&scene, LEARN, device, COX_OK), 1);
            check_rows(&scene, LEARN);
            scene_play(&scene, 12);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 13), 0);
            cr_assert_eq(scene_device(&scene, device).late, 0);
            END(&scene);
        }
}

Test(engine_late, several_helpers_share_the_rows)
{
    static const struct fake_params four = {.device_count = 4,
                                            .devices = {{.ns_per_row = 1e5},
                                                        {.ns_per_row = 1e5},
                                                        {.mode = COX_MODE_STAGED, .ns_per_row = 1e5},
                                                        {.ns_per_row = 1e5}}};
    struct scene scene;
    rig_split_count = 0;
    rig_add_split(4, (const uint32_t[][2]){{0, 20}, {1, 20}, {2, 20}, {3, 30}});
    scene_begin(&scene, &four, SHAPE_MAP, 0,
                COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true));
    scene_play(&scene, LEARN);
    hang(&scene, 3, 200 * ms);
    fake_clear_record(scene.fake);
    scene_play(&scene, 1);
    size_t count;
    struct fake_record *record = fake_take_record(scene.fake, &count);
    uint32_t helpers = 0, redone[SCENE_ROWS] = {0};
    for (size_t i = 0; i < count; i++) {
        if (record[i].step != FAKE_STEP_SUBMIT || scene_own(&scene, &record[i]))
            continue;
        cr_assert_neq(record[i].device, 3);
        cr_assert_geq(record[i].first_row, 60);
        helpers |= 1u << record[i].device;
        for (uint32_t r = 0; r < record[i].rows; r++)
            redone[record[i].first_row + r]++;
    }
    free(record);
    cr_assert_geq(__builtin_popcount(helpers), 2);
    for (uint32_t r = 60; r < SCENE_ROWS; r++)
        cr_assert_eq(redone[r], 1);
    cr_assert_lt(scene_took(&scene, LEARN), 100 * ms);
    END(&scene);
}

Test(engine_late, a_helper_that_hangs_too_is_stood_in_for_or_waited_for)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t helper = 0; helper < 3; helper++)
            for (uint32_t in_flight = 2; in_flight <= 3; in_flight++) {
                if (helper == device)
                    continue;
                struct scene scene;
                begin(&scene, &trio, SHAPE_TWO, in_flight);
                hang(&scene, device, 150 * ms);
                for (uint32_t skip = 1; skip <= 2; skip++)
                    fake_script(scene.fake,
                                &(struct fake_fault){
                                    .kind = FAKE_HANGS, .device = helper, .skip = skip, .delay_ns = 300 * ms});
                scene_play(&scene, 30);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
                for (uint32_t i = LEARN; i < LEARN + 30; i++)
                    check_rows(&scene, i);
                END(&scene);
            }
}

Test(engine_late, every_device_late_at_once_is_waited_for)
{
    for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_MAP, in_flight);
        for (uint32_t d = 0; d < 3; d++)
            hang(&scene, d, (100 + 50 * d) * ms);
        scene_play(&scene, 30);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
        for (uint32_t d = 0; d < 3; d++)
            cr_assert_eq(scene_device(&scene, d).lost, 0);
        END(&scene);
    }
}

/* ---- what cannot be helped ---- */

Test(engine_late, without_memory_for_copies_the_late_device_is_waited_for)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        in_thirds();
        scene_begin(&scene, &trio, SHAPE_MAP, 0,
                    COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true));
        fake_script(scene.fake,
                    &(struct fake_fault){.kind = FAKE_MEM_FAILS, .count = UINT32_MAX, .status = COX_E_NOMEM});
        scene_play(&scene, LEARN);
        hang(&scene, device, 200 * ms);
        scene_play(&scene, 8);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 8), 0);
        cr_assert_gt(scene_took(&scene, LEARN), 200 * ms);
        cr_assert_eq(bands(&scene, LEARN, device, COX_OK), 1);
        cr_assert_eq(scene_device(&scene, device).lost, 0);
        END(&scene);
    }
}

Test(engine_late, one_device_alone_is_waited_for)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    struct scene scene;
    rig_split_count = 0;
    rig_add_split(1, (const uint32_t[][2]){{0, SCENE_ROWS}});
    scene_begin(&scene, &one, SHAPE_MAP, 0,
                COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true));
    scene_play(&scene, LEARN);
    hang(&scene, 0, 500 * ms);
    scene_play(&scene, 8);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 8), 0);
    cr_assert_gt(scene_took(&scene, LEARN), 500 * ms);
    cr_assert_eq(scene_device(&scene, 0).health, COX_HEALTH_GOOD);
    cr_assert_eq(scene_device(&scene, 0).late, 0);
    cr_assert_eq(fake_alive(scene.fake), 1 + 2 * scene.frames->count, "copies were made for nobody");
    END(&scene);
}

Test(engine_late, rows_in_place_are_waited_for_and_never_done_twice)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_INPLACE, 3);
        fake_clear_record(scene.fake);
        hang(&scene, device, 300 * ms);
        scene_play(&scene, 8);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 8), 0);
        cr_assert_gt(scene_took(&scene, LEARN), 300 * ms);
        size_t count;
        struct fake_record *record = fake_take_record(scene.fake, &count);
        uint32_t submits = 0;
        for (size_t i = 0; i < count; i++)
            submits += record[i].step == FAKE_STEP_SUBMIT;
        free(record);
        cr_assert_eq(submits, 3 * 8);
        END(&scene);
    }
}

Test(engine_late, rows_in_place_that_never_come_are_an_error_of_their_frame_alone)
{
    for (uint32_t device = 0; device < 3; device++) {
        struct scene scene;
        in_thirds();
        scene_begin(&scene, &trio, SHAPE_INPLACE, 0,
                    COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true,
                                       .give_up_ns = 400 * ms));
        scene_play(&scene, LEARN);
        hang(&scene, device, UINT64_MAX);
        scene_play(&scene, 20);
        cr_assert_eq(scene.status[LEARN], COX_E_DEVICE_LOST);
        cr_assert_geq(scene.done_ns[LEARN], scene.done_ns[LEARN - 1] + 400 * ms);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 20), 1);
        cr_assert_eq(scene_device(&scene, device).lost, 1);
        END(&scene);
    }
}

/* ---- the device that was late ---- */

struct stall {
    uint32_t device;
    uint32_t stalled; /* frames at whose end it was */
    uint32_t usable;  /* and was usable all the same */
};

static void see_stall(struct scene *scene, uint32_t frame, cox_status status)
{
    struct stall *stall = scene->user;
    const struct cox_session_device device = scene_device(scene, stall->device);
    (void)frame, (void)status;
    cr_assert_neq(device.health, COX_HEALTH_QUARANTINED);
    stall->stalled += device.health == COX_HEALTH_STALLED;
    stall->usable += device.health == COX_HEALTH_STALLED && device.usable;
}

Test(engine_late, a_stalled_device_gets_no_rows_until_it_is_through_and_then_gets_its_own)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
            struct scene scene;
            struct stall stall = {.device = device};
            begin(&scene, &trio, SHAPE_MAP, in_flight);
            scene.watch = see_stall;
            scene.user = &stall;
            fake_clear_record(scene.fake);
            hang(&scene, device, 120 * ms);
            scene_play(&scene, 60);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 60), 0);
            cr_assert_gt(stall.stalled, 3);
            cr_assert_eq(stall.usable, 0);
            cr_assert_eq(scene_device(&scene, device).health, COX_HEALTH_GOOD);
            cr_assert(scene_device(&scene, device).usable);
            size_t count;
            struct fake_record *record = fake_take_record(scene.fake, &count);
            uint64_t began = 0, ended = 0;
            uint32_t meanwhile = 0, after = 0;
            for (size_t i = 0; i < count; i++) {
                if (record[i].device != device)
                    continue;
                if (record[i].step == FAKE_STEP_SUBMIT && began == 0)
                    began = record[i].time_ns;
                else if (record[i].step == FAKE_STEP_SUBMIT && ended == 0)
                    meanwhile += record[i].time_ns > began + 60 * ms; /* before it was late it could get some */
                else if (record[i].step == FAKE_STEP_SUBMIT)
                    after++;
                if (record[i].step == FAKE_STEP_END && ended == 0)
                    ended = record[i].time_ns;
            }
            free(record);
            cr_assert_geq(ended, began + 120 * ms);
            cr_assert_eq(meanwhile, 0);
            cr_assert_gt(after, 5);
            END(&scene);
        }
}

static uint32_t unfinished[COX_DEVICES_MAX];

static void note_unfinished(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    unfinished[measurement->device] += (measurement->flags & COX_MEASURED_UNFINISHED) != 0;
}

Test(engine_late, the_policy_hears_of_rows_that_would_have_taken_longer)
{
    struct cox_policy policy = rig_policy;
    struct scene scene;
    policy.observe = note_unfinished;
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                COX_SESSION_PARAMS(.custom_policy = &policy, .in_flight = 2, .no_warmup = true));
    scene_play(&scene, LEARN);
    hang(&scene, 2, 200 * ms);
    scene_play(&scene, 4);
    cr_assert_eq(unfinished[0], 0);
    cr_assert_eq(unfinished[1], 0);
    cr_assert_eq(unfinished[2], 1);
    END(&scene);
}

Test(engine_late, a_device_that_becomes_slow_for_good_is_late_a_few_times_and_then_expected)
{
    for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_MAP, in_flight);
        fake_script(scene.fake,
                    &(struct fake_fault){.kind = FAKE_SLOW, .device = 1, .count = UINT32_MAX, .factor = 40});
        scene_play(&scene, 200);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 200), 0);
        cr_assert_eq(scene_device(&scene, 1).lost, 0);
        for (uint32_t i = LEARN; i < LEARN + 200; i++)
            cr_assert_lt(scene_took(&scene, i), 1000 * ms, "frame %u", i);
        cr_assert_lt(scene_device(&scene, 1).late, 100);
        END(&scene);
    }
}

/* ---- with policies that decide ---- */

Test(engine_late, whatever_the_policy_a_hang_costs_no_frame_and_no_bit, .timeout = 120)
{
    static const char *const policies[] = {"adaptive", "chunks", "hguided", "ewma", "static", "last-frame", "single"};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
        for (enum shape shape = SHAPE_MAP; shape < SHAPES; shape++)
            for (uint32_t in_flight = 2; in_flight <= 4; in_flight += 2) {
                struct scene scene;
                uint64_t seed = p * 100 + (uint32_t)shape * 10 + in_flight;
                scene_begin(&scene, &trio, shape, 0,
                            COX_SESSION_PARAMS(.policy = policies[p], .in_flight = in_flight, .no_warmup = p % 2));
                scene_play(&scene, LEARN);
                for (uint32_t i = 0; i < 6; i++)
                    fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_HANGS,
                                                                 .device = (uint32_t)(rig_random(&seed) % 3),
                                                                 .skip = (uint32_t)(rig_random(&seed) % 40),
                                                                 .delay_ns = rig_random(&seed) % (300 * ms)});
                scene_play(&scene, 60);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 60), 0, "%s, %s", policies[p], shape_name(shape));
                for (uint32_t i = 0; i < LEARN + 60; i++)
                    check_rows(&scene, i);
                END(&scene);
            }
}

Test(engine_late, bytes_that_no_kernel_writes_stay_what_they_were_where_others_stand_in)
{
    enum { ROWS = 96, COLUMNS = 16, PITCH = 32 };
    struct fake_params pair = trio;
    pair.device_count = 2;
    struct rig *rig = rig_new(&pair);
    struct rig_frames *frames = rig_frames_new(rig, ROWS, COLUMNS, PITCH, LEARN + 1);
    rig_split_count = 0;
    rig_add_split(2, (const uint32_t[][2]){{0, ROWS / 2}, {1, ROWS / 2}});
    cox_session *session;
    cr_assert_eq(rig_map_session(frames,
                                 COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 1, .no_warmup = true),
                                 &session),
                 COX_OK);
    for (uint32_t i = 0; i <= LEARN; i++) {
        if (i == LEARN)
            fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_HANGS, .device = 1, .delay_ns = 200 * ms});
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
        cox_session_wait(session);
        cr_assert_str_empty(rig_check(frames, i));
        const unsigned char *out = cox_buffer_data(frames->out[i]);
        for (uint32_t b = 0; b < ROWS * PITCH; b++)
            cr_assert(b % PITCH < COLUMNS || out[b] == 0xee, "frame %u, row %u, byte %u", i, b / PITCH, b % PITCH);
    }
    struct cox_session_info info;
    cox_session_info(session, &info);
    cr_assert_eq(info.devices[1].late, 1);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    cr_assert_str_empty(rig_end(&rig));
}
