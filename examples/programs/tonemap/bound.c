/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include <stdio.h>

static void name_producer(const struct video_producer *producer, char *text, size_t bytes)
{
    switch (producer->kind) {
    case VIDEO_PRODUCER_FILE:
        snprintf(text, bytes, "reading");
        break;
    case VIDEO_PRODUCER_DECODER:
        snprintf(text, bytes, "the decoder (%s)", producer->name);
        break;
    case VIDEO_PRODUCER_PROCESS:
        snprintf(text, bytes, "%s, which writes to the pipe", producer->name);
        break;
    default:
        snprintf(text, bytes, "input");
        break;
    }
}

void bound_text(const struct bound_facts *facts, char *text, size_t bytes)
{
    const uint64_t input_ns = facts->input_ns, devices_ns = facts->devices_ns;
    const uint64_t output_ns = facts->output_ns;
    const double producer_ns = (double)facts->producer.cpu_ns, own_ns = (double)facts->own_ns;
    char producer[96];
    text[0] = 0;
    name_producer(&facts->producer, producer, sizeof producer);
    if (!input_ns && !devices_ns && !output_ns)
        return;

    if (input_ns >= devices_ns && input_ns >= output_ns)
        snprintf(text, bytes, "%s", producer);
    else if (output_ns > devices_ns && facts->encoder)
        snprintf(text, bytes, "the encoder (%s)", facts->encoder);
    else if (output_ns > devices_ns)
        snprintf(text, bytes, "output");
    else if (facts->on_cpu && facts->producer.cpu_ns > facts->own_ns)
        /* With the cores to themselves the devices would have been fast enough. */
        snprintf(text, bytes, "%s, with %.0f %% of the processor time", producer,
                 100.0 * producer_ns / (producer_ns + own_ns));
    else
        snprintf(text, bytes, "devices");
}
