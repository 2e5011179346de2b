/* The recorded policies simulated in a fitted scenario, and compared with the recording.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "common/quantiles.h"
#include "costs.h"
#include "lab/replay/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ORDER = 0.01;

/* What all checks share. `periods` holds the periods of one check at a time. */
struct checker {
    const struct lab_replay_data *data;
    const struct lab_fit *fit;
    const struct lab_scenario *scenario;
    const struct lab_scenario *all; /* the same with all recorded levels */
    uint32_t seeds;
    struct lab_sim_frame *frames; /* room for a simulation */
    struct cox_split *splits;     /* the same, for a policy that has changed */
    double *periods;
    size_t period_count;
    char *why;
    size_t why_bytes;
};

static double mean_of_periods(const struct checker *checker)
{
    double sum = 0;

    if (checker->period_count == 0)
        return 0;

    for (size_t i = 0; i < checker->period_count; i++)
        sum += checker->periods[i];

    return sum / (double)checker->period_count;
}

/* Sorts the periods. */
static double p99_of_periods(const struct checker *checker)
{
    return quantile_of(checker->periods, checker->period_count, 0.99);
}

/* The device of a session of one device alone. */
static uint32_t device_of(const struct lab_replay_session *session)
{
    return session->bands[0].device;
}

/* Index in the scenario, which leaves out devices that never had rows. */
static uint32_t index_of(const struct lab_fit *fit, uint32_t device)
{
    uint32_t index = 0;

    for (uint32_t d = 0; d < device; d++)
        index += fit->devices[d].bands > 0;

    return index;
}

/* The check that the session is part of, and the policy to simulate; false for others. */
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

static bool is_named(const struct lab_replay_session *session, const char *name)
{
    char own[sizeof((struct lab_fit_check *)NULL)->name];
    struct cox_policy policy;

    return name_session(session, own, sizeof own, &policy) && strcmp(own, name) == 0;
}

/* As cox-lab run: with one frame in flight the first frame of each turn of a reference is left
 * out. */
static bool is_left_out(const struct checker *checker, const struct lab_replay_session *session,
                        size_t f)
{
    return session->kind != LAB_REPLAY_POLICY && checker->fit->in_flight == 1 &&
           (f == 0 || session->frames[f].frame != session->frames[f - 1].frame + 1);
}

/* The periods of all recorded frames of the check. */
static void take_recorded(struct checker *checker, const char *name)
{
    checker->period_count = 0;
    for (size_t s = 0; s < checker->data->session_count; s++) {
        const struct lab_replay_session *session = &checker->data->sessions[s];

        if (!is_named(session, name))
            continue;

        for (size_t f = 0; f < session->frame_count; f++)
            if (session->frames[f].good && !is_left_out(checker, session, f))
                checker->periods[checker->period_count++] = session->frames[f].period_ns;
    }
}

/* The periods of a policy in the scenario, for all seeds, with the options of a recorded session.
 * `splits` as in the simulator's options. */
static bool take_forecast(struct checker *checker, const struct lab_scenario *scenario,
                          const struct lab_replay_session *session, const struct cox_policy *policy,
                          const struct cox_split *splits)
{
    struct lab_sim_options options = {.in_flight = checker->fit->in_flight,
                                      .min_band_rows = session->min_band_rows,
                                      .no_pool = session->no_pool,
                                      .no_shadow = session->no_shadow,
                                      .no_oracle = true,
                                      .policy = session->options,
                                      .splits = splits};
    struct lab_world world;
    cox_status status = COX_OK;
    char text[400] = "";

    struct lab_scenario_world *ctx = lab_scenario_world_create(scenario, &world);
    if (!ctx)
        return lab_replay_refuse(checker->why, checker->why_bytes, "out of memory");

    if (session->kind == LAB_REPLAY_SOLO) {
        options.policy = (struct cox_policy_options){0};
        options.policy.device = 1 + index_of(checker->fit, device_of(session));
    }

    checker->period_count = 0;
    for (uint32_t s = 0; s < checker->seeds && status == COX_OK; s++) {
        status = lab_simulate(&world, policy, &options, 1 + s, checker->frames, text, sizeof text);
        for (uint64_t f = 0; f < world.frames && status == COX_OK; f++)
            checker->periods[checker->period_count++] = checker->frames[f].exposed_ns;
    }

    lab_scenario_world_destroy(&ctx);
    if (status == COX_OK)
        return true;

    if (!text[0])
        snprintf(text, sizeof text, "%s", cox_status_text(status));

    return lab_replay_refuse(checker->why, checker->why_bytes, "cannot simulate policy %s: %s",
                             policy->name, text);
}

