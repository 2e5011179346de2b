/* Bands done twice on different devices and compared: who gives wrong bits is found, and the frame comes out right.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/scene_trio.h"
#include <stdlib.h>
#include <string.h>

TestSuite(engine_verify, .timeout = 600);

static const struct fake_params pair = {
    .device_count = 2,
    .devices = {{.name = "alpha", .ns_per_row = 1e5},
                {.name = "beta", .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .ns_per_row = 1e5}},
};

/* Shapes whose kernels write every byte of their rows. */
static const enum shape whole[] = {SHAPE_MAP, SHAPE_HALO, SHAPE_TABLE, SHAPE_TWO};
enum { WHOLE = sizeof whole / sizeof whole[0] };

static void begin(struct scene *scene, const struct fake_params *devices, enum shape shape, uint32_t in_flight,
                  double verify)
{
    rig_split_count = 0;
    if (devices->device_count == 3)
        rig_add_split(3, (const uint32_t[][2]){{0, THIRD}, {1, THIRD}, {2, THIRD}});
    else if (devices->device_count == 2)
        rig_add_split(2, (const uint32_t[][2]){{0, 2 * THIRD}, {1, THIRD}});
    else
        rig_add_split(1, (const uint32_t[][2]){{0, SCENE_ROWS}});
    scene_begin(scene, devices, shape, 0,
                COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = in_flight, .no_warmup = true,
                                   .verify = verify));
    scene_play(scene, LEARN);
}

/* From the `skip`-th band on, so many bands of the device come out wrong. */
static void corrupt(struct scene *scene, uint32_t device, uint32_t skip, uint32_t count)
{
    fake_script(scene->fake,
                &(struct fake_fault){.kind = FAKE_CORRUPTS, .device = device, .skip = skip, .count = count});
}

static uint32_t mismatches(struct scene *scene, uint32_t first, uint32_t end, uint32_t device)
{
    uint32_t found = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct rig_report *report = scene_report(scene, i);
        for (uint32_t b = 0; report && b < report->frame.band_count; b++)
            found += report->bands[b].device == device && report->bands[b].status == COX_E_MISMATCH;
    }
    return found;
}

static void check_faulty(struct scene *scene, uint32_t faulty, const char *what)
{
    struct cox_session_info info;
    cox_session_info(scene->session, &info, sizeof info);
    for (uint32_t d = 0; d < info.device_count; d++)
        cr_assert_eq(info.devices[d].lost, d == faulty, "%s: device %u is faulty, device %u was quarantined %u times",
                     what, faulty, d, info.devices[d].lost);
}

/* ---- the faulty device is found ---- */

Test(engine_verify, good_devices_are_never_convicted)
{
    for (uint32_t s = 0; s < WHOLE; s++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++)
            for (uint32_t two = 0; two < 2; two++) {
                struct scene scene;
                begin(&scene, two ? &pair : &trio, whole[s], in_flight, 1);
                scene_play(&scene, 30);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
                check_faulty(&scene, UINT32_MAX, shape_name(whole[s]));
                END(&scene);
            }
}

Test(engine_verify, a_single_wrong_bit_is_found_and_the_frame_delivered_right)
{
    for (uint32_t s = 0; s < WHOLE; s++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t skip = 0; skip < 4; skip++) { /* the frame's own band, and others' that it does again */
                struct scene scene;
                begin(&scene, &trio, whole[s], 2 + skip % 2, 1);
                corrupt(&scene, device, skip, 1);
                scene_play(&scene, 12);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0);
                check_faulty(&scene, device, shape_name(whole[s]));
                END(&scene);
            }
}

Test(engine_verify, of_three_devices_the_one_that_always_lies_is_outvoted)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
            struct scene scene;
            begin(&scene, &trio, SHAPE_MAP, in_flight, 1);
            corrupt(&scene, device, 0, UINT32_MAX);
            scene_play(&scene, 30);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
            cr_assert_neq(scene_device(&scene, device).state, COX_DEVICE_ACTIVE);
            for (uint32_t d = 0; d < 3; d++)
                cr_assert_eq(scene_device(&scene, d).lost > 0, d == device);
            END(&scene);
        }
}

