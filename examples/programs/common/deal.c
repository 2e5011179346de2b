/* SPDX-License-Identifier: Apache-2.0 */
#include "deal.h"

#include <stdlib.h>
#include <string.h>

bool deal_begin(struct deal *deal, uint32_t ranks, uint64_t frames, const struct deal_range *done,
                uint64_t done_count)
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

/* Frames a second of all ranks; one that has not told its speed counts as the mean of those that have. 0 = none has.
 * `mean`: of those; `all_told`: all have. */
static double speed_of_all(const struct deal *deal, double *mean, bool *all_told)
{
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t r = 0; r < deal->rank_count; r++)
        if (deal->seconds_per_frame[r] > 0) {
            sum += 1 / deal->seconds_per_frame[r];
            known++;
        }
    *mean = known ? sum / known : 0;
    *all_told = known == deal->rank_count;
    return *mean * deal->rank_count;
}

struct deal_range deal_next(struct deal *deal, uint32_t rank)
{
    uint64_t left = 0, largest = 0;
    for (uint64_t i = 0; i < deal->left_count; i++) {
        left += deal->left[i].count;
        if (deal->left[i].count > deal->left[largest].count)
            largest = i;
    }
    if (!left || rank >= deal->rank_count)
        return (struct deal_range){0, 0};
    double mean;
    bool all_told;
    const double all = speed_of_all(deal, &mean, &all_told), own = deal->seconds_per_frame[rank];
    const double speed = own > 0 ? 1 / own : mean;
    double wanted = (double)left / deal->rank_count / DEAL_FIRST_PART;
    wanted = wanted < DEAL_FIRST_MOST ? wanted : DEAL_FIRST_MOST;
    if (own > 0) {
        /* What others can do may be far more than the mean of the first that tell. */
        wanted = all_told ? (double)left * speed / all / 2 : 0;
        wanted = wanted < speed * DEAL_MOST_SECONDS ? wanted : speed * DEAL_MOST_SECONDS;
        wanted = wanted > speed * DEAL_LEAST_SECONDS ? wanted : speed * DEAL_LEAST_SECONDS;
    }
    uint64_t count = wanted < 1 ? 1 : wanted > (double)left ? left : (uint64_t)wanted;
    struct deal_range *from = &deal->left[largest];
    if (count > from->count ||
        (speed > 0 && (double)(from->count - count) < speed * DEAL_LEAST_SECONDS / 4))
        count = from->count; /* what would be left is not worth a beginning */
    const struct deal_range range = {from->first, count};
    from->first += count;
    from->count -= count;
    return range;
}
