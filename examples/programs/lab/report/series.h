/* The frames of a session, gathered into as many bins as a chart has room for.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_SERIES_H
#define COX_EXAMPLES_LAB_REPORT_SERIES_H

#include "runs.h"

/* The oracle's own time for the frame if it was recorded, else its median in the frame's phase. */
double report_usual_oracle(const struct report_run *run, const struct report_frame *frame);

/* Count a value, unless it is NaN. `mean` is the sum until report_bins_finish. An empty bin is all
 * zeros. */
void report_bin_put(struct report_bin *bin, double value);
void report_bins_finish(struct report_bin *bins, size_t count);

/* A number of each of the session's frames, `stride` apart, NaN = none, in at most `bins` bins.
 * Returns how many. */
size_t report_bin_values(const struct report_run *run, const struct report_session *session,
                         const float *values, size_t stride, size_t bins, struct report_bin *out);

struct report_series {
    size_t bins;
    double frames_a_bin;
    uint32_t group_count;         /* of devices */
    struct report_bin *time_ns;   /* of each bin */
    struct report_bin *oracle_ns; /* report_usual_oracle */
    struct report_bin *error;     /* measured / predicted */
    struct report_bin *finish_ns; /* bins times group_count */
    uint32_t pass_count;
    double *share;   /* passes times bins times group_count: of the pass's rows */
    double *reasons; /* bins times REPORT_REASONS: share of the frames */
    void *memory;
};

/* In at most `bins` bins. False if out of memory. */
bool report_series(const struct report_run *run, const struct report_session *session, size_t bins,
                   struct report_series *out);
void report_series_free(struct report_series *series);

/* Regret up to the end of each bin, mean over the policy's sessions; NaN before the first frame and
 * after the last. Returns the number of bins, at most `bins`; 0 if no oracle is known. */
size_t report_regret(const struct report_run *run, uint32_t policy, size_t bins, double *out);

/* Frames of the policy's sessions with a time in [low + i step, low + (i + 1) step), for i < count.
 * Returns the number of frames outside of all these. */
size_t report_histogram(const struct report_run *run, uint32_t policy, double low, double step,
                        size_t count, size_t *out);

#endif
