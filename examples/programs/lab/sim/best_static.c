/* SPDX-License-Identifier: Apache-2.0 */
#include "best_static.h"
#include "common/strict_fp.h"

#include <math.h>
#include <string.h>

static const double LEAST_STEP = 0.004; /* of the rows */

/* With a step of this size the search looks for ratios that are not known at all. */
static const double WIDE_STEP = 0.1;

enum { TRIES_MAX = 120, NEAR_TRIES_MAX = 40, ALONE_MAX = 4, FEW_DEVICES = 8, MANY_SHARE = 3 };

struct search {
    const struct lab_world *world;
    struct lab_sim_options options;
    uint64_t seed;
    struct lab_sim_frame *scratch;
    cox_status status;
    uint32_t tries_left;
    double best_ns;
    double best[COX_DEVICES_MAX];
};

/* Keep the ratios if they are the best so far. Returns whether they are. */
static bool try_ratios(struct search *search, const double *ratios)
{
    const struct lab_world *world = search->world;
    double total_ns = 0;

    if (search->status || search->tries_left == 0)
        return false;

    search->tries_left--;
    search->options.policy = (struct cox_policy_options){.ratios = ratios,
                                                         .ratio_count = world->device_count};
    search->status = lab_simulate(world, cox_policy_find("static"), &search->options, search->seed,
                                  search->scratch, NULL, 0);
    for (uint64_t f = 0; f < world->frames; f++)
        total_ns += search->scratch[f].period_ns;
    if (search->status || total_ns >= search->best_ns)
        return false;

    search->best_ns = total_ns;
    memcpy(search->best, ratios, sizeof search->best);
    return true;
}

/* Move up to `step` from one device to another, repeatedly while that helps. */
static bool move(struct search *search, uint32_t from, uint32_t to, double step)
{
    bool any = false;

    for (;;) {
        double ratios[COX_DEVICES_MAX];

        memcpy(ratios, search->best, sizeof ratios);
        const double moved = fmin(step, ratios[from]);
        ratios[from] -= moved;
        ratios[to] += moved;
        if (moved <= 0 || !try_ratios(search, ratios))
            return any;

        any = true;
    }
}

cox_status lab_best_static(const struct lab_world *world, const struct lab_sim_options *options,
                           uint64_t seed, double step, struct lab_sim_frame *scratch,
                           double *ratios, double *total_ns)
{
    struct search search = {
        .world = world, .options = *options, .seed = seed, .scratch = scratch, .best_ns = HUGE_VAL};
    double tried[COX_DEVICES_MAX] = {0};
    const bool wide = step >= WIDE_STEP;

    search.tries_left = wide ? TRIES_MAX : NEAR_TRIES_MAX;
    if (world->device_count > FEW_DEVICES)
        search.tries_left /= MANY_SHARE;
    search.options.no_oracle = true;
    search.options.profiles = NULL;

    memcpy(tried, ratios, world->device_count * sizeof *ratios);
    try_ratios(&search, tried);
    for (uint32_t d = 0; d < world->device_count && wide && world->device_count <= ALONE_MAX; d++) {
        memset(tried, 0, sizeof tried);
        tried[d] = 1;
        try_ratios(&search, tried);
    }

    while (step >= LEAST_STEP) {
        for (bool again = true; again && search.tries_left > 0;) {
            again = false;
            for (uint32_t from = 0; from < world->device_count; from++)
                for (uint32_t to = 0; to < world->device_count; to++)
                    again |= from != to && move(&search, from, to, step);
        }
        step /= 2;
    }

    memcpy(ratios, search.best, world->device_count * sizeof *ratios);
    *total_ns = search.best_ns;
    return search.status;
}
