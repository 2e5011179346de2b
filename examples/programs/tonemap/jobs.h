/* The jobs of cox-tonemap: a picture, a video, and the steps of a film in pieces. The step map is
 * part of video_job. dispatch.c calls a job with options that suit the input (options_suit).
 *
 * Each returns false after it has printed why.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JOBS_H
#define TONEMAP_JOBS_H

#include "options.h"

bool picture_job(const struct options *options); /* picture_job.c */
bool video_job(const struct options *options);   /* video_job.c */
bool analyse_job(const struct options *options); /* analyse.c */
bool cube_job(const struct options *options);    /* cube_job.c: writes a look-up table */
bool steer_job(const struct options *options);   /* steer.c */
bool join_job(const struct options *options);    /* join.c */

#endif
