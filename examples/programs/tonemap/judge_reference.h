/* The reference of --judge: a video, or a PNG, which has one frame. Its own names say how it is
 * coded.
 *
 * What has no names follows rules: containers are BT.709 in limited range, PNGs sRGB, and y4m, which
 * cannot name its colours, has those of the mapped frames.
 *
 * Thread-safety: from one thread at a time; judge_reference_cancel from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JUDGE_REFERENCE_H
#define TONEMAP_JUDGE_REFERENCE_H

#include "judge_light.h"
#include "options.h"

struct judge_reference;

/* Open options->judge. `*out` must be closed also on failure. Here and below: false after printing
 * why. */
bool judge_reference_open(struct judge_reference **out, const struct options *options);

/* Frames of `target`, which are coded as `mapped`, will be compared. The reference must have the same
 * size and be of the same kind, HDR or SDR. Sets how its frames are coded. */
bool judge_reference_begin(struct judge_reference *reference, const struct video_format *target,
                           const struct judge_coding *mapped, struct judge_coding *coding);

/* Read frame `number`; the numbers rise. The frame is valid until the next call. `*recoded` becomes
 * true if it is coded in another way, and `*coding` says how. */
enum video_read judge_reference_read(struct judge_reference *reference, uint64_t number,
                                     struct judge_frame *frame, struct judge_coding *coding,
                                     bool *recoded, struct error *error);

/* Whether there is a frame after the last one that was read. */
bool judge_reference_goes_on(struct judge_reference *reference);

/* A read that waits for a pipe ends. */
void judge_reference_cancel(struct judge_reference *reference);

/* Print what may be wrong with the frames. */
bool judge_reference_sound(struct judge_reference *reference);

/* Sets to NULL; NULL is accepted. */
void judge_reference_close(struct judge_reference **reference);

#endif
