/* Replays policies in recorded sessions and compares them with the recording.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "common/policies/registry.h"
#include "common/quantiles.h"
#include "lab/commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct replay_figures figures_of(const struct replay_times *times)
{
    struct replay_figures figures = {.frames = times->count};
    double sum = 0;

    if (times->count == 0)
        return figures;

    for (size_t i = 0; i < times->count; i++)
        sum += times->ns[i];
    figures.mean_ns = sum / (double)times->count;
    figures.p50_ns = percentile_of(times->ns, times->count, 50);
    figures.p99_ns = percentile_of(times->ns, times->count, 99);

    return figures;
}

/* Sessions of devices alone and of swept splits only serve to estimate the devices. The oracle of a
 * recorded simulation has no times of bands. */
static bool is_for_replay(const struct lab_replay_session *session)
{
    return session->kind == LAB_REPLAY_POLICY && strcmp(session->policy, "oracle") != 0;
}

static bool can_replay(const struct lab_replay_session *session)
{
    char lacks[REPLAY_WHY_MAX];
    return is_for_replay(session) && lab_replay_possible(session, lacks, sizeof lacks);
}

/* A line for each session that should be replayed but cannot. */
static void print_left_out(const struct replay_job *job)
{
    char lacks[REPLAY_WHY_MAX];

    for (size_t s = 0; s < job->data->session_count; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        if (is_for_replay(session) && !lab_replay_possible(session, lacks, sizeof lacks))
            lab_fail("%s: session %" PRId64 ", %s: skipped, because %s", job->options->path,
                     session->session, session->policy, lacks);
    }
}

static bool is_base(const struct replay_job *job, const struct lab_replay_session *session)
{
    return can_replay(session) &&
           (!job->options->base || strcmp(session->policy, job->options->base) == 0);
}

/* The recorded frames of all sessions of a policy. */
static void take_recorded(const struct replay_job *job, const char *policy,
                          struct replay_times *times)
{
    times->count = 0;
    for (size_t s = 0; s < job->data->session_count; s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        if (session->kind != LAB_REPLAY_POLICY || strcmp(session->policy, policy) != 0)
            continue;

        for (size_t f = 0; f < session->frame_count; f++)
            if (session->frames[f].good)
                times->ns[times->count++] = session->frames[f].period_ns;
    }
}

/* One policy in one session; adds to `times` if the session is one of the base. */
static cox_status replay_one(const struct replay_job *job, const struct lab_replay *replay,
                             struct replay_outcome *outcome, struct lab_sim_frame *frames,
                             struct replay_times *times, double *oracle_ns)
{
    bool base = is_base(job, replay->session);
    bool own = strcmp(outcome->policy.name, replay->session->policy) == 0;
    struct lab_sim_options options;

    if (!base && !own)
        return COX_OK;

    lab_replay_options(replay, &options);
    if (!own)
        options.profiles = NULL; /* the loaded profiles belong to the recorded policy */
    outcome->why[0] = '\0';
    cox_status status = lab_simulate(&replay->world, &outcome->policy, &options, 0, frames,
                                     outcome->why, sizeof outcome->why);
    if (status != COX_OK) {
        if (!outcome->why[0])
            snprintf(outcome->why, sizeof outcome->why, "%s", cox_status_text(status));
        return status;
    }

    outcome->why[0] = '\0';
    for (size_t f = 0; f < replay->session->frame_count; f++) {
        const struct lab_replay_frame *recorded = &replay->session->frames[f];
        if (!recorded->good)
            continue;

        const struct lab_sim_frame *frame = &frames[recorded->frame];
        double ns = frame->period_ns + replay->overhead_ns[recorded->frame];
        if (own) {
            outcome->own_ns += ns;
            outcome->own_recorded_ns += recorded->period_ns;
        }
        if (!base)
            continue;

        times->ns[times->count++] = ns;
        *oracle_ns += frame->oracle_ns + replay->overhead_ns[recorded->frame];
        outcome->refused += frame->refused;
    }

    return COX_OK;
}

/* Room for the frames of all policies' sessions, recorded or replayed. */
static size_t frames_of(const struct lab_replay_data *data)
{
    size_t frames = 1;

    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        if (can_replay(session))
            frames += (size_t)session->frames[session->frame_count - 1].frame + 1;
        else if (session->kind == LAB_REPLAY_POLICY)
            frames += session->frame_count;
    }

    return frames;
}

