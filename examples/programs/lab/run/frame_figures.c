/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_figures.h"
#include "common/quantiles.h"
#include "lab/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double lab_run_bar_oracle = 1.03, lab_run_bar_single = 1.01;
const uint32_t lab_run_bar_settled = 3;

bool lab_run_reference_of(const struct lab_sweep *sweep, struct lab_run_reference *out)
{
    *out = (struct lab_run_reference){.device_count = sweep->device_count};

    if (!lab_sweep_oracle(sweep, &out->oracle))
        return false;

    memcpy(out->oracle_rows, sweep->candidates[out->oracle.candidate].rows,
           sizeof out->oracle_rows);
    for (uint32_t d = 0; d < sweep->device_count; d++) {
        out->solo[d] = lab_spread_of(sweep->candidates[d].ns, sweep->candidates[d].count);

        const struct lab_spread *best = &out->solo[out->best_solo];
        if (out->solo[d].count && (!best->count || out->solo[d].p50_ns < best->p50_ns))
            out->best_solo = d;
    }
    return true;
}

static bool is_measured(const struct lab_run_frame *frame)
{
    return !frame->failed && !frame->disturbed;
}

struct frames_over {
    const struct lab_run_frame *frames;
    double limit;
};

static double over_limit(const void *of, size_t index)
{
    const struct frames_over *over = of;
    const struct lab_run_frame *frame = &over->frames[index];

    return is_measured(frame) ? frame->ns / over->limit : NAN;
}

uint32_t lab_run_settled(const struct lab_run_frame *frames, uint64_t first, uint64_t end,
                         const struct lab_spread *oracle)
{
    struct frames_over over = {frames, lab_settle_limit(oracle->p50_ns, oracle->p90_ns)};
    size_t after = lab_settle(over_limit, &over, (size_t)first, (size_t)end);

    return (uint32_t)fmin((double)after, LAB_RUN_NEVER);
}

static double ratio(double value, double of)
{
    return of > 0 ? value / of : 0;
}

/* The least mean of a device alone; 0 = unknown. */
static double best_mean(const struct lab_run_reference *reference)
{
    double best = 0;

    for (uint32_t d = 0; d < reference->device_count; d++)
        if (reference->solo[d].count && (best <= 0 || reference->solo[d].mean_ns < best))
            best = reference->solo[d].mean_ns;
    return best;
}

/* Each quantile is the time of a frame, as in the database's summary and the report. */
static struct lab_spread spread_of(double *ns, size_t count)
{
    struct lab_spread spread = {.count = count,
                                .p50_ns = percentile_of(ns, count, 50),
                                .p90_ns = percentile_of(ns, count, 90),
                                .p99_ns = percentile_of(ns, count, 99),
                                .p999_ns = per_mille_of(ns, count, 999)};

    for (size_t i = 0; i < count; i++)
        spread.mean_ns += ns[i] / (double)count;
    return spread;
}

static void compare(const struct lab_run_reference *reference, struct lab_run_figures *out)
{
    const struct lab_spread *single = &reference->solo[reference->best_solo];
    double rate = 0;

    for (uint32_t d = 0; d < reference->device_count; d++)
        rate += ratio(1, reference->solo[d].p50_ns);

    out->over_oracle = ratio(out->spread.p50_ns, reference->oracle.spread.p50_ns);
    out->over_single = ratio(out->spread.p50_ns, single->p50_ns);
    out->mean_over_oracle = ratio(out->spread.mean_ns, reference->oracle.spread.mean_ns);
    out->mean_over_single = ratio(out->spread.mean_ns, best_mean(reference));
    out->efficiency = ratio(1, out->spread.p50_ns * rate);
}

