/* A device hangs during a frame. Delivered contents stay final from then on, both in the library's memory and in
 * wrapped memory of the application.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
#include <string.h>

TestSuite(engine_relocate, .timeout = 300);

enum { TIMEOUT_MS = 300 };

static void begin_few(enum shape shape, uint32_t in_flight)
{
    begin_on(&trio, shape, in_flight + 2,
             &(const struct cox__session_spec){.in_flight = in_flight, .device_timeout_ns = TIMEOUT_MS * ms});
}

static void hang(uint32_t device, uint64_t ns)
{
    fault(FAKE_HANGS, device, ns);
}

/* Replace all buffers by wrapped memory. */
static void wrap_all(void)
{
    scene.frames->wrapped = true;
    for (uint32_t f = 0; f < scene.frames->count; f++) {
        shape_drop(scene.frames, f);
        cr_assert(shape_make(scene.frames, f, f));
    }
}

/* ---- the library's memory ---- */

/* The contents of each set's buffers at the delivery of its frame, compared with their contents now. Inputs are
 * replaced by then. */
struct finals {
    bool known[COX_IN_FLIGHT_MAX + 2];
    unsigned char of[COX_IN_FLIGHT_MAX + 2][SCENE_ROWS * SCENE_COLUMNS];
    uint32_t changed;
};

static void check_finals(struct finals *finals)
{
    for (uint32_t f = 0; f < scene.frames->count; f++)
        if (finals->known[f])
            finals->changed += memcmp(cox_buffer_data(scene.frames->buffers[f][1]), finals->of[f],
                                      sizeof finals->of[f]) != 0;
}

static void keep_final(struct scene *its, uint32_t frame, cox_status status)
{
    struct finals *finals = its->user;
    const uint32_t f = frame % scene.frames->count;
    check_finals(finals);
    cr_assert_eq(status, COX_OK);
    memcpy(finals->of[f], cox_buffer_data(scene.frames->buffers[f][1]), sizeof finals->of[f]);
    finals->known[f] = true;
    finals->known[(scene.submitted) % scene.frames->count] = false; /* submitted next */
    shape_refill_inputs(scene.frames, f, frame);
    memcpy(scene.frames->before[f], cox_buffer_data(scene.frames->buffers[f][0]), SCENE_ROWS * SCENE_COLUMNS);
}

Test(engine_relocate, a_device_that_wakes_changes_no_delivered_frame)
{
    for (uint32_t device = 0; device < 3; device++)
        for (uint32_t in_flight = 2; in_flight <= 4; in_flight++) {
            struct finals *finals = calloc(1, sizeof *finals);
            begin_few(SHAPE_MAP, in_flight);
            for (uint32_t f = 0; f < scene.frames->count; f++)
                shape_refill(scene.frames, f, f);
            scene.watch = keep_final;
            scene.user = finals;
            hang(device, 2 * TIMEOUT_MS * ms + 400 * ms);
            scene_play(&scene, 400); /* the device wakes up during these frames */
            check_finals(finals);
            cr_assert_eq(finals->changed, 0);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 400), 0);
            cr_assert(rig_logged(scene.rig, "moves to new memory"));
            cr_assert_eq(device_now(device).lost, 1);
            end();
            free(finals);
        }
}

Test(engine_relocate, the_output_has_other_memory_and_the_input_its_own)
{
    begin_few(SHAPE_MAP, 2);
    cox_buffer *const *buffers = scene.frames->buffers[LEARN % scene.frames->count];
    const void *in = cox_buffer_data(buffers[0]), *out = cox_buffer_data(buffers[1]);
    hang(1, UINT64_MAX);
    scene_play(&scene, 1);
    cr_assert_eq(scene.status[LEARN], COX_OK);
    cr_assert_eq(cox_buffer_data(buffers[0]), in);
    cr_assert_neq(cox_buffer_data(buffers[1]), out);
    cr_assert_eq(cox_buffer_bytes(buffers[1]), SCENE_ROWS * SCENE_COLUMNS);
    end();
}

Test(engine_relocate, every_shape_comes_out_right)
{
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (uint32_t device = 0; device < 3; device++) {
            begin_few(shape, 3);
            hang(device, 900 * ms);
            scene_play(&scene, 200);
            cr_assert_eq(scene_failed(&scene, 0, LEARN + 200), shape == SHAPE_INPLACE, "%u", (unsigned)shape);
            end();
        }
}

/* Play 300 frames after the device hung. Exactly those that use the first set's buffers end with an error. Then the
 * set gets new buffers. */
static void check_set_is_lost(void)
{
    const uint32_t count = scene.frames->count;
    for (uint32_t f = LEARN; f < LEARN + 300; f++)
        cr_assert_eq(scene.status[f], (f - LEARN) % count ? COX_OK : COX_E_MEMORY_UNSAFE, "%u", f);
    shape_drop(scene.frames, LEARN);
    cr_assert(shape_make(scene.frames, LEARN, 1));
    scene_play(&scene, count);
    cr_assert_eq(scene_failed(&scene, LEARN + 300, LEARN + 300 + count), 0);
}