/* The scenario with the levels that a session met: from frame `first` of the traces on. */
static struct lab_scenario scenario_of_session(const struct lab_scenario *scenario, size_t first,
                                               size_t frames)
{
    struct lab_scenario own = *scenario;

    own.frames = frames;
    own.traces_begin = true;
    for (uint32_t d = 0; d < own.device_count; d++) {
        own.devices[d].trace_first += (uint32_t)first;
        own.devices[d].trace_count = (uint32_t)frames;
        if (own.devices[d].late_count == 0)
            continue;
        own.devices[d].late_first += (uint32_t)first;
        own.devices[d].late_count = (uint32_t)frames;
    }

    return own;
}

static int by_first_row(const void *left, const void *right)
{
    const struct cox_band *a = left, *b = right;
    return (a->first_row > b->first_row) - (a->first_row < b->first_row);
}

/* Which rows each device had in the end, as one split without a pool. */
static void read_split(const struct checker *checker, const struct lab_replay_session *session,
                       const struct lab_replay_frame *frame, struct cox_split *out)
{
    *out = (struct cox_split){0};

    for (size_t b = frame->first_band; b < frame->first_band + frame->band_count; b++) {
        const struct lab_replay_band *band = &session->bands[b];
        if (band->good && !band->again && out->band_count < COX_BANDS_MAX)
            out->bands[out->band_count++] = (struct cox_band){index_of(checker->fit, band->device),
                                                              band->first_row, band->rows};
    }

    qsort(out->bands, out->band_count, sizeof out->bands[0], by_first_row);
}

/* The recorded splits of a session. The simulator refuses one that is not whole, and uses the one
 * before. */
static const struct cox_split *read_splits(struct checker *checker,
                                           const struct lab_replay_session *session)
{
    for (size_t f = 0; f < session->frame_count && f < checker->scenario->frames; f++)
        read_split(checker, session, &session->frames[f], &checker->splits[f]);

    return checker->splits;
}

/* The same with the levels that the check's first session met, if the traces reach so far. */
static bool forecast_own(struct checker *checker, struct lab_fit_check *check,
                         const struct cox_policy *policy)
{
    size_t end = 0;

    for (size_t s = 0; s < checker->data->session_count; s++) {
        const struct lab_replay_session *session = &checker->data->sessions[s];

        if (!lab_fit_is_policy(session))
            continue;

        size_t first = end;
        end += session->frame_count;
        if (end > checker->fit->trace_count)
            break;
        if (!is_named(session, check->name))
            continue;

        const struct lab_scenario own = scenario_of_session(checker->all, first,
                                                            session->frame_count);
        const struct cox_split *splits = NULL;
        if (check->changed)
            splits = read_splits(checker, session);
        if (!take_forecast(checker, &own, session, policy, splits))
            return false;

        check->own_ns = mean_of_periods(checker);
        check->own_p99_ns = p99_of_periods(checker);
        break;
    }

    return true;
}

static bool has_traces(const struct lab_scenario *scenario)
{
    for (uint32_t d = 0; d < scenario->device_count; d++)
        if (scenario->devices[d].trace_count == 0)
            return false;

    return true;
}

/* The check of a session's policy. `check->name` is set; nothing recorded leaves mean_ns 0. */
static bool do_check(struct checker *checker, const struct lab_replay_session *session,
                     const struct cox_policy *policy, struct lab_fit_check *check)
{
    check->simple = strncmp(check->name, "adaptive", 8) != 0 && policy->assign == NULL;
    check->changed = session->changed;
    take_recorded(checker, check->name);
    if (checker->period_count == 0)
        return true;

    check->mean_ns = mean_of_periods(checker);
    check->p99_ns = p99_of_periods(checker);

    if (!take_forecast(checker, checker->scenario, session, policy, NULL))
        return false;

    check->forecast_ns = mean_of_periods(checker);
    check->forecast_p99_ns = p99_of_periods(checker);

    if (session->kind != LAB_REPLAY_POLICY || !has_traces(checker->scenario))
        return true;

    return forecast_own(checker, check, policy);
}

