/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"
#include "lab/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Sums --------------------------------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The least of the sorted times such that `percent` of them are no longer. */
static double percentile(const double *sorted, size_t count, unsigned percent)
{
    size_t place = (count * percent + 99) / 100;
    return count ? sorted[place ? place - 1 : 0] : NAN;
}

static bool in_phase(const struct report_frame *frame, uint32_t phase)
{
    return phase == REPORT_ALL_PHASES || frame->phase == phase;
}

/* A quotient of sums over the same frames. One of a policy's frames without its reference makes it unknown, where a
 * part of the frames could not stand for all. */
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
    return quotient.below > 0 && !quotient.unknown ? quotient.above / quotient.below : NAN;
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
    const struct report_phase *phase = frame->phase < run->phase_count ? &run->phases[frame->phase]
                                                                       : NULL;
    add(&sums->mean, frame->time_ns, 1);
    bool means = run->oracle_by_frame || (phase && !isnan(phase->oracle_mean_ns));
    add_all(&sums->over_oracle, frame->time_ns, means ? frame->oracle_ns : NAN);
    add_all(&sums->over_best, frame->time_ns, phase ? phase->best_mean_ns : NAN);
    add(&sums->joules, frame->joules, 1);
    add(&sums->late, frame->late, 1);
    add(&sums->per_second, 1, frame->time_ns / 1e9);
    if (isfinite(frame->oracle_ns)) {
        sums->regret_ns += frame->time_ns - frame->oracle_ns;
        sums->regret_known = true;
    }
    const uint32_t *rows = session->rows + index * run->pass_count * run->device_count;
    for (uint32_t i = 0; i < run->pass_count * run->device_count; i++)
        sums->rows[i % run->device_count] += rows[i];
    add_finish(run, session->finish_ns + index * run->device_count, sums);
}

/* --- Settling ----------------------------------------------------------------------------------------------------- */

/* What the oracle usually takes. */
static double usual_oracle(const struct report_run *run, const struct report_frame *frame)
{
    if (run->oracle_by_frame || frame->phase >= run->phase_count)
        return frame->oracle_ns;
    return run->phases[frame->phase].oracle_ns;
}

struct settling {
    const struct report_run *run;
    const struct report_session *session;
};

static double over_limit(const void *of, size_t index)
{
    const struct settling *settling = of;
    const struct report_run *run = settling->run;
    const struct report_frame *frame = &settling->session->frames[index];
    bool swept = !run->oracle_by_frame && frame->phase < run->phase_count;
    return frame->time_ns / lab_settle_limit(usual_oracle(run, frame),
                                             swept ? run->phases[frame->phase].oracle_p90_ns : NAN);
}

/* NaN where the session has no frame in the phase, or the oracle is not known. */
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
    return after < SIZE_MAX ? (double)after : INFINITY;
}

/* --- Figures ------------------------------------------------------------------------------------------------------ */

static void finish_figures(const struct sums *sums, double *times, size_t sessions,
                           struct report_figures *out)
{
    qsort(times, out->frames, sizeof *times, compare_times);
    out->mean_ns = value_of(sums->mean);
    out->p50_ns = percentile(times, out->frames, 50);
    out->p99_ns = percentile(times, out->frames, 99);
    out->least_ns = out->frames ? times[0] : NAN;
    out->most_ns = out->frames ? times[out->frames - 1] : NAN;
    out->over_oracle = value_of(sums->over_oracle);
    out->over_best = value_of(sums->over_best);
    out->moves = sums->split ? 100.0 * (double)sums->moves / (double)sums->split : NAN;
    out->joules = value_of(sums->joules);
    out->late = value_of(sums->late);
    out->per_second = value_of(sums->per_second);
    out->last_to_first = value_of(sums->last_to_first);
    out->regret_ns = sums->regret_known ? sums->regret_ns / (double)sessions : NAN;
    double rows = 0;
    for (int device = 0; device < COX_DEVICES_MAX; device++)
        rows += sums->rows[device];
    for (int device = 0; device < COX_DEVICES_MAX; device++)
        out->share[device] = rows > 0 ? sums->rows[device] / rows : NAN;
}

