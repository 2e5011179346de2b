/* The figures of a report: what the frames of a policy come to, and the same frames gathered into as many bins as a
 * chart has room for.
 *
 * Definitions (docs/guide/cox-lab.md): T is the part of a frame's wall time in which no earlier
 * frame was under way: all of it, with one in flight. The p-th percentile is the least of the times such that p per
 * cent of the frames took no longer. Failed frames are counted and otherwise left out.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_FIGURES_H
#define COX_EXAMPLES_LAB_REPORT_FIGURES_H

#include "data.h"

/* All sessions of a policy together, in one phase or in all. NaN = not known. */
struct report_figures {
    size_t frames; /* that count */
    size_t failed;
    double mean_ns, p50_ns, p99_ns, least_ns, most_ns;
    double over_oracle; /* sum of T / sum of T_oracle: mean against mean */
    double over_best;   /* the same with the best single device of the frame's phase */
    double
        p50_over_oracle; /* median against median; over all phases the sums of them, each as often as it has frames */
    double p50_over_best;
    double efficiency; /* likewise, what all devices would take together without loss / T */
    double moves;      /* split changes per 100 frames */
    double
        settle; /* frames until T was within 5 % of the oracle's; INFINITY = never; of a single phase only */
    double joules;     /* a frame */
    double late;       /* share of the frames that took longer than the deadline */
    double per_second; /* frames per second of a stream of such frames */
    double
        last_to_first; /* (last - first device done) / last, mean over the frames with two devices or more */
    double regret_ns;              /* sum of T - T_oracle, per session */
    double share[COX_DEVICES_MAX]; /* of the rows done */
};

enum { REPORT_ALL_PHASES = UINT32_MAX };

/* False if out of memory. */
bool report_figures(const struct report_run *run, uint32_t policy, uint32_t phase,
                    struct report_figures *out);

/* What a reason came to in one policy's sessions. */
struct report_reason_figures {
    size_t frames;
    double predicted_ns; /* means over those of its frames that were predicted */
    double measured_ns;
    double error;          /* mean of |measured - predicted| / predicted */
    double alternative_ns; /* mean over those that have one */
};
void report_reasons(const struct report_run *run, uint32_t policy,
                    struct report_reason_figures out[REPORT_REASONS]);

/* Count a value, unless it is NaN: until report_bins_finish `mean` is the sum. An empty bin is all zeros. */
void report_bin_put(struct report_bin *bin, double value);
void report_bins_finish(struct report_bin *bins, size_t count);

/* A number of each of the session's frames, `stride` apart, NaN = none, in at most `bins` bins. Returns how many. */
size_t report_bin_values(const struct report_run *run, const struct report_session *session,
                         const float *values, size_t stride, size_t bins, struct report_bin *out);

/* The frames of a session, binned. */
struct report_series {
    size_t bins;
    double frames_a_bin;
    uint32_t group_count;         /* of devices */
    struct report_bin *time_ns;   /* of each bin */
    struct report_bin *oracle_ns; /* its median in the phase, where its frames are not known */
    struct report_bin *error;     /* measured / predicted */
    struct report_bin *finish_ns; /* bins times group_count */
    uint32_t pass_count;
    double *share;   /* passes times bins times group_count: of the pass's rows */
    double *reasons; /* bins times REPORT_REASONS: share of the frames */
    void *memory;
};

/* At most `bins` of them. False if out of memory. */
bool report_series(const struct report_run *run, const struct report_session *session, size_t bins,
                   struct report_series *out);
void report_series_free(struct report_series *series);

/* Regret up to the end of each bin, mean over the policy's sessions; NaN before the first frame and after the last.
 * Returns the number of bins, at most `bins`; 0 if no oracle is known or memory is out. */
size_t report_regret(const struct report_run *run, uint32_t policy, size_t bins, double *out);

/* Frames of the policy's sessions whose time is in [low + i step, low + (i + 1) step), for i < count; the frames beyond
 * are returned. */
size_t report_histogram(const struct report_run *run, uint32_t policy, double low, double step,
                        size_t count, size_t *out);

#endif
