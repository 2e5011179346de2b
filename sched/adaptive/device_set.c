/* The table of device sets that were in use or on trial. It holds the newest ones; the oldest entry is replaced first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device_set.h"
#include "split/clip.h"
#include "split/strict_fp.h"

static const double REGRET = 0.003;                  /* share of all time that may go into trials that lose */
static const double LOSS_MOST = 4;                   /* frame times that one trial may count for */
enum { PAUSE_MIN = 64, PAUSE_MAX = 1024, GAP = 16 }; /* frames */

const struct cox__device_set *cox__device_sets_find(const struct cox__device_sets *sets, uint32_t devices)
{
    for (uint32_t i = 0; i < COX__DEVICE_SETS && sets->entries[i].devices != 0; i++) /* free entries come last */
        if (sets->entries[i].devices == devices)
            return &sets->entries[i];
    return NULL;
}

struct cox__device_set *cox__device_sets_entry(struct cox__device_sets *sets, uint32_t devices)
{
    uint32_t at = COX__DEVICE_SETS;
    for (uint32_t i = 0; i < COX__DEVICE_SETS; i++) {
        if (sets->entries[i].devices == devices)
            return &sets->entries[i];
        if (sets->entries[i].devices == 0 && at == COX__DEVICE_SETS)
            at = i;
    }
    while (at == COX__DEVICE_SETS) { /* the oldest, but not the one in use */
        if (sets->entries[sets->next].devices != sets->in_use)
            at = sets->next;
        sets->next = (sets->next + 1) % COX__DEVICE_SETS;
    }
    sets->entries[at] = (struct cox__device_set){.devices = devices, .pause = PAUSE_MIN};
    return &sets->entries[at];
}

void cox__device_sets_lost(struct cox__device_sets *sets, uint32_t devices, uint64_t frame, uint32_t trial_frames,
                           double loss)
{
    struct cox__device_set *set = cox__device_sets_entry(sets, devices);
    set->due = frame + (uint64_t)set->pause * trial_frames;
    set->pause = set->pause * 2 > PAUSE_MAX ? PAUSE_MAX : set->pause * 2;
    sets->due = frame + GAP + (uint64_t)(cox__clip(loss, 0, LOSS_MOST) * trial_frames / REGRET);
}
