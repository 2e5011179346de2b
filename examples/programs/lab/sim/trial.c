/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"
#include "best_static.h"
#include "oracle.h"
#include "common/strict_fp.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double RECONVERGED_WITHIN = 1.05; /* of the optimum */
static const double FIRST_STEP = 0.16;         /* of the search for the first seed's best split */
static const double NEXT_STEP = 0.032;         /* for the other seeds */
static const double IN_USE_SHARE = 0.5;        /* of the rows that the oracle gives a device */

/* For the energy figure all splits are tried. Larger scenarios have no such figure. */
enum { ENERGY_GRANULES_MAX = 512, ENERGY_SEARCHES_MAX = 64 };

enum { EVENTS_MAX = 2 * (LAB_CHANGES_MAX + LAB_CONTENTIONS_MAX) };

/* Something that happens at a frame, and a sum of frames over all seeds. */
struct event {
    uint64_t frame;
    uint64_t end; /* the next event of the same kind, or the end of the scenario */
    uint32_t device;
    double sum;
    uint32_t seeds;
};

/* Over all frames of all seeds. */
struct sums {
    double period_ns, single_device_ns, joules;
    double rows[COX_DEVICES_MAX];
    uint64_t moves, late, refused;
    double worst; /* frames until the split was near the optimum again */
    double death; /* time over the oracle's in the second frame of a death */
    uint64_t deaths;
    uint32_t step_count, back_count;
    struct event steps[EVENTS_MAX], backs[EVENTS_MAX];
};

static void find_events(const struct lab_scenario *scenario, struct sums *sums)
{
    for (uint64_t frame = 1; frame < scenario->frames; frame++) {
        if (lab_scenario_is_step(scenario, frame) && sums->step_count < EVENTS_MAX) {
            if (sums->step_count > 0)
                sums->steps[sums->step_count - 1].end = frame;
            sums->steps[sums->step_count++] = (struct event){.frame = frame,
                                                             .end = scenario->frames};
        }

        for (uint32_t d = 0; d < scenario->device_count; d++)
            if (lab_scenario_is_alive(scenario, d, frame) &&
                !lab_scenario_is_alive(scenario, d, frame - 1) && sums->back_count < EVENTS_MAX)
                sums->backs[sums->back_count++] = (struct event){
                    .frame = frame, .end = scenario->frames, .device = d};
    }
}

/* How many frames after the step the split's expected time is near the optimum and stays there. */
static uint64_t frames_to_reconverge(const struct lab_sim_frame *frames, const struct event *step)
{
    uint64_t good = 0;
    for (uint64_t f = step->frame; f < step->end; f++) {
        const bool near = frames[f].expected_ns <=
                          RECONVERGED_WITHIN * frames[f].oracle_expected_ns;

        good++;
        if (!near)
            good = 0;
        if (good == LAB_RECONVERGED_FRAMES || (near && f + 1 == step->end))
            return f + 1 - good - step->frame;
    }

    return step->end - step->frame;
}

static bool is_in_use(const struct lab_sim_frame *frame, uint32_t device)
{
    return frame->rows[device] > 0 &&
           frame->rows[device] >= IN_USE_SHARE * frame->oracle_rows[device];
}

static void add_events(const struct lab_scenario *scenario, const struct lab_sim_frame *frames,
                       struct sums *sums)
{
    for (uint32_t i = 0; i < sums->step_count; i++) {
        const uint64_t count = frames_to_reconverge(frames, &sums->steps[i]);
        sums->steps[i].sum += (double)count;
        sums->steps[i].seeds++;
        sums->worst = fmax(sums->worst, (double)count);
    }

    for (uint32_t i = 0; i < sums->back_count; i++) {
        struct event *back = &sums->backs[i];
        uint64_t f = back->frame;

        while (f < back->end && !is_in_use(&frames[f], back->device))
            f++;
        back->sum += (double)(f - back->frame);
        back->seeds++;
    }

    for (uint64_t f = 1; f + 1 < scenario->frames; f++) {
        for (uint32_t d = 0; d < scenario->device_count; d++) {
            if (lab_scenario_is_alive(scenario, d, f) || !lab_scenario_is_alive(scenario, d, f - 1))
                continue;
            sums->death += frames[f + 1].wall_ns / frames[f + 1].oracle_ns;
            sums->deaths++;
        }
    }
}

static void add_run(const struct lab_scenario *scenario, const struct lab_sim_frame *frames,
                    double *periods, struct sums *sums)
{
    for (uint64_t f = 0; f < scenario->frames; f++) {
        periods[f] = frames[f].period_ns;
        sums->period_ns += frames[f].period_ns;
        sums->single_device_ns += frames[f].single_device_ns;
        sums->moves += frames[f].moved;
        sums->refused += frames[f].refused;
        sums->joules += frames[f].joules;
        sums->late += scenario->deadline_ns > 0 &&
                      frames[f].latency_ns > (double)scenario->deadline_ns;
        for (uint32_t d = 0; d < scenario->device_count; d++)
            sums->rows[d] += frames[f].rows[d];
    }

    add_events(scenario, frames, sums);
}

