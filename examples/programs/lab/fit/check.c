/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "common/quantiles.h"
#include "lab/replay/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double NEAR = 0.03, ORDER = 0.01;

/* Periods of all the sessions that are one check; sorted by figures_quantile. */
struct periods {
    double *ns;
    size_t count;
};

static double mean_of(const struct periods *periods)
{
    double sum = 0;
    for (size_t i = 0; i < periods->count; i++)
        sum += periods->ns[i];
    return periods->count ? sum / (double)periods->count : 0;
}

/* The device that did the frames of a session alone. */
static uint32_t device_of(const struct lab_replay_session *session)
{
    return session->band_count > 0 ? session->bands[0].device : 0;
}

/* Index in the scenario: devices that never had rows are not in it. */
static uint32_t index_of(const struct lab_fit *fit, uint32_t device)
{
    uint32_t index = 0;
    for (uint32_t d = 0; d < device; d++)
        index += fit->devices[d].bands > 0;
    return index;
}

static bool name_session(const struct lab_replay_session *session, char *name, size_t bytes,
                         struct cox_policy *policy)
{
    if (session->kind == LAB_REPLAY_SOLO && session->band_count > 0) {
        snprintf(name, bytes, "device %u alone", (unsigned)device_of(session));
        return lab_replay_policy("single", policy);
    }
    snprintf(name, bytes, "%s", session->policy);
    return lab_fit_is_policy(session) && lab_replay_policy(name, policy);
}

static void add_recorded(const struct lab_replay_session *session, struct periods *periods)
{
    for (size_t f = 0; f < session->frame_count; f++)
        if (session->frames[f].good)
            periods->ns[periods->count++] = session->frames[f].period_ns;
}

static bool forecast(const struct lab_fit *fit, const struct lab_replay_session *session,
                     const struct lab_world *world, const struct cox_policy *policy, uint32_t seeds,
                     struct lab_sim_frame *frames, struct periods *periods, char *why,
                     size_t why_bytes)
{
    struct lab_sim_options options = {.in_flight = fit->in_flight,
                                      .min_band_rows = session->min_band_rows,
                                      .no_pool = session->no_pool,
                                      .no_shadow = session->no_shadow,
                                      .no_oracle = true,
                                      .policy = session->options};
    if (session->kind == LAB_REPLAY_SOLO)
        options.policy = (struct cox_policy_options){.device = 1 +
                                                               index_of(fit, device_of(session))};
    for (uint32_t s = 0; s < seeds; s++) {
        char said[400];
        cox_status status = lab_simulate(world, policy, &options, 1 + s, frames, said, sizeof said);
        if (status)
            return lab_replay_refuse(why, why_bytes, "%s cannot be simulated: %s", policy->name,
                                     said[0] ? said : cox_status_text(status));
        for (uint64_t f = 0; f < world->frames; f++)
            periods->ns[periods->count++] = frames[f].period_ns;
    }
    return true;
}

/* The same with the levels that the sessions of that name met, as far as the traces reach. */
static bool forecast_own(const struct lab_replay_data *data, const struct lab_fit *fit,
                         const struct lab_scenario *scenario, struct lab_fit_check *check,
                         uint32_t seeds, struct lab_sim_frame *frames, struct periods *periods,
                         char *why, size_t why_bytes)
{
    size_t at = 0;
    bool good = true;
    periods->count = 0;
    for (size_t s = 0; s < data->session_count && good; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        char name[sizeof check->name];
        struct cox_policy policy;
        if (!lab_fit_is_policy(session))
            continue;
        size_t first = at;
        at += session->frame_count;
        if (!name_session(session, name, sizeof name, &policy) || strcmp(name, check->name) != 0 ||
            at > fit->trace_count || periods->count > 0)
            continue;
        struct lab_scenario own = *scenario;
        struct lab_world world;
        own.frames = session->frame_count;
        own.traces_begin = true;
        for (uint32_t d = 0; d < own.device_count; d++) {
            own.devices[d].trace_first += (uint32_t)first;
            own.devices[d].trace_count = (uint32_t)session->frame_count;
        }
        struct lab_scenario_world *ctx = lab_scenario_world_create(&own, &world);
        good = ctx ? forecast(fit, session, &world, &policy, seeds, frames, periods, why, why_bytes)
                   : lab_replay_refuse(why, why_bytes, "out of memory");
        lab_scenario_world_destroy(&ctx);
    }
    check->own_ns = mean_of(periods);
    check->own_p99_ns = periods->count ? figures_quantile(periods->ns, periods->count, 0.99) : 0;
    return good;
}

