/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include <stdio.h>

static void name_maker(const struct video_maker *maker, char *text, size_t bytes)
{
    switch (maker->kind) {
    case VIDEO_MAKER_FILE:
        snprintf(text, bytes, "reading");
        break;
    case VIDEO_MAKER_DECODER:
        snprintf(text, bytes, "the decoder (%s)", maker->name);
        break;
    case VIDEO_MAKER_PROCESS:
        snprintf(text, bytes, "%s, which writes to the pipe", maker->name);
        break;
    default:
        snprintf(text, bytes, "input");
        break;
    }
}

void bound_text(const struct bound_facts *facts, char *text, size_t bytes)
{
    const uint64_t input_ns = facts->input_ns, devices_ns = facts->devices_ns,
                   output_ns = facts->output_ns;
    const uint64_t maker_ns = facts->maker.cpu_ns, own_ns = facts->own_ns;
    char maker[96];
    text[0] = 0;
    name_maker(&facts->maker, maker, sizeof maker);
    if (!input_ns && !devices_ns && !output_ns)
        return;
    if (input_ns >= devices_ns && input_ns >= output_ns)
        snprintf(text, bytes, "%s", maker);
    else if (output_ns > devices_ns)
        snprintf(text, bytes, facts->encoder ? "the encoder (%s)" : "output", facts->encoder);
    else if (facts->on_cpu &&
             maker_ns >
                 own_ns) /* the devices would have been fast enough with the cores to themselves */
        snprintf(text, bytes, "%s, with %.0f %% of the processor time", maker,
                 100.0 * (double)maker_ns / ((double)maker_ns + (double)own_ns));
    else
        snprintf(text, bytes, "devices");
}
