/* Bands that two devices do and the session compares. The device with wrong bits is found, and the frame has the
 * right contents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
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

static void begin_checked(const struct fake_params *devices, enum shape shape, uint32_t in_flight, double verify)
{
    begin_on(devices, shape, 0, &(const struct cox__session_spec){.in_flight = in_flight, .verify = verify});
}

/* After `skip` bands, the next `count` bands of the device come out wrong. */
static void corrupt(uint32_t device, uint32_t skip, uint32_t count)
{
    FAULT(.kind = FAKE_CORRUPTS, .device = device, .skip = skip, .count = count);
}

static uint32_t mismatches(uint32_t first, uint32_t end, uint32_t device)
{
    uint32_t found = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct rig_report *report = scene_report(&scene, i);
        for (uint32_t b = 0; report && b < report->frame.band_count; b++)
            found += report->bands[b].device == device && report->bands[b].status == COX_E_MISMATCH;
    }
    return found;
}

/* ---- the faulty device is found ---- */

/* Play `frames` frames in which the fault strikes. Their contents are right, and the faulty device is found. */
static void play_faulty(const struct fake_params *devices, enum shape shape, uint32_t in_flight, uint32_t frames,
                        const struct fake_fault *strikes)
{
    begin_checked(devices, shape, in_flight, 1);
    if (strikes)
        fake_script(scene.fake, strikes);
    play_good(frames);
    check_lost(strikes ? strikes->device : UINT32_MAX, 1, shape_name(shape));
    end();
}

#define STRIKES(...) (&(const struct fake_fault){__VA_ARGS__})

/* The session does not compare:
 *   Sums.
 *   Rows in place.
 *   Bytes that no kernel writes (SHAPE_CHROMA's kernel writes only half of the rows of its smaller plane; the
 *     rest holds whatever was there). */
Test(engine_verify, good_devices_are_never_convicted)
{
    for (enum shape shape = SHAPE_MAP; shape < SHAPES_PLAIN; shape++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
            play_faulty(&trio, shape, in_flight, 30, NULL);
            play_faulty(&pair, shape, in_flight, 30, NULL);
        }
}

/* With three devices the wrong bit is in the frame's own band, or in another device's band that this one repeats.
 * With two devices the one whose two results differ is convicted. */
Test(engine_verify, a_single_wrong_bit_is_found_and_the_frame_delivered_right)
{
    for (uint32_t s = 0; s < WHOLE; s++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t skip = 0; skip < 4; skip++) {
                const struct fake_fault *wrong = STRIKES(.kind = FAKE_CORRUPTS, .device = device, .skip = skip);
                play_faulty(&trio, whole[s], 2 + skip % 2, 12, wrong);
                if (device < 2 && skip < 2)
                    play_faulty(&pair, whole[s], 2, 12, wrong);
            }
}

Test(engine_verify, a_device_that_contradicts_itself_lies_though_it_never_says_what_is_right)
{
    for (uint32_t device = 0; device < 2; device++) {
        begin_checked(&pair, SHAPE_MAP, 1, 1);
        /* The device repeats the other's band wrong, twice and in different ways. Its own band is right. */
        for (uint32_t rows = 1; rows <= 2; rows++)
            FAULT(.kind = FAKE_CORRUPTS, .device = device, .skip = 1, .factor = rows);
        play_good(12);
        check_lost(device, 1, "map");
        end();
    }
}

Test(engine_verify, what_a_faulty_device_leaves_where_no_kernel_writes_is_not_its_judges)
{
    for (uint32_t device = 0; device < 2; device++)
        for (uint32_t skip = 0; skip < 2; skip++) {
            const struct fake_fault *stray = STRIKES(.kind = FAKE_STRAYS, .device = device, .skip = skip);
            play_faulty(&trio, SHAPE_CHROMA, 2, 12, stray);
            play_faulty(&pair, SHAPE_CHROMA, 2, 12, stray);
        }
}

