/* The two things that cox-tonemap does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JOBS_H
#define TONEMAP_JOBS_H

#include "options.h"

/* Do the whole thing with options that suit it; false after saying why. */
bool picture_job(const struct options *options); /* picture.c */
bool video_job(const struct options *options);   /* video.c */

#endif