/* Median against median. Those of all phases are sums over the phases: there is no median of unlike frames. */
static bool hold_medians(const struct report_run *run, uint32_t policy, uint32_t phase,
                         struct report_figures *out)
{
    struct quotient over_oracle = {0}, over_best = {0}, efficiency = {0};
    uint32_t first = phase == REPORT_ALL_PHASES ? 0 : phase,
             last = phase == REPORT_ALL_PHASES ? run->phase_count : phase + 1;
    for (uint32_t i = first; i < last; i++) {
        struct report_figures part = *out;
        if (phase == REPORT_ALL_PHASES && !report_figures(run, policy, i, &part))
            return false;
        double p50_ns = (double)part.frames * part.p50_ns, frames = (double)part.frames;
        if (!part.frames)
            continue;
        add_all(&over_oracle, p50_ns, frames * run->phases[i].oracle_ns);
        add_all(&over_best, p50_ns, frames * run->phases[i].best_ns);
        add_all(&efficiency, frames * run->phases[i].ideal_ns, p50_ns);
    }
    out->p50_over_oracle = value_of(over_oracle);
    out->p50_over_best = value_of(over_best);
    out->efficiency = value_of(efficiency);
    return true;
}

bool report_figures(const struct report_run *run, uint32_t policy, uint32_t phase,
                    struct report_figures *out)
{
    *out = (struct report_figures){.settle = NAN};
    size_t room = 0, sessions = 0, settles_count = 0;
    for (size_t i = 0; i < run->session_count; i++)
        room += run->sessions[i].policy == policy ? run->sessions[i].frame_count : 0;
    double *times = malloc((room + 1) * sizeof *times), settles[REPORT_SESSIONS_MAX];
    if (!times)
        return false;
    struct sums sums = {0};
    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *session = &run->sessions[i];
        if (session->policy != policy || !session->frame_count)
            continue;
        sessions++;
        for (size_t f = 0; f < session->frame_count; f++) {
            const struct report_frame *frame = &session->frames[f];
            if (!in_phase(frame, phase))
                continue;
            out->failed += frame->failed;
            sums.split++;
            sums.moves += frame->moved;
            if (isnan(frame->time_ns))
                continue;
            times[out->frames++] = frame->time_ns;
            add_frame(run, session, f, &sums);
        }
        double settle = phase == REPORT_ALL_PHASES ? NAN : settle_frames(run, session, phase);
        if (!isnan(settle))
            settles[settles_count++] = settle;
    }
    finish_figures(&sums, times, sessions, out);
    free(times);
    qsort(settles, settles_count, sizeof settles[0], compare_times);
    out->settle = percentile(settles, settles_count, 50);
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
            frames[frame->reason]++;
            add(&alternative[frame->reason], frame->alternative_ns, 1);
            double miss = fabs(frame->time_ns - frame->predicted_ns) / frame->predicted_ns;
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
                                                .alternative_ns = value_of(alternative[i])};
}

/* --- Bins --------------------------------------------------------------------------------------------------------- */

static size_t bin_count(const struct report_run *run, size_t most)
{
    return run->frame_end < (double)most ? (size_t)run->frame_end : most;
}

static size_t bin_of(const struct report_run *run, double frame, size_t bins)
{
    size_t bin = (size_t)(frame * (double)bins / run->frame_end);
    return bin < bins ? bin : bins - 1;
}

void report_bin_put(struct report_bin *bin, double value)
{
    if (isnan(value))
        return;
    bin->least = bin->count ? fmin(bin->least, value) : value;
    bin->most = bin->count ? fmax(bin->most, value) : value;
    bin->mean += value;
    bin->count++;
}

void report_bins_finish(struct report_bin *bins, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bins[i].count)
            bins[i].mean /= (double)bins[i].count;
}

static void put_frame(const struct report_run *run, const struct report_session *session,
                      size_t index, struct report_series *out)
{
    const struct report_frame *frame = &session->frames[index];
    size_t bin = bin_of(run, frame->frame, out->bins);
    report_bin_put(&out->time_ns[bin], frame->time_ns);
    report_bin_put(&out->oracle_ns[bin], usual_oracle(run, frame));
    report_bin_put(&out->error[bin], frame->time_ns / frame->predicted_ns);
    out->reasons[bin * REPORT_REASONS + frame->reason] += 1;
    double last_ns[COX_DEVICES_MAX] = {0}; /* of each group */
    for (uint32_t device = 0; device < run->device_count; device++) {
        size_t from = index * run->device_count + device;
        uint32_t group = run->devices[device].group;
        for (uint32_t pass = 0; pass < run->pass_count; pass++)
            out->share[(pass * out->bins + bin) * run->group_count + group] +=
                session->rows[(index * run->pass_count + pass) * run->device_count + device];
        last_ns[group] = fmax(last_ns[group], (double)session->finish_ns[from]);
    }
    for (uint32_t group = 0; group < run->group_count; group++)
        if (last_ns[group] > 0)
            report_bin_put(&out->finish_ns[bin * run->group_count + group], last_ns[group]);
}

