/* What a vote says about two devices that disagree: each row of the table in engine/failure/verify.c. A faulty device
 * is convicted. A kernel whose results vary convicts nobody, and its frames end with an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
#include <stdatomic.h>
#include <string.h>

TestSuite(engine_verdict, .timeout = 600);

/* Both work on host memory, so a kernel can read the rows next to its band. */
static const struct fake_params duo = {
    .device_count = 2,
    .devices = {{.name = "alpha", .ns_per_row = 1e5}, {.name = "beta", .type = COX_DEVICE_GPU, .ns_per_row = 1e5}},
};

/* `spy` runs at the end of each band: it makes the kernel a bad one. */
static void begin_with(const struct fake_params *devices, void (*spy)(const struct fake_args *, uint32_t), bool at_once)
{
    if (at_once)
        rig_spy = spy;
    begin_on(devices, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 1, .verify = 1});
    rig_spy = spy;
}

/* All frames end with COX_E_MISMATCH, no device is lost, and each frame has a line with `text`. */
static void check_convicts_nobody(uint32_t frames, const char *text)
{
    const uint32_t before = scene.done;
    scene_play(&scene, frames);
    cr_assert_eq(scene.done, before + frames);
    for (uint32_t i = before; i < scene.done; i++)
        cr_assert_eq(scene.status[i], COX_E_MISMATCH, "frame %u: %s\n%s", i, cox_status_name(scene.status[i]),
                     rig_log(scene.rig));
    check_lost(UINT32_MAX, 0, text);
    cr_assert_geq(rig_logged_times(scene.rig, text), frames, "%s", rig_log(scene.rig));
    cr_assert_not(rig_logged(scene.rig, "computes wrong rows"), "%s", rig_log(scene.rig));
}

static void end_spied(void)
{
    end();
    rig_spy = NULL;
}

/* ---- the kernel ---- */

static atomic_uint calls;

static unsigned char *row_of(const struct fake_args *args, uint32_t binding)
{
    return args->data[binding];
}

static void counts_its_calls(const struct fake_args *args, uint32_t out)
{
    row_of(args, out)[0] = (unsigned char)atomic_fetch_add(&calls, 1);
}

Test(engine_verdict, a_kernel_that_is_not_deterministic_convicts_no_device)
{
    begin_with(&duo, counts_its_calls, false);
    check_convicts_nobody(5, "pass 'unnamed', buffer 'unnamed', row ");
    cr_assert(rig_logged(scene.rig, "the kernel is not deterministic: "), "%s", rig_log(scene.rig));
    end_spied();
    begin_with(&trio, counts_its_calls, true);
    check_convicts_nobody(5, "the kernel is not deterministic: ");
    end_spied();
}

static _Thread_local unsigned char held_before;

static void looks_at_its_output(const struct fake_args *args, uint32_t out)
{
    held_before = row_of(args, out)[0];
}

static void adds_to_its_output(const struct fake_args *args, uint32_t out)
{
    row_of(args, out)[0] = held_before + 1;
}

Test(engine_verdict, a_kernel_that_depends_on_what_its_output_held_convicts_no_device)
{
    rig_spy_first = looks_at_its_output;
    begin_with(&duo, adds_to_its_output, false);
    check_convicts_nobody(5, "or what its output held before: ");
    end_spied();
    begin_with(&trio, adds_to_its_output, false);
    check_convicts_nobody(5, "or what its output held before: ");
    end_spied();
}

static const unsigned char *above_in_frame;

/* Right while the row above is that of the frame, as it is where bands do not run on copies. */
static void reads_the_row_above(const struct fake_args *args, uint32_t out)
{
    if (args->first_row == 0)
        return;

    const unsigned char *above = row_of(args, 0) - args->pass->bindings[0].pitch_bytes;
    if (!above_in_frame)
        above_in_frame = above;
    row_of(args, out)[0] ^= *above ^ *above_in_frame;
}

Test(engine_verdict, a_kernel_that_reads_beyond_its_rows_convicts_no_device)
{
    begin_on(&duo, SHAPE_MAP, 0, &(const struct cox__session_spec){.in_flight = 1, .verify = 0.5});
    rig_spy = reads_the_row_above;
    for (uint32_t i = 0; i < 20; i++) {
        above_in_frame = NULL;
        scene_play(&scene, 1);
    }
    cr_assert_gt(scene_failed(&scene, LEARN, scene.done), 0);
    cr_assert_eq(rig_logged_times(scene.rig, "the kernel reads rows beyond its own"),
                 scene_failed(&scene, LEARN, scene.done), "%s", rig_log(scene.rig));
    check_lost(UINT32_MAX, 0, "map");
    end_spied();
}

/* ---- an input that changes ---- */

static unsigned char *frame_input;

static void changes_the_input(const struct fake_args *args, uint32_t out)
{
    (void)out;
    if (!frame_input)
        frame_input = row_of(args, 0);
    frame_input[0] += 17;
}

Test(engine_verdict, an_input_that_is_written_meanwhile_convicts_no_device)
{
    begin_with(&duo, changes_the_input, false);
    for (uint32_t i = 0; i < 5; i++) {
        frame_input = NULL;
        scene_play(&scene, 1);
        cr_assert_eq(scene.status[scene.done - 1], COX_E_MISMATCH, "%s", rig_log(scene.rig));
    }
    check_lost(UINT32_MAX, 0, "input");
    cr_assert(rig_logged(scene.rig, "an input changed while "), "%s", rig_log(scene.rig));
    end_spied();
}

