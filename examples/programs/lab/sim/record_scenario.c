/* Records a scenario: finds its phases and names for record_simulation.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record_simulation.h"

#include <stdio.h>

enum { PHASES_MAX = 64, PHASE_TEXT_MAX = 160, POLICIES_MAX = 64 };

struct phases {
    uint32_t count;
    struct lab_record_phase list[PHASES_MAX];
    char texts[PHASES_MAX][PHASE_TEXT_MAX];
};

/* Lower `next` to the first of `from` and `to` that is above `last`. */
static void lower(uint64_t *next, uint64_t last, uint64_t from, uint64_t to)
{
    if (from > last && from < *next)
        *next = from;
    if (to > last && to < *next)
        *next = to;
}

/* Find the frames at which something changes, in order, with frame 0 and the scenario's end.
 * Returns their number. If there are too many, the last phase is longer. */
static uint32_t find_edges(const struct lab_scenario *scenario, uint64_t *edges)
{
    uint32_t count = 0;

    edges[count++] = 0;
    for (;;) {
        const uint64_t last = edges[count - 1];
        uint64_t next = scenario->frames;

        for (uint32_t c = 0; c < scenario->change_count; c++)
            lower(&next, last, scenario->changes[c].from, scenario->changes[c].to);
        for (uint32_t c = 0; c < scenario->contention_count; c++)
            lower(&next, last, scenario->contentions[c].from, scenario->contentions[c].to);

        if (count == PHASES_MAX)
            next = scenario->frames;
        edges[count++] = next;
        if (next == scenario->frames)
            return count;
    }
}

/* Describe the events that last in frame `frame`. */
static void describe(const struct lab_scenario *scenario, uint64_t frame, char *text, size_t bytes)
{
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t c = 0; c < scenario->change_count && at < bytes; c++) {
        const struct lab_scenario_change *change = &scenario->changes[c];
        if (frame < change->from || frame >= change->to)
            continue;

        const char *name = scenario->devices[change->device].name, *between = at ? ", " : "";
        int length = 0;
        switch (change->kind) {
        case LAB_SLOWER:
            length = snprintf(text + at, bytes - at, "%s%s slower by %g", between, name,
                              change->factor);
            break;
        case LAB_DRIFT:
            length = snprintf(text + at, bytes - at, "%s%s drifts by %g", between, name,
                              change->factor);
            break;
        case LAB_GONE:
            length = snprintf(text + at, bytes - at, "%s%s gone", between, name);
            break;
        case LAB_ROWS:
            length = snprintf(text + at, bytes - at, "%s%u rows", between, (unsigned)change->rows);
            break;
        }
        if (length > 0)
            at += (size_t)length;
    }

    for (uint32_t c = 0; c < scenario->contention_count && at < bytes; c++) {
        const struct lab_scenario_contention *contention = &scenario->contentions[c];
        if (frame < contention->from || frame >= contention->to)
            continue;

        const int length = snprintf(text + at, bytes - at, "%stogether slower by %g",
                                    at ? ", " : "", contention->factor);
        if (length > 0)
            at += (size_t)length;
    }

    if (at == 0)
        snprintf(text, bytes, "undisturbed");
}

static void find_phases(const struct lab_scenario *scenario, struct phases *phases)
{
    uint64_t edges[PHASES_MAX + 1] = {0};

    phases->count = find_edges(scenario, edges) - 1;
    for (uint32_t p = 0; p < phases->count; p++) {
        describe(scenario, edges[p], phases->texts[p], sizeof phases->texts[p]);
        phases->list[p] = (struct lab_record_phase){edges[p], edges[p + 1], phases->texts[p]};
    }
}

bool lab_record_scenario(struct lab_store *store, const struct lab_scenario *scenario,
                         const struct cox_policy *const *policies, uint32_t policy_count,
                         const struct lab_sim_options *options, uint64_t seed, char *why,
                         size_t why_bytes)
{
    const char *names[COX_DEVICES_MAX] = {NULL};
    const struct cox_policy *given[POLICIES_MAX];
    uint32_t count = 0;
    struct lab_sim_options as_scenario = *options;
    struct phases phases;
    struct lab_world world;

    for (uint32_t d = 0; d < scenario->device_count; d++)
        names[d] = scenario->devices[d].name;
    for (uint32_t p = 0; p < policy_count && count < POLICIES_MAX; p++)
        if (policies[p])
            given[count++] = policies[p];
    as_scenario.split_each_pass = true;
    as_scenario.policy.objective = scenario->objective;
    as_scenario.policy.deadline_ns = scenario->deadline_ns;
    find_phases(scenario, &phases);

    struct lab_scenario_world *own = lab_scenario_world_create(scenario, &world);
    if (!own) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }

    const bool good = lab_record_simulation(store, &world,
                                            &(struct lab_record){.scenario = scenario->name,
                                                                 .device_names = names,
                                                                 .phases = phases.list,
                                                                 .phase_count = phases.count,
                                                                 .policies = given,
                                                                 .policy_count = count,
                                                                 .options = &as_scenario,
                                                                 .seed = seed},
                                            why, why_bytes);
    lab_scenario_world_destroy(&own);
    return good;
}
