/* SPDX-License-Identifier: Apache-2.0 */
#include "range.h"
#include "messages.h"

#include <inttypes.h>

/* The beginning of part `i` of `parts` equal ones. */
static uint64_t share(uint64_t frames, uint64_t i, uint64_t parts)
{
    return frames / parts * i + frames % parts * i / parts;
}

bool range_of(struct range *range, const struct options *options, uint64_t first, uint64_t count)
{
    const uint64_t end = first + count;
    uint64_t range_end = end;
    range->first = first;
    if (options->share_count) {
        range->first = first + share(count, options->share - 1, options->share_count);
        range_end = first + share(count, options->share, options->share_count);
    } else if (options->ranged) {
        range->first = options->range_first;
        if (range->first < first || range->first >= end)
            return message_incompatible("%s: --range begins with frame %" PRIu64
                                        ", but there are %" PRIu64 " frames, the first is %" PRIu64,
                                        options->input, range->first, count, first);
        if (options->range_end < end)
            range_end = options->range_end;
    }

    range->count = range_end - range->first;
    range->last = range_end == end;
    return true;
}

bool range_choose(struct range *range, const struct options *options, struct video_input *input)
{
    uint64_t frames;
    struct error error;
    if (options->share_count || !options->peak_auto) {
        if (!video_input_count(input, &frames, &error))
            return message_file_error(options->input, &error);
        return range_of(range, options, 0, frames);
    }

    /* Reading the frames finds the film's end. */
    *range = (struct range){.count = UINT64_MAX};
    if (options->ranged)
        range->first = options->range_first;
    if (options->ranged && options->range_end != UINT64_MAX)
        range->count = options->range_end - range->first;
    return true;
}

bool range_follows(const char *what, const char *before, uint64_t end, const char *path,
                   uint64_t first)
{
    if (first > end)
        return message_incompatible("frames %" PRIu64 " to %" PRIu64
                                    " are missing: no %s between %s and %s",
                                    end, first - 1, what, before, path);

    return first == end ||
           message_incompatible("%s and %s both contain frame %" PRIu64, before, path, first);
}
