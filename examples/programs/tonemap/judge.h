/* --judge: each mapped frame is compared with the frame of the same number in a reference, a video or
 * a PNG (judge_reference.h). judge_measure.h says what is measured.
 *
 * Reading the reference never ends the film: a reference that cannot be read on ends the
 * comparison, and judge_finish says so.
 * Thread-safety: from one thread at a time; judge_cancel from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JUDGE_H
#define TONEMAP_JUDGE_H

#include "judge_measure.h"
#include "options.h"

struct judge;

/* Open the reference, if the options name one; else `*judge` is NULL. Here and below: false after
 * printing why, and functions accept NULL. */
bool judge_open(struct judge **judge, const struct options *options);

/* The mapped frames have this format, with its colours, and encoding; PQ is for a display of
 * `peak_nits`. The reference must have the same size, and be HDR if they are. */
bool judge_begin(struct judge *judge, const struct video_format *target, enum cox_encoding encoding,
                 double peak_nits);

/* Compare a mapped frame with frame `number` of the reference; the numbers rise. */
void judge_take(struct judge *judge, uint64_t number, const void *const planes[],
                const size_t pitch_bytes[]);

/* A read that waits for a pipe ends; no more frames are compared. */
void judge_cancel(struct judge *judge);

/* After the last frame. `whole`: the film has no further frames, so that the reference should have
 * none. Prints what was wrong with the reference; false if it could not be read, and with --strict
 * if any frame was not compared. */
bool judge_finish(struct judge *judge, bool whole);

/* False: no frame was compared. */
bool judge_figures(const struct judge *judge, struct judge_figures *figures);

/* Print the figures. */
void judge_print(const struct judge *judge);

/* Sets to NULL. */
void judge_close(struct judge **judge);

#endif
