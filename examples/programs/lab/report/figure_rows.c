/* SPDX-License-Identifier: Apache-2.0 */
#include "figure_rows.h"
#include "certainty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_whole(struct lab_rows *rows, const char *key, double value)
{
    if (value >= 0 && value < 1e15)
        lab_rows_count(rows, key, (uint64_t)value);
    else
        lab_rows_unknown(rows, key);
}

static void put_interval(struct lab_rows *rows, const char *low, const char *high,
                         const struct lab_interval *interval, double scale)
{
    lab_rows_number(rows, low, interval->low / scale);
    lab_rows_number(rows, high, interval->high / scale);
}

static void put_pair(struct lab_rows *rows, const struct lab_pair *pair)
{
    lab_rows_number(rows, "mean_over_first", pair->mean);
    put_interval(rows, "mean_over_first_low", "mean_over_first_high", &pair->mean_interval, 1);
    lab_rows_number(rows, "p99_over_first", pair->p99);
    put_interval(rows, "p99_over_first_low", "p99_over_first_high", &pair->p99_interval, 1);
}

static void put_figures(struct lab_rows *rows, const struct report_figures *figures,
                        const struct report_certainty *sure)
{
    lab_rows_count(rows, "frames", figures->frames);
    lab_rows_count(rows, "failed", figures->failed);
    lab_rows_number(rows, "mean_us", figures->mean_ns / 1e3);
    put_interval(rows, "mean_us_low", "mean_us_high", &sure->of.mean, 1e3);
    lab_rows_number(rows, "p50_us", figures->p50_ns / 1e3);
    put_interval(rows, "p50_us_low", "p50_us_high", &sure->of.p50, 1e3);
    lab_rows_number(rows, "p99_us", figures->p99_ns / 1e3);
    put_interval(rows, "p99_us_low", "p99_us_high", &sure->of.p99, 1e3);
    lab_rows_number(rows, "p99_9_us", figures->p999_ns / 1e3);
    put_interval(rows, "p99_9_us_low", "p99_9_us_high", &sure->of.p999, 1e3);
    put_pair(rows, &sure->over_first);
    lab_rows_number(rows, "mean_over_oracle", figures->over_oracle);
    lab_rows_number(rows, "p50_over_oracle", figures->p50_over_oracle);
    lab_rows_number(rows, "mean_over_single", figures->over_best);
    lab_rows_number(rows, "p50_over_single", figures->p50_over_best);
    lab_rows_number(rows, "efficiency", figures->efficiency);
    lab_rows_number(rows, "split_changes", figures->moves);
    put_whole(rows, "settled", figures->settle);
    lab_rows_number(rows, "joules", figures->joules);
    lab_rows_number(rows, "over_deadline", figures->late);
    lab_rows_number(rows, "finish_spread", figures->last_to_first);
    lab_rows_number(rows, "frames_per_second", figures->per_second);
}

/* False if out of memory. */
static bool put_row(struct lab_rows *rows, const struct report_run *run, uint32_t policy,
                    uint32_t phase)
{
    const char *name = run->policies[policy];
    struct report_figures figures;
    struct report_certainty sure;

    if (!report_figures(run, policy, phase, &figures) ||
        !report_certainty(run, policy, phase, &sure))
        return false;

    lab_rows_open(rows);
    put_whole(rows, "run", (double)run->number);
    lab_rows_text(rows, "source", run->source);
    lab_rows_text(rows, "kernel", run->kernel);
    put_whole(rows, "columns", run->columns);
    put_whole(rows, "rows", run->rows);
    put_whole(rows, "ratio", run->ratio ? strtod(run->ratio, NULL) : NAN);
    lab_rows_text(rows, "reserve", run->reserve);
    if (phase == REPORT_ALL_PHASES) {
        lab_rows_unknown(rows, "phase");
        lab_rows_unknown(rows, "phase_text");
    } else {
        put_whole(rows, "phase", (double)run->phases[phase].number);
        lab_rows_text(rows, "phase_text", run->phases[phase].text);
    }

    lab_rows_text(rows, "kind", strcmp(name, "oracle") == 0 ? "oracle" : "policy");
    lab_rows_text(rows, "policy", name);
    put_figures(rows, &figures, &sure);
    lab_rows_number(rows, "foreign_load", run->foreign_load);
    lab_rows_close(rows);
    return true;
}

bool report_rows(const struct report_source *source, struct lab_rows *rows)
{
    for (size_t i = 0; i < source->run_count; i++) {
        const struct report_run *run = &source->runs[i];

        for (uint32_t policy = 0; policy < run->policy_count; policy++) {
            if (!put_row(rows, run, policy, REPORT_ALL_PHASES))
                return false;
            for (uint32_t phase = 0; phase < run->phase_count; phase++)
                if (!put_row(rows, run, policy, phase))
                    return false;
        }
    }
    return true;
}
