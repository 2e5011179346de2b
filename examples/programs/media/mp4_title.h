/* Titles of the tracks in MP4 and MOV files, which libavformat writes but does not read.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MP4_TITLE_H
#define MP4_TITLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The title of the track with this number. False: it has none, or the file is no MP4. */
bool mp4_title(const char *path, uint32_t track, char *title, size_t bytes);

#endif