Test(engine_relocate, without_memory_the_frame_ends_with_an_error)
{
    begin_few(SHAPE_MAP, 2);
    FAULT(.kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
    hang(2, 900 * ms);
    scene_play(&scene, 300);
    cr_assert_eq(scene.status[LEARN], COX_E_MEMORY_UNSAFE);
    check_set_is_lost();
    end();
}

/* ---- the application's memory ---- */

Test(engine_relocate, wrapped_outputs_are_tainted)
{
    for (uint32_t device = 0; device < 3; device++) {
        begin_few(SHAPE_MAP, 2);
        wrap_all();
        hang(device, 900 * ms);
        scene_play(&scene, 300);
        cr_assert_eq(scene.status[LEARN], COX_E_MEMORY_UNSAFE);
        check_set_is_lost();
        cr_assert(rig_logged(scene.rig, cox_status_text(COX_E_MEMORY_UNSAFE)));
        end();
    }
}

/* A set's input in wrapped memory, destroyed in its frame's callback. */
struct input {
    unsigned char *memory;
    atomic_uint released;
    bool before; /* released before the callback returned */
};

static void note_release(void *user)
{
    struct input *input = user;
    atomic_fetch_add(&input->released, 1);
}

static void destroy_input(struct scene *its, uint32_t frame, cox_status status)
{
    struct input *input = its->user;
    cox_buffer **buffer = &scene.frames->buffers[frame % scene.frames->count][0];
    (void)status;
    if (frame != LEARN)
        return;
    cox_buffer_destroy(buffer);
    input->before = *buffer || atomic_load(&input->released);
    cr_assert_eq(cox_buffer_create(rig_runtime(scene.rig), SCENE_ROWS * SCENE_COLUMNS, buffer), COX_OK);
}

/* The input is wrapped memory, the output is the library's. The frame is right, and the input may be freed after
 * the device ends. */
Test(engine_relocate, wrapped_inputs_are_released_when_the_device_has_ended)
{
    for (uint32_t forever = 0; forever < 2; forever++) {
        begin_few(SHAPE_MAP, 2);
        const uint32_t f = LEARN % scene.frames->count;
        struct input input = {.memory = aligned_alloc(64, (SCENE_ROWS * SCENE_COLUMNS + 63) / 64 * 64)};
        memcpy(input.memory, scene.frames->before[f], SCENE_ROWS * SCENE_COLUMNS);
        cox_buffer_destroy(&scene.frames->buffers[f][0]);
        cr_assert_eq(cox_buffer_wrap(rig_runtime(scene.rig), input.memory, SCENE_ROWS * SCENE_COLUMNS, note_release,
                                     &input, &scene.frames->buffers[f][0]),
                     COX_OK);
        scene.watch = destroy_input;
        scene.user = &input;
        hang(0, forever ? UINT64_MAX : 2 * TIMEOUT_MS * ms + 200 * ms);
        scene_play(&scene, 1);
        cr_assert_eq(scene.status[LEARN], COX_OK);
        cr_assert(!input.before);
        shape_refill(scene.frames, f, 5);
        scene_play(&scene, 200);
        cr_assert_eq(atomic_load(&input.released), !forever);
        cr_assert_eq(scene_failed(&scene, 0, LEARN + 201), 0);
        end();
        cr_assert_eq(atomic_load(&input.released), !forever, "once");
        free(input.memory); /* the device of this test no longer exists */
    }
}

/* ---- after the session ---- */

Test(engine_relocate, sessions_and_buffers_go_at_once_while_a_device_hangs)
{
    begin_few(SHAPE_MAP, 2);
    hang(1, UINT64_MAX);
    scene_play(&scene, 1);
    const uint64_t began = fake_now(scene.fake);
    cox_session_destroy(&scene.session);
    cr_assert_eq(fake_now(scene.fake), began);
    cr_assert(!rig_logged(scene.rig, "memory is leaked"));
    cr_assert_eq(shape_session(scene.frames,
                               &(const struct cox__session_spec){.policy = "static",
                                                                 .in_flight = 2,
                                                                 .no_warmup = true,
                                                                 .report = rig_report,
                                                                 .report_user = scene.rig},
                               &scene.session),
                 COX_OK);
    for (uint32_t f = 0; f < scene.frames->count; f++) {
        const struct cox__frame_spec frame = shape_frame(scene.frames, f);
        shape_prepare(scene.frames, f);
        cr_assert_eq(cox__session_run(scene.session, &frame), COX_OK);
        cr_assert_str_empty(shape_check(scene.frames, f));
    }
    end();
}

/* There is room for the events of one lost queue. */
Test(engine_relocate, of_two_queues_that_expire_together_one_is_abandoned_at_a_time)
{
    begin(SHAPE_MAP, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 500 * ms});
    fault(FAKE_HANGS, 1, UINT64_MAX);
    fault(FAKE_HANGS, 2, UINT64_MAX);
    play_good(4);

    const char *log = rig_log(scene.rig), *last = strstr(log, "are abandoned"), *moved = strstr(log, " move from ");
    for (const char *next; (next = strstr(last + 1, "are abandoned"));)
        last = next;
    cr_assert_eq(steps_of(FAKE_STEP_ABANDON, 1) + steps_of(FAKE_STEP_ABANDON, 2), 2);
    cr_assert(moved && moved < last, "the rows of the first queue move before the second one is abandoned: %s", log);
    end();
}
