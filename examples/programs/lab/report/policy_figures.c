/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_figures.h"
#include "common/quantiles.h"
#include "lab/settle.h"

#include <math.h>
#include <stdlib.h>

/* --- Sums ------------------------------------------------------------------------------------- */

/* Sorts. The least of the times such that `percent` of them are no longer; NaN for no times. */
static double percentile(double *times, size_t count, unsigned percent)
{
    if (!count)
        return NAN;
    return percentile_of(times, count, percent);
}

static bool in_phase(const struct report_frame *frame, uint32_t phase)
{
    return phase == REPORT_ALL_PHASES || frame->phase == phase;
}

/* A quotient of sums over the same frames. It is unknown if one frame has no reference and the
 * other frames could not represent it. */
struct quotient {
    double above, below;
    bool unknown;
};

static void add(struct quotient *quotient, double above, double below)
{
    if (isfinite(above) && isfinite(below)) {
        quotient->above += above;
        quotient->below += below;
    }
}

static void add_all(struct quotient *quotient, double above, double below)
{
    quotient->unknown |= !isfinite(above) || !isfinite(below);
    add(quotient, above, below);
}

static double value_of(struct quotient quotient)
{
    if (quotient.unknown || !(quotient.below > 0))
        return NAN;
    return quotient.above / quotient.below;
}

struct sums {
    struct quotient mean, over_oracle, over_best, joules, late, per_second, last_to_first;
    double regret_ns;
    bool regret_known;
    size_t moves, split;
    double rows[COX_DEVICES_MAX];
};

static void add_finish(const struct report_run *run, const float *finish_ns, struct sums *sums)
{
    double first = INFINITY, last = 0;
    unsigned devices = 0;

    for (uint32_t device = 0; device < run->device_count; device++)
        if (finish_ns[device] > 0) {
            first = fmin(first, (double)finish_ns[device]);
            last = fmax(last, (double)finish_ns[device]);
            devices++;
        }

    if (devices > 1)
        add(&sums->last_to_first, (last - first) / last, 1);
}

static void add_frame(const struct report_run *run, const struct report_session *session,
                      size_t index, struct sums *sums)
{
    const struct report_frame *frame = &session->frames[index];
    const uint32_t cells = run->pass_count * run->device_count;
    const uint32_t *rows = session->rows + (size_t)index * cells;
    double oracle_ns = NAN, best_ns = NAN; /* means only */

    if (run->oracle_by_frame)
        oracle_ns = frame->oracle_ns;
    if (frame->phase < run->phase_count) {
        const struct report_phase *phase = &run->phases[frame->phase];
        best_ns = phase->best_mean_ns;
        if (!isnan(phase->oracle_mean_ns))
            oracle_ns = frame->oracle_ns;
    }

    add(&sums->mean, frame->time_ns, 1);
    add_all(&sums->over_oracle, frame->time_ns, oracle_ns);
    add_all(&sums->over_best, frame->time_ns, best_ns);
    add(&sums->joules, frame->joules, 1);
    add(&sums->late, frame->late, 1);
    add(&sums->per_second, 1, frame->time_ns / 1e9);
    if (isfinite(frame->oracle_ns)) {
        sums->regret_ns += frame->time_ns - frame->oracle_ns;
        sums->regret_known = true;
    }

    for (uint32_t i = 0; i < cells; i++)
        sums->rows[i % run->device_count] += rows[i];
    add_finish(run, session->finish_ns + index * run->device_count, sums);
}

/* --- Settling --------------------------------------------------------------------------------- */

struct settling {
    const struct report_run *run;
    const struct report_session *session;
};

static double over_limit(const void *of, size_t index)
{
    const struct settling *settling = of;
    const struct report_run *run = settling->run;
    const struct report_frame *frame = &settling->session->frames[index];
    double p90_ns = NAN;

    if (!run->oracle_by_frame && frame->phase < run->phase_count)
        p90_ns = run->phases[frame->phase].oracle_p90_ns;
    return frame->time_ns / lab_settle_limit(report_usual_oracle(run, frame), p90_ns);
}

/* NaN if the session has no frame in the phase, or the oracle is not known. */
static double settle_frames(const struct report_run *run, const struct report_session *session,
                            uint32_t phase)
{
    size_t first = 0, end;

    while (first < session->frame_count && session->frames[first].phase != phase)
        first++;
    for (end = first; end < session->frame_count && session->frames[end].phase == phase; end++)
        ;
    if (first == end || isnan(session->frames[first].oracle_ns))
        return NAN;

    size_t after = lab_settle(over_limit, &(const struct settling){run, session}, first, end);
    if (after == SIZE_MAX)
        return INFINITY;
    return (double)after;
}

/* --- Figures ---------------------------------------------------------------------------------- */

static void finish_figures(const struct sums *sums, double *times, size_t sessions,
                           struct report_figures *out)
{
    double rows = 0;