static bool has_traces(const struct lab_scenario *scenario)
{
    for (uint32_t d = 0; d < scenario->device_count; d++)
        if (scenario->devices[d].trace_count == 0)
            return false;
    return true;
}

static bool check_all(const struct lab_replay_data *data, const struct lab_fit *fit,
                      const struct lab_scenario *scenario, const struct lab_world *world,
                      uint32_t seeds, struct lab_sim_frame *frames, struct periods *periods,
                      struct lab_fit_check *checks, uint32_t most, uint32_t *count, char *why,
                      size_t why_bytes)
{
    for (size_t s = 0; s < data->session_count && *count < most; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        struct lab_fit_check *check = &checks[*count];
        struct cox_policy policy;
        bool again = false;
        *check = (struct lab_fit_check){.simple = true};
        if (!name_session(session, check->name, sizeof check->name, &policy))
            continue;
        for (uint32_t i = 0; i < *count; i++)
            again |= strcmp(checks[i].name, check->name) == 0;
        if (again)
            continue;
        check->simple = strncmp(check->name, "adaptive", 8) != 0 && policy.next == NULL;
        periods->count = 0;
        for (size_t o = s; o < data->session_count; o++) {
            char name[sizeof check->name];
            struct cox_policy same;
            if (name_session(&data->sessions[o], name, sizeof name, &same) &&
                strcmp(name, check->name) == 0)
                add_recorded(&data->sessions[o], periods);
        }
        if (periods->count == 0)
            continue;
        check->mean_ns = mean_of(periods);
        check->p99_ns = figures_quantile(periods->ns, periods->count, 0.99);
        periods->count = 0;
        if (!forecast(fit, session, world, &policy, seeds, frames, periods, why, why_bytes))
            return false;
        check->forecast_ns = mean_of(periods);
        check->forecast_p99_ns = figures_quantile(periods->ns, periods->count, 0.99);
        if (has_traces(scenario) && session->kind == LAB_REPLAY_POLICY &&
            !forecast_own(data, fit, scenario, check, seeds, frames, periods, why, why_bytes))
            return false;
        (*count)++;
    }
    return *count > 0 ||
           lab_replay_refuse(why, why_bytes, "the run has no policy that this program knows");
}

bool lab_fit_check(const struct lab_replay_data *data, const struct lab_fit *fit,
                   const char *scenario, uint32_t seeds, struct lab_fit_check *checks,
                   uint32_t most, uint32_t *count, char *why, size_t why_bytes)
{
    *count = 0;
    struct lab_scenario *parsed = lab_scenario_parse(scenario, strlen(scenario), "fitted", why,
                                                     why_bytes);
    if (!parsed)
        return false;
    struct lab_world world;
    struct lab_scenario_world *ctx = lab_scenario_world_create(parsed, &world);
    struct lab_sim_frame *frames = calloc(parsed->frames, sizeof *frames);
    size_t recorded = 0;
    for (size_t s = 0; s < data->session_count; s++)
        recorded += data->sessions[s].frame_count;
    size_t simulated = (size_t)parsed->frames * seeds;
    struct periods periods = {calloc(recorded > simulated ? recorded : simulated, sizeof(double)),
                              0};
    bool good = ctx && frames && periods.ns;
    if (good)
        good = check_all(data, fit, parsed, &world, seeds, frames, &periods, checks, most, count,
                         why, why_bytes);
    else
        lab_replay_refuse(why, why_bytes, "out of memory");
    free(periods.ns);
    free(frames);
    lab_scenario_world_destroy(&ctx);
    lab_scenario_free(&parsed);
    return good;
}

static double value_of(const struct lab_fit_check *check, bool own)
{
    return own && check->own_ns > 0 ? check->own_ns : check->forecast_ns;
}

bool lab_fit_is_near(const struct lab_fit_check *check, bool own)
{
    return fabs(value_of(check, own) / check->mean_ns - 1) <= NEAR;
}

bool lab_fit_same_order(const struct lab_fit_check *checks, uint32_t count, bool own)
{
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if (checks[a].simple && checks[b].simple &&
                checks[a].mean_ns < checks[b].mean_ns * (1 - ORDER) &&
                value_of(&checks[a], own) >= value_of(&checks[b], own))
                return false;
    return true;
}
