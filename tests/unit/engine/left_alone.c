/* What becomes of bytes that no kernel writes, on scripted devices that fail, hang and are checked. Rows have four
 * bytes that kernels write, and twelve that they leave alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/fake_shapes.h"
#include "support/rig_play.h"

TestSuite(engine_left_alone, .timeout = 300);

enum { COLUMNS = 4, PITCH = 16, ROWS = 96, SETS = 3, FRAMES = 12 };

static const enum shape shapes[] = {SHAPE_MAP,      SHAPE_HALO, SHAPE_CHROMA, SHAPE_TWO,
                                    SHAPE_EXCHANGE, SHAPE_FLIP, SHAPE_OVERLAP};
enum { SHAPE_COUNT_HERE = sizeof shapes / sizeof *shapes };

/* Run frames of all shapes on devices of all modes. The fault strikes in the middle. */
static void run_all(enum shape_rest rest, double verify, const struct fake_fault *fault)
{
    for (uint32_t s = 0; s < SHAPE_COUNT_HERE; s++) {
        struct rig *rig = rig_new(&play_trio);
        struct shape_frames *frames = shape_frames_padded(rig, shapes[s], ROWS, COLUMNS, PITCH, SETS);
        cox_session *session;
        shape_set_rest(frames, rest);
        cr_assert_eq(shape_session(frames, &(const struct cox__session_spec){.policy = "chunks", .verify = verify},
                                   &session),
                     COX_OK, "%s", rig_log(rig));
        if (fault)
            fake_script(rig_fake(rig), fault);
        for (uint32_t f = 0; f < FRAMES; f++) {
            shape_prepare(frames, f);
            const struct cox__frame_spec frame = shape_frame(frames, f);
            cr_assert_eq(cox__session_run(session, &frame), COX_OK, "%s: %s", shape_name(shapes[s]), rig_log(rig));
            cr_assert_str_empty(shape_check(frames, f));
            cr_assert_str_empty(shape_check_padding(frames, f));
        }
        cr_assert(!rig_logged(rig, "disagree"), "%s", rig_log(rig));
        cr_assert_eq(rig_times_lost(session) > 0, fault != NULL, "%s", shape_name(shapes[s]));
        cox_session_destroy(&session);
        shape_frames_free(&frames);
        END(rig);
    }
}

Test(engine_left_alone, keeps_its_value_or_becomes_zero)
{
    run_all(REST_UNDEFINED, 0, NULL);
}

Test(engine_left_alone, keeps_its_value_if_rows_are_written_in_part)
{
    run_all(REST_PARTIAL, 0, NULL);
}

Test(engine_left_alone, does_not_change_between_rows)
{
    run_all(REST_GAPS, 0, NULL);
}

Test(engine_left_alone, is_the_same_on_the_device_that_checks)
{
    run_all(REST_UNDEFINED, 1, NULL);
    run_all(REST_PARTIAL, 1, NULL);
    run_all(REST_GAPS, 1, NULL);
}

/* Bands are repeated: they do not read what they write. */
Test(engine_left_alone, survives_the_loss_of_a_device)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_FAILS_LATE, FAKE_DEVICE_DIES, FAKE_HANGS};
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t device = 0; device < 3; device++) {
            const struct fake_fault fault = {.kind = kinds[k],
                                             .device = device,
                                             .skip = 4,
                                             .status = COX_E_DEVICE_LOST,
                                             .delay_ns = kinds[k] == FAKE_HANGS ? UINT64_MAX : 0};
            run_all(REST_PARTIAL, 0, &fault);
            run_all(REST_GAPS, 0, &fault);
        }
}
