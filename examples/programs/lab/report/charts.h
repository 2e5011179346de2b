/* The charts of a report, as SVG inside the page. The page's style sets their colours, light and
 * dark.
 *
 * Each chart is drawn for one width: wide pages and narrow ones (a telephone) show different
 * drawings, so that letters have a readable size on both. Every drawing is complete: title,
 * description, axes, labels.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_CHARTS_H
#define COX_EXAMPLES_LAB_REPORT_CHARTS_H

#include "axes.h"
#include "policy_figures.h"
#include "common/html.h"

/* Policies and devices look the same in each chart: classes p0 .. p9 and d0 .. d7, those by their
 * groups. */
uint32_t chart_policy_colour(const struct report_run *run, uint32_t policy);
uint32_t chart_group_colour(uint32_t group);

/* The name of a device, cut to `characters`, and its number if another device has the same name. */
void chart_device_name(struct html *out, const struct report_run *run, uint32_t device,
                       unsigned characters);

/* The name of a group of devices, cut to `characters`, and their number if there are several. */
void chart_group_name(struct html *out, const struct report_run *run, uint32_t group,
                      unsigned characters);

/* The name of a pass, cut to `characters`, or "pass 1" if it has none. */
void chart_pass_name(struct html *out, const struct report_run *run, uint32_t pass,
                     unsigned characters);

/* For charts that compare policies: the policies in the order of the page, and their figures. */
struct chart_policies {
    const struct report_source *source;
    const struct report_run *run;
    uint32_t count;
    const uint32_t *policies;
    const struct report_figures *all;                         /* by policy */
    const struct report_figures (*phases)[REPORT_PHASES_MAX]; /* likewise */
};

/* The figures of a policy in a phase, or with REPORT_ALL_PHASES over all frames. */
const struct report_figures *chart_figures(const struct chart_policies *about, uint32_t policy,
                                           uint32_t phase);

/* Share of the devices' joint speed that each policy used; phase by phase too if there is room.
 * False: not known. */
bool chart_efficiency(struct html *out, const struct chart_policies *about, bool narrow);

/* How often each frame time occurs, a row for each policy. False: every frame failed. */
bool chart_times(struct html *out, const struct chart_policies *about, bool narrow);

/* Sum of the time that each frame took longer than the oracle. False: no oracle. */
bool chart_regret(struct html *out, const struct chart_policies *about, bool narrow);

/* One session over time: rows of each device in each pass, when each is done, prediction, reasons.
 * False if out of memory. */
bool chart_session(struct html *out, const struct chart_policies *about,
                   const struct report_session *session, bool narrow);

#endif