Test(engine_verify, of_two_devices_the_one_that_contradicts_itself_lies)
{
    for (uint32_t s = 0; s < WHOLE; s++)
        for (uint32_t device = 0; device < 2; device++)
            for (uint32_t skip = 0; skip < 2; skip++) {
                struct scene scene;
                begin(&scene, &pair, whole[s], 2, 1);
                corrupt(&scene, device, skip, 1);
                scene_play(&scene, 12);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0, "%s", rig_log(scene.rig));
                check_faulty(&scene, device, shape_name(whole[s]));
                END(&scene);
            }
}

Test(engine_verify, a_device_that_contradicts_itself_lies_though_it_never_says_what_is_right)
{
    for (uint32_t device = 0; device < 2; device++) {
        struct scene scene;
        begin(&scene, &pair, SHAPE_MAP, 1, 1);
        /* The other's band it does wrong, and again, but not the same way. Its own is right. */
        for (uint32_t rows = 1; rows <= 2; rows++)
            fake_script(scene.fake,
                        &(struct fake_fault){.kind = FAKE_CORRUPTS, .device = device, .skip = 1, .factor = rows});
        scene_play(&scene, 12);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0, "%s", rig_log(scene.rig));
        check_faulty(&scene, device, "map");
        END(&scene);
    }
}

Test(engine_verify, what_a_faulty_device_leaves_where_no_kernel_writes_is_not_its_judges)
{
    for (uint32_t two = 0; two < 2; two++)
        for (uint32_t device = 0; device < 2; device++)
            for (uint32_t skip = 0; skip < 2; skip++) {
                struct scene scene;
                begin(&scene, two ? &pair : &trio, SHAPE_CHROMA, 2, 1);
                fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_STRAYS, .device = device, .skip = skip});
                scene_play(&scene, 12);
                cr_assert_eq(scene_failed(&scene, 0, LEARN + 12), 0, "%s", rig_log(scene.rig));
                check_faulty(&scene, device, "chroma");
                END(&scene);
            }
}

Test(engine_verify, two_devices_that_stand_by_what_they_say_leave_no_verdict)
{
    struct scene scene;
    begin(&scene, &pair, SHAPE_MAP, 2, 1);
    corrupt(&scene, 1, 0, UINT32_MAX);
    scene_play(&scene, 10);
    uint32_t wrong = 0;
    for (uint32_t i = LEARN; i < scene.done; i++) {
        cr_assert(scene.status[i] == COX_OK || scene.status[i] == COX_E_MISMATCH);
        wrong += scene.status[i] == COX_E_MISMATCH;
    }
    cr_assert_eq(scene.status[LEARN], COX_E_MISMATCH);
    cr_assert_gt(wrong, 0);
    END(&scene); /* and whatever was said to be good was */
}

Test(engine_verify, the_report_says_which_rows_were_wrong)
{
    struct scene scene;
    begin(&scene, &trio, SHAPE_MAP, 2, 1);
    corrupt(&scene, 1, 0, 1);
    scene_play(&scene, 4);
    const struct rig_report *report = scene_report(&scene, LEARN);
    cr_assert_not_null(report);
    cr_assert_eq(report->frame.status, COX_OK);
    cr_assert_eq(mismatches(&scene, LEARN, LEARN + 1, 1), 1);
    cr_assert_eq(mismatches(&scene, 0, LEARN + 4, 0) + mismatches(&scene, 0, LEARN + 4, 2), 0);
    uint32_t again = 0;
    for (uint32_t b = 0; b < report->frame.band_count; b++)
        if (report->bands[b].attempt > 0) {
            cr_assert_neq(report->bands[b].device, 1);
            cr_assert_eq(report->bands[b].status, COX_OK);
            again += report->bands[b].rows;
        }
    cr_assert_eq(again, THIRD);
    cr_assert(rig_logged(scene.rig, "beta"));
    END(&scene);
}