static double worst_mean(const struct event *events, uint32_t count)
{
    double worst = -1;
    for (uint32_t i = 0; i < count; i++)
        worst = fmax(worst, events[i].sum / events[i].seeds);
    return worst;
}

/* Compute the figures of one policy. Sorts `periods`. */
static void finish(const struct lab_trial *trial, const struct sums *sums,
                   const struct sums *oracle, double static_ns, double least_joules,
                   double *periods, struct lab_figures *out)
{
    const struct lab_scenario *scenario = trial->scenario;
    const size_t count = (size_t)scenario->frames * trial->seeds;

    out->mean_ns = sums->period_ns / (double)count;
    out->static_ns = static_ns / (double)count;
    out->oracle_ns = oracle->period_ns / (double)count;
    if (trial->options->in_flight > 1) /* the oracle does not know that frames overlap */
        out->oracle_ns = out->static_ns;
    out->joules = -1;
    if (sums->joules >= 0)
        out->joules = sums->joules / (double)count;
    out->refused = sums->refused;
    out->reconverged_worst = sums->step_count > 0 ? sums->worst : -1;

    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        out->value[f] = -1;
    out->value[LAB_FIGURE_MEAN] = out->mean_ns / out->oracle_ns;
    out->value[LAB_FIGURE_P99] = quantile_of(periods, count, 0.99) / out->oracle_ns;
    out->value[LAB_FIGURE_P995] = quantile_of(periods, count, 0.995) / out->oracle_ns;
    out->value[LAB_FIGURE_P999] = quantile_of(periods, count, 0.999) / out->oracle_ns;
    out->value[LAB_FIGURE_STATIC] = out->mean_ns / out->static_ns;
    out->value[LAB_FIGURE_SINGLE] = sums->period_ns / oracle->single_device_ns;
    out->value[LAB_FIGURE_CHANGES] = 100.0 * (double)sums->moves / (double)count;
    out->value[LAB_FIGURE_RECONVERGED] = worst_mean(sums->steps, sums->step_count);
    if (sums->deaths > 0)
        out->value[LAB_FIGURE_AFTER_DEATH] = sums->death / (double)sums->deaths;
    out->value[LAB_FIGURE_BACK] = worst_mean(sums->backs, sums->back_count);
    if (out->joules > 0 && least_joules > 0)
        out->value[LAB_FIGURE_ENERGY] = out->joules / least_joules;
    if (scenario->deadline_ns > 0)
        out->value[LAB_FIGURE_LATE] = (double)sums->late / (double)count;
}

/* The oracle and hindsight do not: they know what no policy can. */
static bool competes(const struct cox_policy *policy)
{
    return policy && policy != &lab_hindsight;
}

static void compare(const struct lab_trial *trial, struct lab_figures *out)
{
    for (uint32_t i = 0; i < trial->policy_count; i++) {
        double best = HUGE_VAL;

        for (uint32_t k = 0; k < trial->policy_count; k++)
            if (k != i && competes(trial->policies[k]))
                best = fmin(best, out[k].value[LAB_FIGURE_MEAN]);
        if (best < HUGE_VAL && competes(trial->policies[i]))
            out[i].value[LAB_FIGURE_BEATEN] = fmax(0, out[i].value[LAB_FIGURE_MEAN] / best - 1);
    }
}

/* Run one policy on all seeds. `seed_ns` may be NULL. */
static cox_status run_policy(const struct lab_trial *trial, const struct lab_world *world,
                             const struct lab_sim_options *options, const struct cox_policy *policy,
                             struct lab_sim_frame *frames, double *periods, struct sums *sums,
                             double *seed_ns, char *why)
{
    *sums = (struct sums){0};
    find_events(trial->scenario, sums);
    for (uint32_t s = 0; s < trial->seeds; s++) {
        char said[LAB_WHY_MAX];
        const cox_status status = lab_simulate(world, policy, options, trial->first_seed + s,
                                               frames, said, sizeof said);

        if (said[0] && !why[0])
            memcpy(why, said, sizeof said);
        if (status)
            return status;

        const double before_ns = sums->period_ns;
        add_run(trial->scenario, frames, periods + s * trial->scenario->frames, sums);
        if (seed_ns)
            seed_ns[s] = (sums->period_ns - before_ns) / (double)trial->scenario->frames;
    }

    return COX_OK;
}

/* Joules per frame of the split that takes the least within the deadline. Negative if energy is not
 * the scenario's objective, or if the optimum is not known. */
