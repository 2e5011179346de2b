/* SPDX-License-Identifier: Apache-2.0 */
#include "deal.h"

#include <stdlib.h>
#include <string.h>

/* A rank that has not told its speed gets this part of an equal share, and no more than four seconds of film: it may be
 * a hundred times slower than others. */
enum { FIRST_PART = 8, FIRST_MOST = 96 };

bool deal_begin(struct deal *deal, uint32_t ranks, uint64_t frames, const struct deal_range *done, uint64_t done_count)
{
    uint64_t at = 0;
    *deal = (struct deal){.rank_count = ranks};
    deal->seconds_per_frame = calloc(ranks, sizeof *deal->seconds_per_frame);
    deal->left = calloc(done_count + 1, sizeof *deal->left);
    if (!deal->seconds_per_frame || !deal->left) {
        deal_end(deal);
        return false;
    }
    for (uint64_t i = 0; i <= done_count; i++) {
        const uint64_t end = i < done_count ? done[i].first : frames;
        if (end > at)
            deal->left[deal->left_count++] = (struct deal_range){at, end - at};
        if (i < done_count)
            at = done[i].first + done[i].count;
    }
    return true;
}

void deal_end(struct deal *deal)
{
    free(deal->seconds_per_frame);
    free(deal->left);
    memset(deal, 0, sizeof *deal);
}

void deal_note(struct deal *deal, uint32_t rank, uint64_t frames, double seconds)
{
    if (rank >= deal->rank_count || !frames || !(seconds > 0))
        return;
    const double now = seconds / (double)frames;
    double *kept = &deal->seconds_per_frame[rank];
    *kept = *kept > 0 ? (*kept + now) / 2 : now;
}

/* Of a rank, or where it has told none the mean of those that have; 0 = nobody has. */
static double speed_of(const struct deal *deal, uint32_t rank)
{
    double sum = 0;
    uint32_t known = 0;
    if (deal->seconds_per_frame[rank] > 0)
        return 1 / deal->seconds_per_frame[rank];
    for (uint32_t r = 0; r < deal->rank_count; r++)
        if (deal->seconds_per_frame[r] > 0) {
            sum += 1 / deal->seconds_per_frame[r];
            known++;
        }
    return known ? sum / known : 0;
}

struct deal_range deal_next(struct deal *deal, uint32_t rank, double least_seconds)
{
    uint64_t left = 0, largest = 0;
    double all = 0;
    for (uint64_t i = 0; i < deal->left_count; i++) {
        left += deal->left[i].count;
        if (deal->left[i].count > deal->left[largest].count)
            largest = i;
    }
    if (!left || rank >= deal->rank_count)
        return (struct deal_range){0, 0};
    for (uint32_t r = 0; r < deal->rank_count; r++)
        all += speed_of(deal, r);
    const double speed = speed_of(deal, rank);
    double wanted = (double)left / deal->rank_count / FIRST_PART;
    wanted = wanted < FIRST_MOST ? wanted : FIRST_MOST;
    if (deal->seconds_per_frame[rank] > 0) {
        wanted = (double)left * speed / all / 2;
        wanted = wanted > speed * least_seconds ? wanted : speed * least_seconds;
    }
    uint64_t count = wanted < 1 ? 1 : wanted > (double)left ? left : (uint64_t)wanted;
    struct deal_range *from = &deal->left[largest];
    if (count > from->count || (speed > 0 && (double)(from->count - count) < speed * least_seconds / 4))
        count = from->count; /* what would be left is not worth a beginning */
    const struct deal_range range = {from->first, count};
    from->first += count;
    from->count -= count;
    return range;
}
