/* A stream of frames in hand-written OpenCL, which the library's stream is compared with.
 *
 * It is plain OpenCL for devices with their own memory, written to be fast. It has its own context.
 * Each slot of its ring has pinned host memory, device buffers, and a kernel whose arguments are
 * set once. Three in-order queues copy in, compute, and copy out. Nothing is profiled. One thread
 * submits, and waits for the oldest frame. The kernel is the same as the library's streams run.
 *
 * With several devices each frame is cut into equal bands, and each device has a feeding thread
 * that waits for no other thread. The devices may be apart by as many frames as are in flight, so
 * this stream is a little freer than one that delivers frames.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_HAND_H
#define BENCH_STREAM_HAND_H

#include "stream_kernel.h"

struct stream_hand;

/* A stream on a staged device with a ring of `frames->sets` slots, whose inputs are copied from
 * `frames`. The kernel is built with the arithmetic of the runtime. It takes runs of up to `most`
 * frames. `frames` and `kernel` must outlive it. NULL after a message. */
struct stream_hand *stream_hand_create(const struct cox_device_info *info,
                                       const struct stream_frames *frames,
                                       const struct stream_kernel *kernel,
                                       enum cox_arithmetic arithmetic, uint32_t most);
void stream_hand_destroy(struct stream_hand **hand);

/* Divide the rows into equal bands over the `count` streams. Call this before stream_hand_run. */
bool stream_hand_split(struct stream_hand *const *hands, uint32_t count, uint32_t in_flight);

/* Run `frame_count` frames with one feeding thread per stream. `done_ns` gets the time at which
 * each frame's last band was complete. */
bool stream_hand_run(struct stream_hand *const *hands, uint32_t count, uint32_t frame_count,
                     uint64_t *done_ns);

/* Copy the rows that the streams wrote last into the outputs of `frames`. */
void stream_hand_collect(struct stream_hand *const *hands, uint32_t count,
                         struct stream_frames *frames);

#endif
