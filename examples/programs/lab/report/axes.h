/* Shared by the charts of a report: the axis of frames, the phases, lines over bins, labels.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_PROGRAMS_LAB_REPORT_AXES_H
#define COX_PROGRAMS_LAB_REPORT_AXES_H

#include "common/svg.h"
#include "series.h"

enum { CHART_BINS_WIDE = 328, CHART_BINS_NARROW = 160 };

/* A chart of one run. */
struct paper {
    struct svg svg;
    const struct report_run *run;
    size_t bins; /* most points of a line */
};

/* One value for narrow pages, another for wide ones. */
static inline double axes_pick(const struct svg *svg, double narrow, double wide)
{
    if (svg->narrow)
        return narrow;
    return wide;
}

struct paper paper_of(struct html *out, const struct report_run *run, bool narrow,
                      double label_width);

/* Labels: with text of the program's own, and with text from outside whose middle is cut. */
__attribute__((format(printf, 5, 6))) void axes_label(struct html *out, const char *class, double x,
                                                      double y, const char *format, ...);
void axes_name(struct html *out, const char *class, double x, double y, const char *name,
               unsigned characters);

/* Nanoseconds as milliseconds with about four digits, without the unit; a dash for NaN. */
void chart_ms(struct html *out, double ns);

/* A label with words before the milliseconds. */
void axes_ms(struct html *out, const char *class, double x, double y, const char *before,
             double ns);

/* The numbers of the frames, below the chart. */
void axes_frame_axis(const struct paper *paper, double y);

/* The phases: shaded if something disturbs, with names above. */
void axes_phases(const struct paper *paper, double name_y, double top, double bottom);

/* The line over the means of the bins, `stride` apart; it breaks where a bin is empty. */
void axes_mean_line(const struct paper *paper, const char *class, const struct report_bin *bins,
                    size_t count, size_t stride, const struct scale *scale);

/* From the least to the most of each bin. */
void axes_range(const struct paper *paper, const char *class, const struct report_bin *bins,
                size_t count, const struct scale *scale);

#endif