Test(engine_verify, all_rows_that_a_faulty_device_did_for_the_frame_are_done_again)
{
    for (uint32_t wrong = 1; wrong <= 3; wrong++) {
        struct scene scene;
        rig_split_count = 0;
        rig_add_split(6, (const uint32_t[][2]){{1, 15}, {0, 15}, {1, 15}, {2, 15}, {1, 15}, {0, 15}});
        scene_begin(&scene, &trio, SHAPE_MAP, 0,
                    COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true, .verify = 1));
        scene_play(&scene, LEARN);
        corrupt(&scene, 1, 0, wrong);
        scene_play(&scene, 6);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 6), 0);
        check_faulty(&scene, 1, "map");
        END(&scene);
    }
}

Test(engine_verify, a_faulty_device_comes_back_once_its_rows_are_right)
{
    struct scene scene;
    begin(&scene, &trio, SHAPE_MAP, 2, 1);
    corrupt(&scene, 1, 0, 2);
    scene_play(&scene, 200);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 200), 0);
    cr_assert_geq(scene_device(&scene, 1).returned, 1);
    cr_assert_eq(scene_device(&scene, 1).state, COX_DEVICE_ACTIVE);
    END(&scene);
}

/* ---- what it costs ---- */

/* Rows done on copies. */
static uint32_t copied_rows(struct scene *scene)
{
    size_t count;
    struct fake_record *record = fake_take_record(scene->fake, &count);
    uint32_t rows = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && !scene_own(scene, &record[i]))
            rows += record[i].rows;
    free(record);
    return rows;
}

Test(engine_verify, the_share_is_what_is_done_twice)
{
    static const double shares[] = {0, 0.1, 0.25, 0.5, 1};
    for (uint32_t s = 0; s < 5; s++) {
        struct scene scene;
        begin(&scene, &trio, SHAPE_MAP, 2, shares[s]);
        fake_clear_record(scene.fake);
        scene_play(&scene, 200);
        const double share = copied_rows(&scene) / (200.0 * SCENE_ROWS);
        cr_assert_geq(share, 0.8 * shares[s], "%g", shares[s]);
        cr_assert_leq(share, 1.2 * shares[s], "%g", shares[s]);
        END(&scene);
    }
}

Test(engine_verify, every_device_is_looked_at_by_another)
{
    struct scene scene;
    begin(&scene, &trio, SHAPE_MAP, 3, 0.25);
    fake_clear_record(scene.fake);
    scene_play(&scene, 100);
    size_t count;
    struct fake_record *record = fake_take_record(scene.fake, &count);
    uint32_t seen[3] = {0};
    for (size_t i = 0; i < count; i++)
        if (record[i].step == FAKE_STEP_SUBMIT && !scene_own(&scene, &record[i])) {
            seen[record[i].first_row / THIRD]++; /* the split is known */
            cr_assert_neq(record[i].first_row / THIRD, record[i].device, "it looks at its own rows");
        }
    free(record);
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_gt(seen[d], 0, "nobody looks at device %u", d);
    END(&scene);
}

/* ---- where there is nothing to compare ---- */

static uint32_t lines_with(const char *log, const char *text)
{
    uint32_t count = 0;
    for (const char *at = strstr(log, text); at; at = strstr(at + 1, text))
        count++;
    return count;
}

Test(engine_verify, one_device_alone_has_nobody_to_be_compared_with_and_the_log_says_so_once)
{
    static const struct fake_params one = {.device_count = 1, .devices = {{.ns_per_row = 1e5}}};
    struct scene scene;
    begin(&scene, &one, SHAPE_MAP, 2, 1);
    scene_play(&scene, 30);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
    cr_assert_eq(lines_with(rig_log(scene.rig), "verif"), 1, "%s", rig_log(scene.rig));
    END(&scene);
}

Test(engine_verify, the_last_device_of_several_goes_on_unverified)
{
    struct scene scene;
    begin(&scene, &pair, SHAPE_MAP, 2, 1);
    fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 1});
    scene_play(&scene, 30);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
    cr_assert_eq(scene_device(&scene, 0).lost, 0);
    END(&scene);
}

Test(engine_verify, sums_and_rows_in_place_are_right_and_no_device_is_convicted)
{
    static const enum shape shapes[] = {SHAPE_COUNT, SHAPE_INPLACE};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t in_flight = 2; in_flight <= 3; in_flight++) {
            struct scene scene;
            begin(&scene, &trio, shapes[s], in_flight, 1);
            scene_play(&scene, 30);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0);
            check_faulty(&scene, UINT32_MAX, shape_name(shapes[s]));
            END(&scene);
        }
}

