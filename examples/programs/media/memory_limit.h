/* How much memory an input may ask for. A short file can promise a huge picture: 98 KB of Radiance
 * have needed 10.7 GB.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_LIMIT_H
#define MEMORY_LIMIT_H

#include <stdint.h>

/* The most bytes that the frames of a file may need; `asked`: the user's own limit, 0 = the default.
 * A file of unknown length (0), such as a pipe, has no limit by default: it must send what it
 * promises. */
uint64_t memory_limit(uint64_t file_bytes, uint64_t asked);

#endif
