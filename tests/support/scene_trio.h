/* Scenes for Criterion tests of failing devices: three devices that take a third of the frame each, and a check of
 * the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SCENE_TRIO_H
#define COX_TESTS_SCENE_TRIO_H

#include "fake_scene.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

/* LEARN: number of frames after which the devices' speeds are known. */
enum { THIRD = SCENE_ROWS / 3, LEARN = 20 };
static const uint64_t ms = 1000000;

/* Each device takes 3 ms for a third of the frame. */
static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "alpha", .ns_per_row = 1e5, .parts = 2},
                {.name = "beta", .type = COX_DEVICE_GPU, .ns_per_row = 1e5, .parts = 3},
                {.name = "gamma", .type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .ns_per_row = 1e5, .parts = 2}},
};

/* Number of steps of a kind on a device. `*first_ns` gets the time of the first one. */
static inline uint32_t steps(struct scene *scene, enum fake_step step, uint32_t device, uint64_t *first_ns)
{
    size_t count;
    struct fake_record *record = fake_take_record(scene->fake, &count);
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (record[i].step == step && record[i].device == device && found++ == 0 && first_ns)
            *first_ns = record[i].time_ns;
    free(record);
    return found;
}

/* Sleep for `ns` of real time, less than a second. */
static inline void rest(long ns)
{
    const struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

static inline void in_thirds(void)
{
    rig_split_count = 0;
    rig_add_split(3, (const uint32_t[][2]){{0, THIRD}, {1, THIRD}, {2, THIRD}});
}

#define END(scene)                                     \
    do {                                               \
        const char *verdict_ = scene_end(scene);       \
        cr_assert_str_empty(verdict_, "%s", verdict_); \
    } while (0)

#endif
