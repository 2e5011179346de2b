/* What produces an input's frames: threads of a decoder, or the programs that write to a pipe; and
 * their processor time. Linux only, from /proc; unknown elsewhere, and for other users' programs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_PRODUCER_H
#define VIDEO_PRODUCER_H

#include "video.h"

#include <sys/types.h>
#include <time.h>

enum { VIDEO_THREADS_MAX = 256, VIDEO_WRITERS_MAX = 8 };

struct video_threads {
    uint32_t count;
    pid_t ids[VIDEO_THREADS_MAX];
};

/* All threads of this process. */
void video_threads_list(struct video_threads *threads);

/* Remove `others` from `threads`. */
void video_threads_without(struct video_threads *threads, const struct video_threads *others);

/* Processor time that they have used; 0 for one that has ended. */
uint64_t video_threads_cpu_ns(const struct video_threads *threads);

/* A process that has the input's pipe open for writing. */
struct video_writer {
    clockid_t clock;
    uint64_t first_ns, last_ns; /* its clock when it was found, and at the last query */
    bool gone;
    char name[VIDEO_NAME_BYTES];
};

struct video_writers {
    bool sought;
    uint32_t count;
    struct video_writer writers[VIDEO_WRITERS_MAX];
};

#endif
