/* The figures of a report: sums, percentiles and quotients over a policy's frames.
 *
 * Definitions (docs/reference/cox-lab.md): T is the part of a frame's wall time while no earlier
 * frame was under way; with one frame in flight, all of it. The p-th percentile is the least of the
 * times such that p per cent of the frames took no longer. Failed frames are counted, but no other
 * figure includes them.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_POLICY_FIGURES_H
#define COX_EXAMPLES_LAB_REPORT_POLICY_FIGURES_H

#include "series.h"

/* All sessions of a policy together, in one phase or in all. NaN = not known. */
struct report_figures {
    size_t frames; /* that did not fail */
    size_t failed;
    double mean_ns, p50_ns, p99_ns, p999_ns, least_ns, most_ns;
    double over_oracle; /* sum of T / sum of T_oracle: mean against mean */
    double over_best;   /* the same with the best single device of the frame's phase */
    /* Median against median; over all phases the sums of them, each as often as it has frames. */
    double p50_over_oracle, p50_over_best;
    double efficiency; /* likewise: the time of all devices together without loss / T */
    double moves;      /* split changes per 100 frames */
    double settle;     /* frames until T was within 5 % of the oracle's; INFINITY = never; NaN for
                          all phases */
    double joules;     /* a frame */
    double late;       /* share of the frames that took longer than the deadline */
    double per_second; /* frames per second of a stream of these frames */
    double last_to_first;          /* (last - first device done) / last, mean over the frames with
                                      two devices or more */
    double regret_ns;              /* sum of T - T_oracle, per session */
    double share[COX_DEVICES_MAX]; /* of the rows done */
};

enum { REPORT_ALL_PHASES = UINT32_MAX };

/* False if out of memory. */
bool report_figures(const struct report_run *run, uint32_t policy, uint32_t phase,
                    struct report_figures *out);

/* The frames of a policy whose split had one reason. */
struct report_reason_figures {
    size_t frames;
    double predicted_ns; /* means over those of its frames that were predicted */
    double measured_ns;
    double error;       /* mean of |measured - predicted| / predicted */
    double rejected_ns; /* mean over those that have one */
};
void report_reasons(const struct report_run *run, uint32_t policy,
                    struct report_reason_figures out[REPORT_REASONS]);

#endif
