/* A file in memory, to be read in place: pages come when they are touched and go when they are released.
 *
 * Where the file has become shorter meanwhile, or its disk fails, touching it is the signal SIGBUS. That is caught:
 * zeros take the place of the missing page, on whichever thread it was touched, and the file is told as torn.
 *
 * Thread-safety: one file at a time in the process, opened and closed by one thread; the memory and mapped_file_torn
 * from any.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MAPPED_FILE_H
#define MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_file;

/* Map the file behind `fd` from `base` to its end, `bytes`; the descriptor may be closed afterwards. NULL where that
 * cannot be, another file being mapped among the reasons: then it is to be read as usual. */
struct mapped_file *mapped_file_open(int fd, uint64_t base, uint64_t bytes);

/* NULL is accepted. Where something still holds the memory, it stays mapped for good, and no other file can be. */
void mapped_file_close(struct mapped_file **map);

/* Where the byte at `offset` from `base` lies, with `bytes` from there on. They are written by nobody; what writes
 * there changes this mapping alone. NULL: the file does not have so many. */
void *mapped_file_at(struct mapped_file *map, uint64_t offset, uint64_t bytes);

/* Have the system bring so many bytes of a mapping into memory; blocks for the disk. */
void mapped_file_touch(const void *at, size_t bytes);

/* The offset of what mapped_file_at gave. */
uint64_t mapped_file_offset(const struct mapped_file *map, const void *at);

/* What lies before `offset` is not needed any more. */
void mapped_file_release(struct mapped_file *map, uint64_t offset);

/* Something uses the memory, until it lets it go: from any thread. A cox_released_fn. */
void mapped_file_hold(struct mapped_file *map);
void mapped_file_let_go(void *map);

/* Whether a page was missing; *offset is the least of them. */
bool mapped_file_torn(const struct mapped_file *map, uint64_t *offset);

#endif
