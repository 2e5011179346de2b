/* The devices of cox-tonemap: started as the options say, listed in the results, described for
 * statistics.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_DEVICES_H
#define TONEMAP_DEVICES_H

#include "options.h"
#include "report.h"

struct devices {
    cox_runtime *runtime;
    uint32_t count;
    struct cox_device_info info[COX_DEVICES_MAX];
};

/* Start the runtime. False after printing why: it failed, or --split does not fit the devices. */
bool devices_start(struct devices *devices, const struct options *options);

void devices_stop(struct devices *devices);

/* "fma" or "muladd". The bits of the output, and so its hash, depend on it. */
const char *devices_arithmetic(const struct devices *devices);

/* One line for each device, with its mark in the bar of a split. */
void devices_print(const struct devices *devices, const struct cox_session_info *session,
                   bool verbose);

/* The line of a frame: number, split as a bar, times, rows of each device, reason. */
void devices_print_frame(const struct report_frame *frame, const struct cox_band_report *bands);

/* Set policy, shares, frames in flight and verification as the options say. */
void devices_choose(const struct options *options, struct cox_session_params *params);

/* How the devices start. A film begins on the first one that is ready. If the options choose
 * devices, policy or checks, or ask for statistics, all begin together, after they were timed. They
 * are not timed if nothing depends on their speed. */
enum cox_warmup devices_warmup(const struct devices *devices, const struct options *options);

/* Describe the devices of a session for statistics. `about` points into `text`. */
struct devices_text {
    struct report_device devices[COX_DEVICES_MAX];
    uint64_t single_device_ns[COX_DEVICES_MAX];
};
void devices_describe(const struct devices *devices, const struct cox_session_info *session,
                      struct devices_text *text, struct report_about *about);

/* A line for each device that was lost. These are the last lines of the results. */
void devices_print_trouble(const struct devices *devices, const struct cox_session_info *session);

/* The line of the warm-up: the time of each device alone. Nothing if none was measured. */
void devices_print_warmup(const struct cox_session_info *session);

/* With --deadline: how many frames missed it. */
void devices_print_late(const struct options *options, struct report *report);

/* Whether the input's frames may need this much memory, and the machine has it. `file_bytes` is the
 * input's length, 0 = unknown. False after printing why not. */
bool devices_memory(const struct options *options, uint64_t file_bytes, uint32_t width,
                    uint32_t height, double bytes);

#endif
