/* SPDX-License-Identifier: Apache-2.0 */
#include "range.h"
#include "words.h"

#include <inttypes.h>

/* The beginning of part `i` of `parts` equal ones. */
static uint64_t share(uint64_t frames, uint64_t i, uint64_t parts)
{
    return frames / parts * i + frames % parts * i / parts;
}

bool range_of(struct range *range, const struct options *options, uint64_t first, uint64_t count)
{
    const uint64_t end = first + count;
    *range = (struct range){.first = first, .count = count, .last = true};
    if (options->share_count) {
        range->first = first + share(count, options->share - 1, options->share_count);
        range->count = first + share(count, options->share, options->share_count) - range->first;
    } else if (options->ranged) {
        if (options->range_first < first || options->range_first >= end)
            return misfit("%s: --range begins with frame %" PRIu64 ", and there are %" PRIu64
                          " from %" PRIu64 " on",
                          options->input, options->range_first, count, first);
        range->first = options->range_first;
        range->count = options->range_end < end ? options->range_end - range->first
                                                : end - range->first;
    }
    range->last = range->first + range->count == end;
    return true;
}

bool range_choose(struct range *range, const struct options *options, struct video_input *input)
{
    uint64_t frames;
    struct error error;
    if (!options->share_count && options->peak_auto) { /* reading tells where it ends */
        *range = (struct range){.first = options->ranged ? options->range_first : 0,
                                .count = UINT64_MAX};
        if (options->ranged && options->range_end != UINT64_MAX)
            range->count = options->range_end - range->first;
        return true;
    }
    return video_input_count(input, &frames, &error) ? range_of(range, options, 0, frames)
                                                     : complain_about(options->input, &error);
}

bool range_follows(const char *what, const char *before, uint64_t end, const char *path,
                   uint64_t first)
{
    if (first > end)
        return misfit("the frames %" PRIu64 " to %" PRIu64 " are in no %s: between %s and %s", end,
                      first - 1, what, before, path);
    return first == end || misfit("%s and %s both have frame %" PRIu64, before, path, first);
}
