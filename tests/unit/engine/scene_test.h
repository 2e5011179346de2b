/* Shared by the tests of failing devices: the scene that a test plays, with known splits, and its faults, frames
 * and steps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SCENE_TEST_H
#define COX_TESTS_SCENE_TEST_H

#include "specs.h"
#include "support/scene_trio.h"

/* Each test runs in its own process and plays one scene at a time. */
static struct scene scene;

/* Play LEARN frames, so that the devices are known, then clear the record. Of three devices each does a third of a
 * frame. Of two devices the first does two thirds. `buffers` is the argument of scene_begin. */
static inline void begin_on(const struct fake_params *devices, enum shape shape, uint32_t buffers,
                            const struct cox__session_spec *extra)
{
    static const uint32_t alone[][2] = {{0, SCENE_ROWS}}, two[][2] = {{0, 2 * THIRD}, {1, THIRD}};
    struct cox__session_spec params = *extra;
    in_thirds();
    if (devices->device_count < 3) {
        rig_split_count = 0;
        rig_add_split(devices->device_count, devices->device_count == 1 ? alone : two);
    }
    params.custom_policy = &rig_policy;
    params.no_warmup = true;
    scene_begin(&scene, devices, shape, buffers, &params);
    scene_play(&scene, LEARN);
    fake_clear_record(scene.fake);
}

static inline void begin(enum shape shape, const struct cox__session_spec *extra)
{
    begin_on(&trio, shape, 0, extra);
}

#define FAULT(...) fake_script(scene.fake, &(struct fake_fault){__VA_ARGS__})

static inline void fault(enum fake_fault_kind kind, uint32_t device, uint64_t delay_ns)
{
    FAULT(.kind = kind, .device = device, .delay_ns = delay_ns, .status = COX_E_DEVICE_LOST);
}

/* Play `frames` more frames. They and all earlier frames have the right contents. */
static inline void play_good(uint32_t frames)
{
    const uint32_t before = scene.done;
    scene_play(&scene, frames);
    cr_assert_eq(scene.done, before + frames, "%u frames of %u: %s", scene.done - before, frames, rig_log(scene.rig));
    cr_assert_eq(scene_failed(&scene, 0, scene.done), 0, "%s", rig_log(scene.rig));
}

static inline struct cox_session_device device_now(uint32_t device)
{
    return scene_device(&scene, device);
}

/* The device was lost `times` times, and no other device was lost. UINT32_MAX: no device. */
static inline void check_lost(uint32_t device, uint32_t times, const char *what)
{
    const struct cox_session_info info = rig_info(scene.session);
    for (uint32_t d = 0; d < info.device_count; d++)
        cr_assert_eq(info.devices[d].lost, d == device ? times : 0, "%s: device %u was lost %u times", what, d,
                     info.devices[d].lost);
}

static inline uint32_t steps_of(enum fake_step step, uint32_t device)
{
    return steps(&scene, step, device, NULL);
}

/* Walks through the steps of a record. Start with {0}. */
struct walk {
    struct fake_record *record;
    size_t at, count;
};

/* Returns the next step. After the last one it returns NULL and frees the copy. */
static inline const struct fake_record *next_step(struct walk *walk)
{
    if (!walk->record)
        walk->record = fake_take_record(scene.fake, &walk->count);
    if (walk->at < walk->count)
        return &walk->record[walk->at++];
    free(walk->record);
    return NULL;
}

static inline void end(void)
{
    END(&scene);
}

#endif
