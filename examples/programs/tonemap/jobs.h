/* What cox-tonemap does: pictures, video, and the steps of a film in pieces; and which of these an input is for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JOBS_H
#define TONEMAP_JOBS_H

#include "options.h"

/* Exit statuses. MISFIT: what was given does not go together; another try would not help. */
enum { EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_MISFIT = 3 };

/* What the input at hand is by itself: a picture, unless its content or the options about raw frames make it video. */
enum options_job job_by_input(const struct options *options);

/* Do one input, or all inputs of a step, and say what there is to say. Returns the exit status. Fills in what the
 * options leave to the job. */
int job_run(struct options *options);

/* Do it, with options that suit it (options_suit). False, after saying why. */
bool picture_job(const struct options *options); /* picture.c */
bool video_job(const struct options *options);   /* video.c */

/* Steps of a film in pieces; mapping is video_job's. */
bool analyse_job(const struct options *options); /* analyse.c */
bool steer_job(const struct options *options);   /* steer.c */
bool join_job(const struct options *options);    /* join.c */

#endif