Test(engine_verify, of_three_devices_the_one_that_always_lies_is_outvoted)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
            begin_checked(&trio, SHAPE_MAP, in_flight, 1);
            corrupt(device, 0, UINT32_MAX);
            play_good(30);
            cr_assert_neq(device_now(device).state, COX_DEVICE_ACTIVE);
            for (uint32_t d = 0; d < 3; d++)
                cr_assert_eq(device_now(d).lost > 0, d == device);
            end();
        }
}

Test(engine_verify, two_devices_that_stand_by_what_they_say_leave_no_verdict)
{
    begin_checked(&pair, SHAPE_MAP, 2, 1);
    corrupt(1, 0, UINT32_MAX);
    scene_play(&scene, 10);
    uint32_t wrong = 0;
    for (uint32_t i = LEARN; i < scene.done; i++) {
        cr_assert(scene.status[i] == COX_OK || scene.status[i] == COX_E_MISMATCH);
        wrong += scene.status[i] == COX_E_MISMATCH;
    }
    cr_assert_eq(scene.status[LEARN], COX_E_MISMATCH);
    cr_assert_gt(wrong, 0);
    end(); /* also checks that rows which passed the check were right */
}

Test(engine_verify, the_report_says_which_rows_were_wrong)
{
    begin_checked(&trio, SHAPE_MAP, 2, 1);
    corrupt(1, 0, 1);
    scene_play(&scene, 4);
    const struct rig_report *report = scene_report(&scene, LEARN);
    cr_assert_not_null(report);
    cr_assert_eq(report->frame.status, COX_OK);
    cr_assert_eq(mismatches(LEARN, LEARN + 1, 1), 1);
    cr_assert_eq(mismatches(0, LEARN + 4, 0) + mismatches(0, LEARN + 4, 2), 0);
    uint32_t again = 0;
    for (uint32_t b = 0; b < report->frame.band_count; b++)
        if (report->bands[b].attempt > 0) {
            cr_assert_neq(report->bands[b].device, 1);
            cr_assert_eq(report->bands[b].status, COX_OK);
            again += report->bands[b].rows;
        }
    cr_assert_eq(again, THIRD);
    cr_assert(rig_logged(scene.rig, "beta"));
    end();
}

Test(engine_verify, all_rows_that_a_faulty_device_did_for_the_frame_are_done_again)
{
    for (uint32_t wrong = 1; wrong <= 3; wrong++) {
        rig_split_count = 0;
        rig_add_split(6, (const uint32_t[][2]){{1, 15}, {0, 15}, {1, 15}, {2, 15}, {1, 15}, {0, 15}});
        scene_begin(&scene, &trio, SHAPE_MAP, 0,
                    &(const struct cox__session_spec){
                        .custom_policy = &rig_policy, .in_flight = 2, .no_warmup = true, .verify = 1});
        scene_play(&scene, LEARN);
        corrupt(1, 0, wrong);
        play_good(6);
        check_lost(1, 1, "map");
        end();
    }
}

Test(engine_verify, a_faulty_device_comes_back_once_its_rows_are_right)
{
    begin_checked(&trio, SHAPE_MAP, 2, 1);
    corrupt(1, 0, 2);
    play_good(200);
    cr_assert_geq(device_now(1).returned, 1);
    cr_assert_eq(device_now(1).state, COX_DEVICE_ACTIVE);
    end();
}

/* ---- cost ---- */

/* Number of rows done on copies. */
static uint32_t copied_rows(void)
{
    uint32_t rows = 0;
    struct walk walk = {0};
    for (const struct fake_record *step; (step = next_step(&walk));)
        if (step->step == FAKE_STEP_SUBMIT && !scene_own(&scene, step))
            rows += step->rows;
    return rows;
}