Test(engine_verify, bytes_that_no_kernel_writes_are_not_compared)
{
    /* Of the smaller plane's rows only half is written; the rest is the application's, a device's own, or nobody's. */
    for (uint32_t in_flight = 2; in_flight <= 3; in_flight++)
        for (uint32_t two = 0; two < 2; two++) {
            struct scene scene;
            begin(&scene, two ? &pair : &trio, SHAPE_CHROMA, in_flight, 1);
            scene_play(&scene, 30);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 30), 0, "%s", rig_log(scene.rig));
            check_faulty(&scene, UINT32_MAX, "chroma");
            END(&scene);
        }
}

Test(engine_verify, without_memory_for_copies_frames_go_on_unverified)
{
    struct scene scene;
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                COX_SESSION_PARAMS(.custom_policy = &rig_policy, .in_flight = 3, .no_warmup = true, .verify = 1));
    fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_MEM_FAILS, .count = UINT32_MAX, .status = COX_E_NOMEM});
    scene_play(&scene, 20);
    cr_assert_eq(scene_failed(&scene, 0, 20), 0);
    cr_assert_eq(copied_rows(&scene), 0);
    END(&scene);
}

/* ---- beside other trouble ---- */

Test(engine_verify, hangs_failures_and_lies_together_leave_every_frame_right, .timeout = 1200)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS, FAKE_HANGS, FAKE_CORRUPTS,
                                                 FAKE_CORRUPTS};
    for (uint64_t round = 1; round <= 40; round++) {
        struct scene scene;
        uint64_t seed = round;
        begin(&scene, &trio, whole[round % WHOLE], 2 + round % 3, 1);
        for (uint32_t i = 0; i < 8; i++)
            fake_script(scene.fake, &(struct fake_fault){.kind = kinds[rig_random(&seed) % 5],
                                                         .device = 1 + (uint32_t)(rig_random(&seed) % 2),
                                                         .skip = (uint32_t)(rig_random(&seed) % 30),
                                                         .status = COX_E_DEVICE_LOST,
                                                         .delay_ns = rig_random(&seed) % (300 * ms)});
        scene_play(&scene, 60);
        /* Two that lie about the same rows leave no verdict. */
        for (uint32_t i = 0; i < LEARN + 60; i++)
            cr_assert(scene.status[i] == COX_OK || scene.status[i] == COX_E_MISMATCH);
        cr_assert_eq(scene_device(&scene, 0).lost, 0, "round %u: the good device was convicted", (unsigned)round);
        END(&scene);
    }
}

Test(engine_verify, nonsense_of_profiles_and_ends_harms_nobody)
{
    struct scene scene;
    begin(&scene, &trio, SHAPE_MAP, 3, 0.5);
    for (uint32_t d = 0; d < 3; d++) {
        fake_script(scene.fake,
                    &(struct fake_fault){.kind = FAKE_LIES_PROFILE, .device = d, .skip = d, .count = UINT32_MAX});
        fake_script(scene.fake, &(struct fake_fault){.kind = FAKE_END_EARLY,
                                                     .device = d,
                                                     .skip = 2 * d,
                                                     .count = UINT32_MAX,
                                                     .delay_ns = 50 * ms * d});
    }
    scene_play(&scene, 40);
    cr_assert_eq(scene_failed(&scene, 0, LEARN + 40), 0);
    for (uint32_t i = 0; i < LEARN + 40; i++) {
        const struct rig_report *report = scene_report(&scene, i);
        cr_assert_not_null(report);
        for (uint32_t b = 0; b < report->frame.band_count; b++) {
            const struct cox_band_report *band = &report->bands[b];
            cr_assert_geq(band->end_ns, band->submit_ns);
            cr_assert_leq(band->kernel_ns, 100 * ms);
            cr_assert_leq(band->wall_ns, 100 * ms);
        }
    }
    check_faulty(&scene, UINT32_MAX, "map");
    END(&scene);
}
