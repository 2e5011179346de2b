/* A file mapped into memory: pages are read when they are touched, and dropped when released.
 *
 * If the file becomes shorter meanwhile or its disk fails, touching a page raises SIGBUS. The
 * handler here puts zeros in its place, on whichever thread that happened, and marks the file as
 * torn.
 *
 * Thread-safety: one file at a time in the process, opened and closed by one thread; the memory and
 * mapped_file_torn from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MAPPED_FILE_H
#define MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_file;

/* Map `bytes` of the file behind `fd`, from `base` on. The descriptor may be closed afterwards.
 * NULL: it cannot be mapped, or another file is. Read it as usual then. */
struct mapped_file *mapped_file_open(int fd, uint64_t base, uint64_t bytes);

/* NULL is accepted. While something holds the memory, the file stays mapped for the rest of the
 * process, and no other file can be mapped. */
void mapped_file_close(struct mapped_file **map);

/* The memory at `offset` from `base`, with `bytes` from there. Do not write to it; a write would
 * change this mapping alone. NULL: the file is shorter. */
void *mapped_file_at(struct mapped_file *map, uint64_t offset, uint64_t bytes);

/* Bring these bytes of a mapping into memory; blocks for the disk. */
void mapped_file_touch(const void *at, size_t bytes);

/* The offset of memory from mapped_file_at. */
uint64_t mapped_file_offset(const struct mapped_file *map, const void *at);

/* The bytes before `offset` are not needed any more. */
void mapped_file_release(struct mapped_file *map, uint64_t offset);

/* Hold the memory, and let it go; from any thread. mapped_file_let_go is a cox_released_fn. */
void mapped_file_hold(struct mapped_file *map);
void mapped_file_let_go(void *map);

/* Whether a page was missing; `*offset` is the first one's. */
bool mapped_file_torn(const struct mapped_file *map, uint64_t *offset);

#endif