/* ---- one device varies, the other does not ---- */

static void varies_on_beta(const struct fake_args *args, uint32_t out)
{
    if (args->device == 1)
        row_of(args, out)[0] = (unsigned char)atomic_fetch_add(&calls, 1);
}

Test(engine_verdict, a_device_that_never_agrees_may_be_right)
{
    begin_with(&duo, varies_on_beta, false);
    check_convicts_nobody(5, "beta does not repeat its own result, and never agrees with alpha: ");
    end_spied();
}

/* The kernel is as likely as the device, so the third device does not decide. */
Test(engine_verdict, of_three_a_device_that_never_agreed_may_be_right)
{
    begin_with(&trio, varies_on_beta, true);
    check_convicts_nobody(5, "beta does not repeat its own result, and never agrees with ");
    end_spied();
}

Test(engine_verdict, of_three_a_device_that_does_not_agree_any_more_is_outvoted)
{
    begin_with(&trio, varies_on_beta, false);
    play_good(3);
    cr_assert_gt(device_now(1).lost, 0);
    cr_assert_eq(device_now(0).lost + device_now(2).lost, 0);
    cr_assert(rig_logged(scene.rig, "or the kernel is not deterministic on it"), "%s", rig_log(scene.rig));
    end_spied();
}

/* Wrong at first, and in the first repetition in another way. */
Test(engine_verdict, a_device_that_agrees_at_the_last_repetition_is_convicted)
{
    begin_with(&duo, NULL, false);
    for (uint32_t rows = 1; rows <= 2; rows++)
        FAULT(.kind = FAKE_CORRUPTS, .device = 1, .skip = 1, .factor = rows);
    play_good(6);
    check_lost(1, 1, "map");
    cr_assert(rig_logged(scene.rig, "beta computes wrong rows: frame 20, pass 'unnamed', buffer 'unnamed', row 0: it "
                                    "does not repeat its own result"),
              "%s", rig_log(scene.rig));
    end();
}

Test(engine_verdict, a_device_that_errs_at_times_is_convicted)
{
    for (uint32_t device = 0; device < 2; device++)
        for (uint32_t skip = 0; skip < 40; skip += 3) {
            begin_with(&duo, NULL, false);
            FAULT(.kind = FAKE_CORRUPTS, .device = device, .skip = skip);
            play_good(20);
            check_lost(device, 1, "map");
            end();
        }
}

Test(engine_verdict, a_device_whose_partial_results_are_wrong_is_convicted)
{
    for (uint32_t device = 0; device < 2; device++) {
        begin_on(&duo, SHAPE_COUNT, 0, &(const struct cox__session_spec){.in_flight = 1, .verify = 1});
        FAULT(.kind = FAKE_CORRUPTS, .device = device);
        play_good(6);
        check_lost(device, 1, "count");
        cr_assert(rig_logged(scene.rig, "merged results of rows "), "%s", rig_log(scene.rig));
        end();
    }
}

/* ---- both repeat their results ---- */

Test(engine_verdict, two_devices_that_repeat_different_results_leave_no_verdict)
{
    begin_with(&duo, NULL, false);
    FAULT(.kind = FAKE_CORRUPTS, .device = 1, .count = UINT32_MAX);
    check_convicts_nobody(5, "and no other device confirms one: ");
    end();
}

Test(engine_verdict, a_third_device_decides_only_if_it_can_do_all_rows_at_once)
{
    struct fake_params small = trio;
    small.devices[2].max_rows = THIRD / 3;
    for (uint32_t device = 0; device < 2; device++) {
        begin_with(&small, NULL, false);
        FAULT(.kind = FAKE_CORRUPTS, .device = device, .count = UINT32_MAX);
        scene_play(&scene, 10);
        for (uint32_t i = LEARN; i < scene.done; i++)
            cr_assert(scene.status[i] == COX_OK || scene.status[i] == COX_E_MISMATCH);
        for (uint32_t d = 0; d < 3; d++)
            cr_assert(d == device || device_now(d).lost == 0, "%s", rig_log(scene.rig));
        end();
    }
}

/* ---- a device of the two is lost ---- */

/* The device computes its band wrong, then fails the check of another device's band. */
static void lie_and_fail(uint32_t device)
{
    FAULT(.kind = FAKE_CORRUPTS, .device = device);
    FAULT(.kind = FAKE_EVENT_FAILS, .device = device, .skip = 1, .status = COX_E_DEVICE_LOST);
}

Test(engine_verdict, of_two_devices_one_that_cannot_repeat_leaves_no_verdict)
{
    begin_with(&duo, NULL, false);
    lie_and_fail(0);
    scene_play(&scene, 1);
    cr_assert_eq(scene.status[LEARN], COX_E_MISMATCH, "%s", rig_log(scene.rig));
    cr_assert(rig_logged(scene.rig, "and one was lost before it could repeat its result: "), "%s", rig_log(scene.rig));
    check_lost(0, 1, "map");
    end();
}

Test(engine_verdict, of_three_devices_one_that_cannot_repeat_is_outvoted)
{
    begin_with(&trio, NULL, false);
    lie_and_fail(0);
    play_good(1);
    check_lost(0, 1, "map");
    cr_assert(rig_logged(scene.rig, "alpha computes wrong rows"), "%s", rig_log(scene.rig));
    end();
}
