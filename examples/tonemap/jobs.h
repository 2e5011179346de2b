/* The two things that cox-tonemap does, and which of them an input wants.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JOBS_H
#define TONEMAP_JOBS_H

#include "options.h"

/* Exit statuses. */
enum { EXIT_BAD = 1, EXIT_USAGE = 2 };

/* What the input at hand is by itself: a picture, unless its content or the options about raw frames make it video. */
enum options_job job_by_input(const struct options *options);

/* One input to one output, said and done: returns the exit status. Fills in what the options leave to the job. */
int job_run(struct options *options);

/* Do the whole thing with options that suit it; false after saying why. */
bool picture_job(const struct options *options); /* picture.c */
bool video_job(const struct options *options);   /* video.c */

#endif