    out->mean_ns = value_of(sums->mean);
    out->p50_ns = percentile(times, out->frames, 50);
    out->p99_ns = percentile(times, out->frames, 99);
    out->p999_ns = NAN;
    if (out->frames)
        out->p999_ns = per_mille_of(times, out->frames, 999);
    out->least_ns = percentile(times, out->frames, 0);
    out->most_ns = percentile(times, out->frames, 100);
    out->over_oracle = value_of(sums->over_oracle);
    out->over_best = value_of(sums->over_best);
    out->joules = value_of(sums->joules);
    out->late = value_of(sums->late);
    out->per_second = value_of(sums->per_second);
    out->last_to_first = value_of(sums->last_to_first);

    out->moves = out->regret_ns = NAN;
    if (sums->split)
        out->moves = 100.0 * (double)sums->moves / (double)sums->split;
    if (sums->regret_known)
        out->regret_ns = sums->regret_ns / (double)sessions;

    for (int device = 0; device < COX_DEVICES_MAX; device++)
        rows += sums->rows[device];
    for (int device = 0; device < COX_DEVICES_MAX; device++) {
        out->share[device] = NAN;
        if (rows > 0)
            out->share[device] = sums->rows[device] / rows;
    }
}

/* Median against median. Those of all phases are sums over the phases: there is no median of unlike
 * frames. */
static bool hold_medians(const struct report_run *run, uint32_t policy, uint32_t phase,
                         struct report_figures *out)
{
    struct quotient over_oracle = {0}, over_best = {0}, efficiency = {0};
    const bool all = phase == REPORT_ALL_PHASES;
    uint32_t first = phase, last = phase + 1;

    if (all) {
        first = 0;
        last = run->phase_count;
    }
    for (uint32_t i = first; i < last; i++) {
        struct report_figures part = *out;

        if (all && !report_figures(run, policy, i, &part))
            return false;
        if (!part.frames)
            continue;

        double frames = (double)part.frames, p50_ns = frames * part.p50_ns;
        add_all(&over_oracle, p50_ns, frames * run->phases[i].oracle_ns);
        add_all(&over_best, p50_ns, frames * run->phases[i].best_ns);
        add_all(&efficiency, frames * run->phases[i].ideal_ns, p50_ns);
    }

    out->p50_over_oracle = value_of(over_oracle);
    out->p50_over_best = value_of(over_best);
    out->efficiency = value_of(efficiency);
    return true;
}

/* The frames of a session in a phase: their times behind those that `times` has, and their sums. */
static void add_session(const struct report_run *run, const struct report_session *session,
                        uint32_t phase, double *times, struct sums *sums,
                        struct report_figures *out)
{
    for (size_t f = 0; f < session->frame_count; f++) {
        const struct report_frame *frame = &session->frames[f];
        if (!in_phase(frame, phase))
            continue;

        out->failed += frame->failed;
        sums->split++;
        sums->moves += frame->moved;
        if (isnan(frame->time_ns))
            continue;

        times[out->frames++] = frame->time_ns;
        add_frame(run, session, f, sums);
    }
}

bool report_figures(const struct report_run *run, uint32_t policy, uint32_t phase,
                    struct report_figures *out)
{
    size_t room = 1, sessions = 0, settled = 0;
    double settles[REPORT_SESSIONS_MAX];
    struct sums sums = {0};

    *out = (struct report_figures){.settle = NAN};
    for (size_t i = 0; i < run->session_count; i++)
        if (run->sessions[i].policy == policy)
            room += run->sessions[i].frame_count;
    double *times = malloc(room * sizeof *times);
    if (!times)
        return false;

    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *session = &run->sessions[i];
        if (session->policy != policy || !session->frame_count)
            continue;

        sessions++;
        add_session(run, session, phase, times, &sums, out);
        if (phase == REPORT_ALL_PHASES)
            continue;

        settles[settled] = settle_frames(run, session, phase);
        settled += !isnan(settles[settled]);
    }
    finish_figures(&sums, times, sessions, out);
    out->settle = percentile(settles, settled, 50);

    free(times);
    return hold_medians(run, policy, phase, out);
}

void report_reasons(const struct report_run *run, uint32_t policy,
                    struct report_reason_figures out[REPORT_REASONS])
{
    struct quotient predicted[REPORT_REASONS] = {{0}}, measured[REPORT_REASONS] = {{0}};
    struct quotient error[REPORT_REASONS] = {{0}}, alternative[REPORT_REASONS] = {{0}};
    size_t frames[REPORT_REASONS] = {0};

    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *session = &run->sessions[i];
        for (size_t f = 0; session->policy == policy && f < session->frame_count; f++) {
            const struct report_frame *frame = &session->frames[f];
            double miss = fabs(frame->time_ns - frame->predicted_ns) / frame->predicted_ns;

            frames[frame->reason]++;
            add(&alternative[frame->reason], frame->rejected_ns, 1);
            if (isnan(miss))
                continue;

            add(&predicted[frame->reason], frame->predicted_ns, 1);
            add(&measured[frame->reason], frame->time_ns, 1);
            add(&error[frame->reason], miss, 1);
        }
    }

    for (int i = 0; i < REPORT_REASONS; i++)
        out[i] = (struct report_reason_figures){.frames = frames[i],
                                                .predicted_ns = value_of(predicted[i]),
                                                .measured_ns = value_of(measured[i]),
                                                .error = value_of(error[i]),
                                                .rejected_ns = value_of(alternative[i])};
}