static double find_least_joules(const struct lab_trial *trial, const struct lab_world *world)
{
    const struct lab_scenario *scenario = trial->scenario;
    double limit_ns = HUGE_VAL, sum = 0, least = -1;
    uint64_t before = 0;
    uint32_t searched = 0;

    if (scenario->objective != COX_OBJECTIVE_ENERGY || world->device_count > LAB_ORACLE_PRICED_MAX)
        return -1;
    if (scenario->deadline_ns > 0)
        limit_ns = (double)scenario->deadline_ns;

    world->begin_run(world->ctx, trial->first_seed);
    for (uint64_t f = 0; f < scenario->frames; f++) {
        uint32_t rows, row_alignment;
        bool alive[COX_DEVICES_MAX];

        world->begin_frame(world->ctx, f, &rows, &row_alignment, alive);
        const uint64_t condition = world->condition(world->ctx, f);
        if (condition == 0 || rows / row_alignment > ENERGY_GRANULES_MAX)
            return -1;

        if (condition != before) {
            least = lab_oracle_price(world, f, rows, row_alignment, alive, limit_ns,
                                     lab_scenario_joules, scenario);
            if (least < 0 || ++searched > ENERGY_SEARCHES_MAX)
                return -1;
        }
        before = condition;
        sum += least;
    }

    return sum / (double)scenario->frames;
}

/* Sum up the times of each seed's best fixed split. The search begins with the oracle's shares. */
static cox_status find_static(const struct lab_trial *trial, const struct lab_world *world,
                              const struct lab_sim_options *options, const struct sums *oracle,
                              struct lab_sim_frame *frames, double *static_ns)
{
    double ratios[COX_DEVICES_MAX], rows = 0, step = FIRST_STEP;

    *static_ns = 0;
    for (uint32_t d = 0; d < world->device_count; d++)
        rows += oracle->rows[d];
    for (uint32_t d = 0; d < world->device_count; d++)
        ratios[d] = oracle->rows[d] / rows;

    for (uint32_t s = 0; s < trial->seeds; s++) {
        double total_ns;
        const cox_status status = lab_best_static(world, options, trial->first_seed + s, step,
                                                  frames, ratios, &total_ns);

        if (status)
            return status;
        *static_ns += total_ns;
        step = NEXT_STEP;
    }

    return COX_OK;
}

/* Compare the seeds of a policy with each other, and with those of the first policy. Does not sort
 * `periods`. */
static cox_status judge_seeds(const struct lab_trial *trial, const double *periods, bool is_first,
                              struct lab_by_seed *first, struct lab_certainty *out)
{
    struct lab_by_seed other = {.seeds = 0};
    struct lab_by_seed *own = is_first ? first : &other;

    const bool good = lab_by_seed_fill(own, periods, (size_t)trial->scenario->frames,
                                       trial->seeds) &&
                      lab_certainty_of(own, first, out);

    lab_by_seed_free(&other);
    return good ? COX_OK : COX_E_NOMEM;
}

cox_status lab_trial_run(const struct lab_trial *trial, struct lab_figures *out, uint32_t *failed)
{
    const struct lab_scenario *scenario = trial->scenario;
    struct lab_sim_options options = *trial->options;
    struct lab_world world;
    const size_t frame_count = (size_t)scenario->frames;
    struct lab_scenario_world *ctx = lab_scenario_world_create(scenario, &world);
    struct lab_sim_frame *frames = malloc(frame_count * sizeof *frames);
    double *periods = malloc(frame_count * trial->seeds * sizeof *periods);
    struct sums *sums = malloc(sizeof *sums);
    struct sums *oracle = malloc(sizeof *oracle);
    struct lab_by_seed first = {.seeds = 0};
    double static_ns = 0, least_joules = -1;
    char why[LAB_WHY_MAX] = "";
    cox_status status = COX_E_NOMEM;

    *failed = trial->policy_count;
    options.policy.objective = scenario->objective;
    options.policy.deadline_ns = scenario->deadline_ns;
    options.oracles = calloc(frame_count, sizeof *options.oracles);

    if (ctx && frames && periods && sums && oracle && options.oracles)
        status = run_policy(trial, &world, &options, NULL, frames, periods, oracle, NULL, why);
    if (status == COX_OK)
        status = find_static(trial, &world, &options, oracle, frames, &static_ns);
    if (status == COX_OK)
        least_joules = find_least_joules(trial, &world);

    for (uint32_t i = 0; i < trial->policy_count && status == COX_OK; i++) {
        double *seed_ns = trial->seed_ns ? trial->seed_ns + (size_t)i * trial->seeds : NULL;

        out[i] = (struct lab_figures){.refused = 0};
        status = run_policy(trial, &world, &options, trial->policies[i], frames, periods, sums,
                            seed_ns, out[i].why);
        if (status)
            *failed = i;
        else
            status = judge_seeds(trial, periods, i == 0, &first, &out[i].certainty);
        if (status == COX_OK)
            finish(trial, sums, oracle, static_ns, least_joules, periods, &out[i]);
    }
    if (status == COX_OK)
        compare(trial, out);

    lab_by_seed_free(&first);
    free(options.oracles);
    free(oracle);
    free(sums);
    free(periods);
    free(frames);
    lab_scenario_world_destroy(&ctx);
    return status;
}
