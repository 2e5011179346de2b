/* Threads that read a part of a file side by side: one that copies from the page cache is slower than a GPU.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_TEAM_H
#define VIDEO_TEAM_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct video_team;

/* How many threads beside the caller's pay on the processors that this process may use; 0 on few. */
uint32_t video_team_best(void);

/* So many threads, 7 at most. NULL for 0, or if none can be had. */
struct video_team *video_team_create(uint32_t threads);
void video_team_destroy(struct video_team **team);

/* Fill the pieces from `offset` on, as preadv does with as many calls as it takes. Returns the bytes that came, up to
 * the file's end; -1 and errno if it cannot be read and none came. NULL is accepted: then one call of preadv. */
ssize_t video_team_read(struct video_team *team, int fd, const struct iovec *pieces, int count,
                        off_t offset);

/* Have so many bytes of a mapping in memory, see mapped_file_touch. NULL is accepted, too. */
void video_team_touch(struct video_team *team, const void *at, size_t bytes);

#endif
