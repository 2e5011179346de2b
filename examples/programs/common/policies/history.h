/* What `last-frame`, `mean10`, `ewma`, `fpm` and `kalman` share: they learn from all bands that a
 * device has in a frame, and they probe devices that are left out. The state of these policies
 * begins with a struct history. `qilin` uses the sums alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMPARED_HISTORY_H
#define COMPARED_HISTORY_H

#include <coxswain/sched.h>

/* One device's bands of one frame, added up. A frame may give a device several bands. */
struct frame_sum {
    uint32_t device;
    uint64_t frame;
    uint64_t rows; /* 0 = empty */
    double wall_ns;
    double kernel_ns; /* 0 = unknown for one of the bands */
};

/* How long a device has been left out. */
struct left_out {
    uint32_t out_frames; /* frames since the device was left out or probed */
    uint32_t in_frames;  /* frames since it got rows again */
    uint32_t pause;      /* frames until it is probed; 0 = the shortest pause */
};

struct history {
    uint32_t device_count;
    uint32_t cursor; /* of history_take */
    struct frame_sum sums[COX_DEVICES_MAX];
    struct left_out left_out[COX_DEVICES_MAX];
};

/* A policy's `init`, for policies without options. */
cox_status history_init(void *memory, const struct cox_sched_view *view,
                        const struct cox_policy_options *options);

/* Add a band to the sum of its device. If the sum belongs to another frame, that sum is complete:
 * it is moved to `*complete`, and a new one begins with the band. Ignored are shadows, unfinished
 * bands, and bands without rows or time. Returns whether `*complete` was filled. */
bool history_add(struct history *history, const struct cox_measurement *measurement,
                 struct frame_sum *complete);

/* Move the sum of the next device that has one to `*complete`; false = no device has one. A policy
 * takes them all before it decides. Bands of the same frame that are observed later make a new
 * sum. */
bool history_take(struct history *history, struct frame_sum *complete);

/* Fill in the bands of `rows`, and probe at most one device in a frame. A usable device that was
 * left out for its pause gets the smallest band, taken from the device with most rows. Without rows
 * the device is never measured, and one bad measurement would leave it out for good. The pause
 * doubles with every probe until the device has had rows for as long. A probe changes `rows` and
 * sets COX_REASON_PROBE. */
void history_lay_out(struct history *history, const struct cox_sched_view *view, uint32_t *rows,
                     struct cox_split *out);

/* Let the devices finish together by their times per row. Fills in the bands as history_lay_out
 * does. If `timed`, the times are nanoseconds, and the frame's time is predicted too. Returns false
 * if no device can be used. */
bool history_balance(struct history *history, const struct cox_sched_view *view,
                     const double *ns_per_row, bool timed, struct cox_split *out);

#endif