/* The worlds of all sessions that can be replayed. `worlds` has room for all sessions. */
static bool create_worlds(struct replay_job *job, struct lab_replay **worlds, size_t *world_count,
                          char *why, size_t why_bytes)
{
    const struct lab_replay_data *data = job->data;
    size_t count = 0;

    for (size_t s = 0; s < data->session_count; s++) {
        if (!can_replay(&data->sessions[s]))
            continue;
        if (!lab_replay_create(data, &data->sessions[s], &worlds[count], why, why_bytes))
            return false;
        if (is_base(job, &data->sessions[s]) && job->base_sessions++ == 0)
            job->first = worlds[count];
        count++;
    }

    *world_count = count;

    if (!job->first && job->options->base)
        return lab_replay_refuse(why, why_bytes,
                                 "run %" PRId64 " has no session of policy '%s' that can "
                                 "be replayed",
                                 data->run, job->options->base);
    if (!job->first)
        return lab_replay_refuse(why, why_bytes,
                                 "run %" PRId64
                                 " has no session of any policy that can be replayed",
                                 data->run);

    return true;
}

/* All policies in all sessions of the base, and each in its own. */
static bool replay_all(struct replay_job *job, struct lab_replay **worlds,
                       struct lab_sim_frame *frames, struct replay_times *times, char *why,
                       size_t why_bytes)
{
    size_t count = 0;

    if (!create_worlds(job, worlds, &count, why, why_bytes))
        return false;

    for (uint32_t p = 0; p < job->outcome_count; p++) {
        struct replay_outcome *outcome = &job->outcomes[p];
        double oracle_ns = 0;
        cox_status status = COX_OK;

        times->count = 0;
        for (size_t w = 0; w < count && status == COX_OK; w++)
            status = replay_one(job, worlds[w], outcome, frames, times, &oracle_ns);
        if (status == COX_E_NOMEM)
            return lab_replay_refuse(why, why_bytes, "%s", outcome->why);
        if (status != COX_OK)
            continue;

        outcome->replayed = figures_of(times);
        outcome->over_oracle = NAN;
        if (oracle_ns > 0)
            outcome->over_oracle = outcome->replayed.mean_ns * (double)times->count / oracle_ns;
        take_recorded(job, outcome->policy.name, times);
        outcome->recorded = figures_of(times);
    }

    return true;
}

/* The policies to replay: those of --policy, else the library's and all others that were
 * recorded. */
static void choose_policies(struct replay_job *job)
{
    const struct replay_options *options = job->options;

    for (uint32_t i = 0; i < options->policy_count; i++)
        job->outcomes[job->outcome_count++].policy = options->policies[i];
    if (options->policy_count)
        return;

    for (uint32_t i = 0; program_policy_at(i) && job->outcome_count < REPLAY_POLICIES_MAX; i++)
        job->outcomes[job->outcome_count++].policy = *program_policy_at(i);
    for (size_t s = 0; s < job->data->session_count && job->outcome_count < REPLAY_POLICIES_MAX;
         s++) {
        const struct lab_replay_session *session = &job->data->sessions[s];
        bool known = !can_replay(session);
        for (uint32_t p = 0; p < job->outcome_count; p++)
            known = known || strcmp(job->outcomes[p].policy.name, session->policy) == 0;
        if (!known && lab_replay_policy(session->policy, &job->outcomes[job->outcome_count].policy))
            job->outcome_count++;
    }
}

int lab__replay_policies(struct replay_job *job)
{
    const struct replay_options *options = job->options;
    char why[REPLAY_WHY_MAX] = "";

    choose_policies(job);
    print_left_out(job);

    size_t most = frames_of(job->data), sessions = job->data->session_count;
    struct lab_replay **worlds = calloc(sessions + 1, sizeof *worlds);
    struct lab_sim_frame *frames = calloc(most, sizeof *frames);
    struct replay_times times = {.ns = malloc(most * sizeof *times.ns)};
    bool good = false;

    if (!worlds || !frames || !times.ns)
        lab_fail("out of memory");
    else if (!replay_all(job, worlds, frames, &times, why, sizeof why))
        lab_fail("%s: %s", options->path, why);
    else
        good = true;
    if (good)
        lab__replay_print(job);

    for (size_t w = 0; worlds && w < sessions; w++)
        lab_replay_destroy(&worlds[w]);
    free(worlds);
    free(frames);
    free(times.ns);
    if (!good)
        return LAB_BAD;

    return LAB_OK;
}