Test(engine_verify, the_share_is_what_is_done_twice)
{
    static const double shares[] = {0, 0.1, 0.25, 0.5, 1};
    for (uint32_t s = 0; s < 5; s++) {
        begin_checked(&trio, SHAPE_MAP, 2, shares[s]);
        scene_play(&scene, 200);
        const double share = copied_rows() / (200.0 * SCENE_ROWS);
        cr_assert_geq(share, 0.8 * shares[s], "%g", shares[s]);
        cr_assert_leq(share, 1.2 * shares[s], "%g", shares[s]);
        end();
    }
}

Test(engine_verify, every_device_is_looked_at_by_another)
{
    begin_checked(&trio, SHAPE_MAP, 3, 0.25);
    scene_play(&scene, 100);
    uint32_t seen[3] = {0};
    struct walk walk = {0};
    for (const struct fake_record *step; (step = next_step(&walk));)
        if (step->step == FAKE_STEP_SUBMIT && !scene_own(&scene, step)) {
            seen[step->first_row / THIRD]++; /* the split is known */
            cr_assert_neq(step->first_row / THIRD, step->device, "a device checks its own rows");
        }
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_gt(seen[d], 0, "no device checks device %u", d);
    end();
}

/* ---- rows that cannot be compared ---- */

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
    begin_checked(&one, SHAPE_MAP, 2, 1);
    play_good(30);
    cr_assert_eq(lines_with(rig_log(scene.rig), "verif"), 1, "%s", rig_log(scene.rig));
    end();
}

Test(engine_verify, the_last_device_of_several_goes_on_unverified)
{
    begin_checked(&pair, SHAPE_MAP, 2, 1);
    FAULT(.kind = FAKE_DEVICE_DIES, .device = 1);
    play_good(30);
    cr_assert_eq(device_now(0).lost, 0);
    end();
}

Test(engine_verify, without_memory_for_copies_frames_go_on_unverified)
{
    in_thirds();
    scene_begin(&scene, &trio, SHAPE_MAP, 0,
                &(const struct cox__session_spec){
                    .custom_policy = &rig_policy, .in_flight = 3, .no_warmup = true, .verify = 1});
    FAULT(.kind = FAKE_MEM_FAILS, .count = UINT32_MAX, .status = COX_E_NOMEM);
    play_good(20);
    cr_assert_eq(copied_rows(), 0);
    end();
}

/* ---- together with other faults ---- */

Test(engine_verify, hangs_failures_and_lies_together_leave_every_frame_right, .timeout = 1200)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_SUBMIT_FAILS, FAKE_HANGS, FAKE_CORRUPTS,
                                                 FAKE_CORRUPTS};
    for (uint64_t round = 1; round <= 40; round++) {
        uint64_t seed = round;
        begin_checked(&trio, whole[round % WHOLE], 2 + round % 3, 1);
        for (uint32_t i = 0; i < 8; i++)
            FAULT(.kind = kinds[rig_random(&seed) % 5], .device = 1 + (uint32_t)(rig_random(&seed) % 2),
                  .skip = (uint32_t)(rig_random(&seed) % 30), .status = COX_E_DEVICE_LOST,
                  .delay_ns = rig_random(&seed) % (300 * ms));
        scene_play(&scene, 60);
        /* If two devices return wrong bits for the same rows, there is no verdict. */
        for (uint32_t i = 0; i < LEARN + 60; i++)
            cr_assert(scene.status[i] == COX_OK || scene.status[i] == COX_E_MISMATCH);
        cr_assert_eq(device_now(0).lost, 0, "round %u: the good device was convicted", (unsigned)round);
        end();
    }
}

Test(engine_verify, nonsense_of_profiles_and_ends_harms_nobody)
{
    begin_checked(&trio, SHAPE_MAP, 3, 0.5);
    for (uint32_t d = 0; d < 3; d++) {
        FAULT(.kind = FAKE_LIES_PROFILE, .device = d, .skip = d, .count = UINT32_MAX);
        FAULT(.kind = FAKE_END_EARLY, .device = d, .skip = 2 * d, .count = UINT32_MAX, .delay_ns = 50 * ms * d);
    }
    play_good(40);
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
    check_lost(UINT32_MAX, 0, "map");
    end();
}
