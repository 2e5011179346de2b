/* SPDX-License-Identifier: Apache-2.0 */
#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double report_usual_oracle(const struct report_run *run, const struct report_frame *frame)
{
    if (run->oracle_by_frame || frame->phase >= run->phase_count)
        return frame->oracle_ns;
    return run->phases[frame->phase].oracle_ns;
}

static size_t bin_count(const struct report_run *run, size_t most)
{
    return (size_t)fmin(run->frame_end, (double)most);
}

static size_t bin_of(const struct report_run *run, double frame, size_t bins)
{
    size_t bin = (size_t)(frame * (double)bins / run->frame_end);

    if (bin >= bins)
        return bins - 1;
    return bin;
}

void report_bin_put(struct report_bin *bin, double value)
{
    if (isnan(value))
        return;

    if (!bin->count)
        bin->least = bin->most = value;
    bin->least = fmin(bin->least, value);
    bin->most = fmax(bin->most, value);
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
    double last_ns[COX_DEVICES_MAX] = {0}; /* of each group */

    report_bin_put(&out->time_ns[bin], frame->time_ns);
    report_bin_put(&out->oracle_ns[bin], report_usual_oracle(run, frame));
    report_bin_put(&out->error[bin], frame->time_ns / frame->predicted_ns);
    out->reasons[bin * REPORT_REASONS + frame->reason] += 1;

    for (uint32_t device = 0; device < run->device_count; device++) {
        double finish_ns = (double)session->finish_ns[index * run->device_count + device];
        uint32_t group = run->devices[device].group;

        for (uint32_t pass = 0; pass < run->pass_count; pass++)
            out->share[(pass * out->bins + bin) * run->group_count + group] +=
                session->rows[(index * run->pass_count + pass) * run->device_count + device];
        last_ns[group] = fmax(last_ns[group], finish_ns);
    }

    for (uint32_t group = 0; group < run->group_count; group++)
        if (last_ns[group] > 0)
            report_bin_put(&out->finish_ns[bin * run->group_count + group], last_ns[group]);
}

/* Scale the numbers of each bin so that they sum to 1; empty bins stay zero. */
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

    size_t cells = bins * run->group_count, structs = 3 * bins + cells;
    size_t shares = cells * run->pass_count, doubles = shares + bins * REPORT_REASONS;
    out->memory = calloc(structs * sizeof(struct report_bin) + doubles * sizeof(double) + 1, 1);
    if (!out->memory)
        return false;

    out->frames_a_bin = 1;
    if (bins)
        out->frames_a_bin = run->frame_end / (double)bins;
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
    double first = INFINITY, last = -1, sum = 0;
    size_t sessions = 0;

    bins = bin_count(run, bins);
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

    size_t first_bin = bin_of(run, first, bins), last_bin = bin_of(run, last, bins);
    for (size_t i = 0; i < bins; i++) {
        sum += out[i] / (double)sessions;
        out[i] = sum;
        if (i < first_bin || i > last_bin)
            out[i] = NAN;
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
