/* Fuzz target: scenario files. Parsing must not crash. A scenario is refused with one line, or it can be simulated.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "common/policies/registry.h"
#include "lab/sim/scenario.h"

#include <math.h>

enum { FRAMES = 3, ROWS_MAX = 4096 };

static void check_spans(const struct lab_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        CHECK(change->from < change->to && change->to <= scenario->frames);
        CHECK(change->device < scenario->device_count);
        CHECK(change->kind != LAB_ROWS || change->rows >= scenario->row_alignment);
    }
    for (uint32_t i = 0; i < scenario->contention_count; i++) {
        const struct lab_scenario_contention *contention = &scenario->contentions[i];
        CHECK(contention->from < contention->to && contention->to <= scenario->frames);
        CHECK(scenario->device_count == 32 || contention->devices >> scenario->device_count == 0);
    }
}

/* Simulates a few frames with `hguided` and the oracle. */
static void simulate(struct lab_scenario *scenario)
{
    struct lab_world world;
    struct lab_sim_frame frames[FRAMES];
    char why[256];
    scenario->frames = scenario->frames < FRAMES ? scenario->frames : FRAMES;
    struct lab_scenario_world *ctx = lab_scenario_world_create(scenario, &world);
    CHECK(ctx);
    const struct cox_policy *policies[] = {NULL, &policy_hguided};
    for (int p = 0; p < 2; p++) {
        CHECK(lab_simulate(&world, policies[p], NULL, 1, frames, why, sizeof why) == COX_OK);
        for (uint64_t f = 0; f < scenario->frames; f++)
            CHECK(isfinite(frames[f].wall_ns) && frames[f].wall_ns > 0 && frames[f].refused == 0);
    }
    lab_scenario_world_destroy(&ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[400];
    struct lab_scenario *scenario = lab_scenario_parse((const char *)data, size, "input", why, sizeof why);
    if (!scenario) {
        fuzz_complaint(why, sizeof why);
        return 0;
    }
    CHECK(scenario->device_count >= 1 && scenario->device_count <= COX_DEVICES_MAX);
    CHECK(scenario->rows >= 1 && scenario->row_alignment >= 1 && scenario->row_alignment <= scenario->rows);
    CHECK(scenario->frames >= 1 && scenario->frames <= LAB_FRAMES_MAX);
    CHECK(scenario->name[0] && strlen(scenario->name) < sizeof scenario->name);
    check_spans(scenario);
    bool small = scenario->rows <= ROWS_MAX && scenario->pass_count <= COX_PASSES_MAX;
    for (uint32_t p = 0; p < scenario->pass_count; p++) {
        const struct lab_scenario_pass *pass = &scenario->passes[p];
        CHECK(pass->rows >= 1 && pass->row_alignment >= 1 && pass->row_alignment <= pass->rows);
        small = small && pass->rows <= ROWS_MAX;
    }
    if (small)
        simulate(scenario);
    lab_scenario_free(&scenario);
    return 0;
}
