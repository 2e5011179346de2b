/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_gaps.h"

/* More than one long interval in this many: the frame rate varies. */
enum { VARIABLE_SHARE = 4 };

void frame_gaps_begin(struct frame_gaps *gaps, double interval)
{
    *gaps = (struct frame_gaps){.before = FRAME_GAPS_NO_TIME};
    if (interval > 0)
        gaps->interval = interval;
}

/* How many frames are missing in an interval. Times are whole ticks, so that an interval is longer by
 * less than one. */
static uint64_t missing_in(const struct frame_gaps *gaps, double ticks)
{
    if (gaps->interval <= 0 || ticks < 1.5 * gaps->interval || ticks < gaps->interval + 1)
        return 0;
    const double missing = ticks / gaps->interval - 0.5; /* rounded, without the frame at its end */
    return missing < 1e15 ? (uint64_t)missing : (uint64_t)1e15;
}

void frame_gaps_add(struct frame_gaps *gaps, uint64_t frame, int64_t time)
{
    const int64_t before = gaps->before;
    gaps->before = time;
    if (time == FRAME_GAPS_NO_TIME || before == FRAME_GAPS_NO_TIME)
        return;

    if (time <= before) {
        if (!gaps->backwards++)
            gaps->first_backwards = frame;
        return;
    }

    const double ticks = (double)time - (double)before;
    if (gaps->interval <= 0)
        gaps->interval = ticks;
    gaps->intervals++;

    const uint64_t missing = missing_in(gaps, ticks);
    if (!missing)
        return;
    if (!gaps->gaps++)
        gaps->first = frame;
    gaps->missing += missing;
}

uint64_t frame_gaps_until(const struct frame_gaps *gaps, int64_t end)
{
    if (gaps->before == FRAME_GAPS_NO_TIME || end <= gaps->before)
        return 0;

    /* An edit may cut a frame short, so that only whole intervals count. The first is the last frame's
     * own. */
    const double ticks = (double)end - (double)gaps->before;
    const uint64_t missing = missing_in(gaps, ticks);
    if (missing && ticks + 1 < (1.95 + (double)(missing - 1)) * gaps->interval)
        return missing - 1;
    return missing;
}

bool frame_gaps_found(const struct frame_gaps *gaps)
{
    /* A few gaps in a short film are gaps all the same. */
    return gaps->gaps && (gaps->gaps <= 2 || gaps->gaps * VARIABLE_SHARE <= gaps->intervals);
}