/* The median of the repeats, by the nearest rank. */
static bool settle(const struct lab_run_frame *frames, const struct lab_run_range *range,
                   const struct lab_spread *oracle, uint32_t *settled)
{
    double *each = malloc(range->repeats * sizeof *each);

    if (!each)
        return false;

    for (uint32_t r = 0; r < range->repeats; r++)
        each[r] = lab_run_settled(frames + r * range->stride, range->first, range->end, oracle);

    *settled = (uint32_t)percentile_of(each, range->repeats, 50);
    free(each);
    return true;
}

bool lab_run_figures_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                        const struct lab_run_reference *reference, struct lab_run_figures *out)
{
    *out = (struct lab_run_figures){.joules = -1, .settled = LAB_RUN_NEVER};

    if (range->end <= range->first)
        return true;

    const uint64_t count = (range->end - range->first) * range->repeats;
    double *ns = malloc((size_t)count * sizeof *ns),
           *latency_ns = malloc((size_t)count * sizeof *ns), joules = 0;
    uint64_t metered = 0, changed = 0, late = 0;

    if (!ns || !latency_ns) {
        free(ns);
        free(latency_ns);
        return false;
    }

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t repeat = i / (range->end - range->first),
                       f = range->first + i % (range->end - range->first);
        const struct lab_run_frame *frame = &frames[repeat * range->stride + f];

        changed += f > 0 && frame->split != frame[-1].split;
        out->failed += frame->failed;
        out->disturbed += frame->disturbed && !frame->failed;
        if (!is_measured(frame))
            continue;
        late += frame->late;
        latency_ns[out->frames] = frame->latency_ns;
        ns[out->frames++] = frame->ns;
        if (frame->joules >= 0) {
            joules += frame->joules;
            metered++;
        }
    }

    out->spread = spread_of(ns, (size_t)out->frames);
    out->latency = spread_of(latency_ns, (size_t)out->frames);
    out->late = ratio((double)late, (double)out->frames);
    free(ns);
    free(latency_ns);

    if (metered)
        out->joules = joules / (double)metered;
    out->changes = 100.0 * (double)changed / (double)count;

    if (out->frames)
        compare(reference, out);
    return settle(frames, range, &reference->oracle.spread, &out->settled);
}

void lab_run_blocks_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                       uint32_t block, struct lab_blocks *out)
{
    for (uint32_t r = 0; r < range->repeats; r++)

        for (uint64_t f = range->first; f < range->end; f++) {
            const struct lab_run_frame *frame = &frames[r * range->stride + f];

            if (is_measured(frame))
                lab_blocks_add(out, frame->ns, r * range->stride + (f - range->first) / block);
        }
}

void lab_run_blocks_of_turns(const struct lab_candidate *candidate, uint32_t turn,
                             struct lab_blocks *out)
{
    for (size_t i = 0; i < candidate->count; i++)
        lab_blocks_add(out, candidate->ns[i], i / turn);
}

struct lab_run_verdict lab_run_judge(const struct lab_run_figures *figures,
                                     const struct lab_run_reference *references,
                                     const struct lab_phase *phases, uint32_t phase_count)
{
    struct lab_run_verdict verdict = {.over_oracle = 0};
    double time = 0, single = 0;

    for (uint32_t p = 0; p < phase_count; p++) {
        const struct lab_run_reference *reference = &references[p];
        double frames = (double)(phases[p].end_frame - phases[p].first_frame);

        time += frames * figures[p].spread.mean_ns;
        single += frames * best_mean(reference);

        verdict.over_oracle = fmax(verdict.over_oracle, figures[p].over_oracle);
        if (p > 0 && figures[p].settled > verdict.settled)
            verdict.settled = figures[p].settled;
        if (figures[p].frames == 0)
            verdict.over_oracle = 1e9; /* a phase without frames meets no bar */
    }

    verdict.over_single = ratio(time, single);
    verdict.met = verdict.over_oracle <= lab_run_bar_oracle &&
                  verdict.over_single <= lab_run_bar_single &&
                  verdict.settled <= lab_run_bar_settled;

    return verdict;
}
