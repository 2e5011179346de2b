/* The charts of a report, as SVG inside the page, whose style gives them their colours in light and dark.
 *
 * Each is drawn for one width: a wide page and a narrow one (a telephone) show another drawing, each with letters of
 * readable size. Every drawing is whole in itself: title, description, axes, labels.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_CHARTS_H
#define COX_EXAMPLES_LAB_REPORT_CHARTS_H

#include "figures.h"
#include "common/html.h"

enum { CHART_BINS_WIDE = 328, CHART_BINS_NARROW = 160 };

/* Policies and devices look the same in each chart: classes p0 .. p9 and d0 .. d7, those by their groups. */
uint32_t chart_policy_colour(const struct report_run *run, uint32_t policy);
uint32_t chart_group_colour(uint32_t group);

/* The name of a device, at most so many characters of it, and its number where another has the same. */
void chart_device_name(struct html *out, const struct report_run *run, uint32_t device,
                       unsigned characters);

/* The name of a group of devices, at most so many characters of it, and how many they are if there are several. */
void chart_group_name(struct html *out, const struct report_run *run, uint32_t group,
                      unsigned characters);

/* The name of a pass, at most so many characters of it, or "pass 1" where it has none. */
void chart_pass_name(struct html *out, const struct report_run *run, uint32_t pass,
                     unsigned characters);

/* What the charts that compare policies need: the policies in the order of the page, and their figures over all
 * frames. */
struct chart_policies {
    const struct report_source *source;
    const struct report_run *run;
    uint32_t count;
    const uint32_t *policies;
    const struct report_figures *all;                         /* by policy */
    const struct report_figures (*phases)[REPORT_PHASES_MAX]; /* likewise */
};

/* Share of the devices' joint speed that each policy made use of; phase by phase too where there is room. False: not
 * known. */
bool chart_efficiency(struct html *out, const struct chart_policies *about, bool narrow);

/* How often which frame time occurs, a row for each policy. False: no frame that counts. */
bool chart_times(struct html *out, const struct chart_policies *about, bool narrow);

/* Sum of what each frame took longer than the oracle. False: no oracle. */
bool chart_regret(struct html *out, const struct chart_policies *about, bool narrow);

/* One session over time: rows of each device in each pass, when each is done, prediction, reasons. False if out of
 * memory. */
bool chart_session(struct html *out, const struct chart_policies *about,
                   const struct report_session *session, bool narrow);

/* Milliseconds of so many nanoseconds with four digits or so, without the unit; a dash where there are none. */
void chart_ms(struct html *out, double ns);

#endif
