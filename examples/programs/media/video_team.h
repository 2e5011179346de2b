/* Threads that read a part of a file in parallel: one thread that copies from the page cache is
 * slower than a GPU.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_TEAM_H
#define VIDEO_TEAM_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct video_team;

/* How many threads besides the caller's are worth it on this process's processors; 0 on few. */
uint32_t video_team_best(void);

/* `threads` threads, 15 at most. NULL for 0, or if none can be started. */
struct video_team *video_team_create(uint32_t threads);
void video_team_destroy(struct video_team **team);

/* Fill the pieces from `offset` on. Returns the bytes that were read, up to the file's end; -1 and
 * errno if the first one cannot be read. A team of NULL makes one call of preadv. */
ssize_t video_team_read(struct video_team *team, int fd, const struct iovec *pieces, int count,
                        off_t offset);

/* Bring these bytes of a mapping into memory, see mapped_file_touch. Accepts a team of NULL. */
void video_team_touch(struct video_team *team, const void *at, size_t bytes);

#endif
