/* The bottleneck of a film: what would have to become faster.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_BOUND_H
#define TONEMAP_BOUND_H

#include "media/video.h"

struct bound_facts {
    uint64_t input_ns, devices_ns, output_ns; /* what the next frame had to wait for */
    struct video_producer producer; /* of the input's frames; processor time while the film ran */
    uint64_t own_ns;     /* processor time of this process meanwhile, without the producer's */
    const char *encoder; /* of the output; NULL = none */
    bool on_cpu;         /* a device shares the processor with the producer */
};

/* The bottleneck, such as "devices", "the decoder (hevc)" or "ffmpeg, which writes to the pipe";
 * "" = there was no wait. */
void bound_text(const struct bound_facts *facts, char *text, size_t bytes);

#endif