/* Make the numbers of each bin sum to 1, where there are any. */
static void normalise(double *values, size_t bins, size_t each)
{
    for (size_t bin = 0; bin < bins; bin++) {
        double sum = 0;
        for (size_t i = 0; i < each; i++)
            sum += values[bin * each + i];
        for (size_t i = 0; sum > 0 && i < each; i++)
            values[bin * each + i] /= sum;
    }
}

bool report_series(const struct report_run *run, const struct report_session *session, size_t bins,
                   struct report_series *out)
{
    *out = (struct report_series){.bins = bin_count(run, bins),
                                  .group_count = run->group_count,
                                  .pass_count = run->pass_count};
    bins = out->bins;
    size_t cells = bins * run->group_count, structs = 3 * bins + cells,
           shares = cells * run->pass_count, doubles = shares + bins * REPORT_REASONS;
    out->memory = calloc(structs * sizeof(struct report_bin) + doubles * sizeof(double) + 1, 1);
    if (!out->memory)
        return false;
    out->frames_a_bin = bins ? run->frame_end / (double)bins : 1;
    out->time_ns = out->memory;
    out->oracle_ns = out->time_ns + bins;
    out->error = out->oracle_ns + bins;
    out->finish_ns = out->error + bins;
    out->share = (double *)(void *)(out->finish_ns + cells);
    out->reasons = out->share + shares;
    for (size_t i = 0; i < session->frame_count; i++)
        put_frame(run, session, i, out);
    report_bins_finish(out->time_ns, structs);
    normalise(out->share, bins * run->pass_count, run->group_count);
    normalise(out->reasons, bins, REPORT_REASONS);
    return true;
}

void report_series_free(struct report_series *series)
{
    free(series->memory);
    *series = (struct report_series){0};
}

size_t report_bin_values(const struct report_run *run, const struct report_session *session,
                         const float *values, size_t stride, size_t bins, struct report_bin *out)
{
    bins = bin_count(run, bins);
    memset(out, 0, bins * sizeof *out);
    for (size_t i = 0; bins && i < session->frame_count; i++)
        report_bin_put(&out[bin_of(run, session->frames[i].frame, bins)],
                       (double)values[i * stride]);
    report_bins_finish(out, bins);
    return bins;
}

size_t report_regret(const struct report_run *run, uint32_t policy, size_t bins, double *out)
{
    bins = bin_count(run, bins);
    double first = INFINITY, last = -1, sum = 0;
    size_t sessions = 0;
    for (size_t i = 0; i < bins; i++)
        out[i] = 0;
    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *session = &run->sessions[i];
        if (session->policy != policy || !session->frame_count)
            continue;
        sessions++;
        for (size_t f = 0; f < session->frame_count; f++) {
            const struct report_frame *frame = &session->frames[f];
            double regret = frame->time_ns - frame->oracle_ns;
            if (isnan(regret))
                continue;
            out[bin_of(run, frame->frame, bins)] += regret;
            first = fmin(first, frame->frame);
            last = fmax(last, frame->frame);
        }
    }
    if (last < 0)
        return 0;
    for (size_t i = 0; i < bins; i++) {
        sum += out[i] / (double)sessions;
        out[i] = i < bin_of(run, first, bins) || i > bin_of(run, last, bins) ? NAN : sum;
    }
    return bins;
}

size_t report_histogram(const struct report_run *run, uint32_t policy, double low, double step,
                        size_t count, size_t *out)
{
    size_t beyond = 0;
    for (size_t i = 0; i < count; i++)
        out[i] = 0;
    for (size_t i = 0; i < run->session_count; i++) {
        const struct report_session *session = &run->sessions[i];
        for (size_t f = 0; session->policy == policy && f < session->frame_count; f++) {
            double place = (session->frames[f].time_ns - low) / step;
            if (place >= 0 && place < (double)count)
                out[(size_t)place]++;
            else if (!isnan(place))
                beyond++;
        }
    }
    return beyond;
}
