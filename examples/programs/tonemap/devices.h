/* The devices as cox-tonemap uses them: started as the options say, listed for people, described for statistics.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_DEVICES_H
#define TONEMAP_DEVICES_H

#include "tonemap/report.h"
#include "options.h"

enum { BAR_WIDTH = 24 }; /* of a split, where it is shown */

struct devices {
    cox_runtime *runtime;
    uint32_t count;
    struct cox_device_info info[COX_DEVICES_MAX];
};

/* Start the runtime. Complains if that does not work, or if --split does not fit the devices. */
bool devices_start(struct devices *devices, const struct options *options);

void devices_stop(struct devices *devices);

/* "fma" or "muladd": on which the bits depend that a hash is of. */
const char *devices_arithmetic(const struct devices *devices);

/* One line for each device, with the mark that the split's bar has for it. */
void devices_print(const struct devices *devices, const struct cox_session_info *session,
                   bool verbose);

/* A frame's line: its number, the split as a bar, times, each device's rows, and why. */
void devices_print_frame(const struct report_frame *frame, const struct cox_band_report *bands);

/* Policy, shares, frames in flight and verification as the options say. */
void devices_choose(const struct options *options, struct cox_session_params *params);

/* What statistics say of a session's devices. `about` points into `text`. */
struct devices_text {
    struct report_device devices[COX_DEVICES_MAX];
    uint64_t solo_ns[COX_DEVICES_MAX];
};
void devices_describe(const struct devices *devices, const struct cox_session_info *session,
                      struct devices_text *text, struct report_about *about);

/* Add what devices another session has lost and got back to what this one has. */
void devices_add_trouble(struct cox_session_info *session, const struct cox_session_info *other);

/* A line for each device that was late or lost; nothing if none was. The lines are the last ones of the results. */
void devices_print_trouble(const struct devices *devices, const struct cox_session_info *session);

/* The warm-up's line: what each device needed alone. Nothing if none was measured. */
void devices_print_warmup(const struct cox_session_info *session);

/* With --deadline: how many frames missed it. */
void devices_print_late(const struct options *options, struct report *report);

/* Whether the machine has so much memory at all; false after saying that `what` needs it. */
bool devices_memory(const char *what, uint32_t width, uint32_t height, double bytes);

#endif
