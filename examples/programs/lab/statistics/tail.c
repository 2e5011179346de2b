/* SPDX-License-Identifier: Apache-2.0 */
#include "tail.h"
#include "common/quantiles.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

uint64_t lab_tail_beyond(uint64_t frames, unsigned per_mille)
{
    return frames - rank_of(frames, per_mille);
}

/* The least number of frames with LAB_TAIL_LEAST beyond the quantile. */
static uint64_t frames_for(unsigned per_mille)
{
    return LAB_TAIL_LEAST * 1000u / (1000 - per_mille);
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...)
{
    size_t length = 0;
    va_list args;

    while (length < bytes && text[length])
        length++;

    va_start(args, format);
    vsnprintf(text + length, bytes - length, format, args);
    va_end(args);
}

static void append_name(char *text, size_t bytes, unsigned per_mille)
{
    if (per_mille % 10)
        append(text, bytes, "p%u.%u", per_mille / 10, per_mille % 10);
    else
        append(text, bytes, "p%u", per_mille / 10);
}

bool lab_tail_warning(uint64_t frames, const unsigned *per_mille, char *text, size_t bytes)
{
    const char *between = " only", *of = " frames";

    snprintf(text, bytes, "Uncertain: of %" PRIu64 " frame%s", frames, frames == 1 ? "" : "s");
    for (const unsigned *q = per_mille; *q; q++) {
        const uint64_t beyond = lab_tail_beyond(frames, *q);

        if (beyond >= LAB_TAIL_LEAST)
            continue;
        append(text, bytes, "%s %" PRIu64 " %s above ", between, beyond,
               beyond == 1 ? "is" : "are");
        append_name(text, bytes, *q);
        between = ",";
    }
    if (frames == 0 || *between != ',')
        return false;

    append(text, bytes, ". %d are needed:", LAB_TAIL_LEAST);
    between = "";
    for (const unsigned *q = per_mille; *q; q++) {
        if (lab_tail_beyond(frames, *q) >= LAB_TAIL_LEAST)
            continue;
        append(text, bytes, "%s %" PRIu64 "%s for ", between, frames_for(*q), of);
        append_name(text, bytes, *q);
        between = ",";
        of = "";
    }
    append(text, bytes, ".");
    return true;
}

bool lab_blocks_warning(uint64_t blocks, const char *what, char *text, size_t bytes)
{
    if (blocks < 2 || blocks >= LAB_BLOCKS_LEAST)
        return false;

    snprintf(text, bytes, "Too narrow: 95 %% intervals of %" PRIu64 " %s; use %d or more.", blocks,
             what, LAB_BLOCKS_LEAST);
    return true;
}