static bool check_all(struct checker *checker, struct lab_fit_check *checks, uint32_t most,
                      uint32_t *count)
{
    for (size_t s = 0; s < checker->data->session_count && *count < most; s++) {
        const struct lab_replay_session *session = &checker->data->sessions[s];
        struct lab_fit_check *check = &checks[*count];
        struct cox_policy policy;
        bool again = false;

        *check = (struct lab_fit_check){0};
        if (!name_session(session, check->name, sizeof check->name, &policy))
            continue;

        for (uint32_t i = 0; i < *count; i++)
            again |= strcmp(checks[i].name, check->name) == 0;
        if (again)
            continue;

        if (!do_check(checker, session, &policy, check))
            return false;

        *count += check->mean_ns > 0;
    }

    return *count > 0 || lab_replay_refuse(checker->why, checker->why_bytes,
                                           "the run has no known policy; cox-lab sim "
                                           "--list lists them");
}

static struct lab_scenario *read_all_levels(const struct lab_fit *fit, char *why, size_t why_bytes)
{
    char *text = lab_fit_write(fit, "fitted", "all levels", LAB_FIT_ALL);
    struct lab_scenario *scenario = NULL;

    if (text)
        scenario = lab_scenario_parse(text, strlen(text), "fitted", why, why_bytes);
    else
        lab_replay_refuse(why, why_bytes, "out of memory");
    free(text);

    return scenario;
}

bool lab_fit_check(const struct lab_replay_data *data, const struct lab_fit *fit,
                   const char *scenario, uint32_t seeds, struct lab_fit_check *checks,
                   uint32_t most, uint32_t *count, char *why, size_t why_bytes)
{
    struct checker checker = {
        .data = data, .fit = fit, .seeds = seeds, .why = why, .why_bytes = why_bytes};
    size_t periods = 0;
    bool good = false;

    *count = 0;
    struct lab_scenario *parsed = lab_scenario_parse(scenario, strlen(scenario), "fitted", why,
                                                     why_bytes);
    struct lab_scenario *all = read_all_levels(fit, why, why_bytes);
    if (!parsed || !all) {
        lab_scenario_free(&all);
        lab_scenario_free(&parsed);
        return false;
    }

    for (size_t s = 0; s < data->session_count; s++)
        periods += data->sessions[s].frame_count;
    if (periods < (size_t)parsed->frames * seeds)
        periods = (size_t)parsed->frames * seeds;

    checker.scenario = parsed;
    checker.all = all;
    checker.frames = calloc(parsed->frames, sizeof *checker.frames);
    checker.periods = calloc(periods, sizeof *checker.periods);
    checker.splits = calloc(parsed->frames, sizeof *checker.splits);
    if (checker.frames && checker.periods && checker.splits)
        good = check_all(&checker, checks, most, count);
    else
        lab_replay_refuse(why, why_bytes, "out of memory");

    free(checker.splits);
    free(checker.periods);
    free(checker.frames);
    lab_scenario_free(&all);
    lab_scenario_free(&parsed);

    return good;
}

static double value_of(const struct lab_fit_check *check, bool own)
{
    if (own && check->own_ns > 0)
        return check->own_ns;

    return check->forecast_ns;
}

double lab_fit_error(const struct lab_fit_check *check)
{
    double own = 0, forecast = 0;

    if (check->own_ns > 0)
        own = fabs(check->own_ns / check->mean_ns - 1);
    if (!check->changed)
        forecast = fabs(check->forecast_ns / check->mean_ns - 1);

    return fmax(own, forecast);
}

static bool is_reversed(const struct lab_fit_check *fast, const struct lab_fit_check *slow,
                        bool own)
{
    return fast->simple && slow->simple && fast->mean_ns < slow->mean_ns * (1 - ORDER) &&
           value_of(fast, own) >= value_of(slow, own);
}

bool lab_fit_same_order(const struct lab_fit_check *checks, uint32_t count, bool own)
{
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if (is_reversed(&checks[a], &checks[b], own))
                return false;

    return true;
}
