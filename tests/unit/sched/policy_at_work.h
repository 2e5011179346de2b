/* Shared by the tests of policies: one policy that runs on one view, frame by frame.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_POLICY_AT_WORK_H
#define COX_TESTS_POLICY_AT_WORK_H

#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct cox_sched_device devices[COX_DEVICES_MAX];
static struct cox_sched_view view = {.devices = devices};
static const struct cox_policy *policy;
static void *state;
static struct cox_split split;

/* In frames `from` to `to` - 1 a device takes `factor` times as long. 0: no change. */
struct step {
    uint32_t device;
    double factor;
    uint32_t from, to;
};

static inline double step_at(const struct step *step, uint32_t device, uint64_t frame)
{
    return step->factor > 0 && device == step->device && frame >= step->from && frame < step->to ? step->factor : 1;
}

/* A view of equal devices that were not measured. */
static inline void see(uint32_t rows, uint32_t row_alignment, uint32_t device_count)
{
    view = (struct cox_sched_view){
        .rows = rows, .row_alignment = row_alignment, .device_count = device_count, .devices = devices, .in_flight = 1};
    for (uint32_t d = 0; d < device_count; d++)
        devices[d] = (struct cox_sched_device){true, 1, 0};
}

/* Begin with another policy, or restart the same one. */
static inline void begin_policy(const struct cox_policy *given, const struct cox_policy_options *options)
{
    cr_assert_not_null(given);
    policy = given;
    free(state);
    state = calloc(1, policy->state_bytes(view.device_count));
    cr_assert_not_null(state);
    cr_assert_eq(policy->init(state, &view, options), COX_OK);
}

/* The same with one of the library's policies. */
static inline void begin(const char *name, const struct cox_policy_options *options)
{
    begin_policy(cox_policy_find(name), options);
}

/* A valid split for the view. */
static inline void split_frame(void)
{
    char why[200];
    memset(&split, 0, sizeof split);
    cr_assert_eq(policy->split(state, &view, &split), COX_OK);
    cr_assert_eq(cox_split_check(&split, &view, why, sizeof why), COX_OK, "%s, frame %llu: %s", policy->name,
                 (unsigned long long)view.frame, why);
}

static inline uint32_t rows_of(uint32_t device)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < split.band_count; i++)
        rows += split.bands[i].device == device ? split.bands[i].rows : 0;
    return rows;
}

/* Report that a band of the view's frame took this long. */
static inline void band_took(const struct cox_band *band, double wall_ns, uint32_t flags)
{
    struct cox_measurement m = {.frame = view.frame,
                                .device = band->device,
                                .first_row = band->first_row,
                                .rows = band->rows,
                                .wall_ns = (uint64_t)wall_ns,
                                .flags = flags};
    policy->observe(state, &m);
}

static inline void took(uint32_t device, uint32_t rows, double wall_ns)
{
    band_took(&(struct cox_band){.device = device, .rows = rows}, wall_ns, 0);
}

#endif
