/* The two things that cox-tonemap does, and which of them an input wants.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JOBS_H
#define TONEMAP_JOBS_H

#include "options.h"

/* Exit statuses. MISFIT: what was given does not go together; another try would not help. */
enum { EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_MISFIT = 3 };

/* What the input at hand is by itself: a picture, unless its content or the options about raw frames make it video. */
enum options_job job_by_input(const struct options *options);

/* One input to one output, said and done: returns the exit status. Fills in what the options leave to the job. */
int job_run(struct options *options);

/* Do the whole thing with options that suit it; false after saying why. */
bool picture_job(const struct options *options); /* picture.c */
bool video_job(const struct options *options);   /* video.c */

/* Steps of a film in pieces; mapping is video_job's. */
bool analyse_job(const struct options *options); /* analyse.c */
bool steer_job(const struct options *options);   /* steer.c */
bool join_job(const struct options *options);    /* join.c */

#endif
