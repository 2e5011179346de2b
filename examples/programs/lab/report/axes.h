/* What the charts of a report share: the axis of frames, the phases, lines over bins.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_PROGRAMS_LAB_REPORT_AXES_H
#define COX_PROGRAMS_LAB_REPORT_AXES_H

#include "common/svg.h"
#include "figures.h"

/* A chart of one run. */
struct paper {
    struct svg svg;
    const struct report_run *run;
    size_t bins; /* most points of a line */
};

struct paper paper_of(struct html *out, const struct report_run *run, bool narrow,
                      double label_width);

/* The numbers of the frames, below. */
void axes_frame_axis(const struct paper *paper, double y);

/* The phases: shaded where something disturbs, named above. */
void axes_phases(const struct paper *paper, double name_y, double top, double bottom);

/* The line over the means of the bins, `stride` apart; it breaks where a bin is empty. */
void axes_mean_line(const struct paper *paper, const char *class, const struct report_bin *bins,
                    size_t count, size_t stride, const struct scale *scale);

/* From the least to the most of each bin. */
void axes_range(const struct paper *paper, const char *class, const struct report_bin *bins,
                size_t count, const struct scale *scale);

#endif
