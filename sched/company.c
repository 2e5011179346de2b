/* The sets that were in use or on trial.
 * SPDX-License-Identifier: Apache-2.0 */
#include "company.h"
#include "clip.h"
#include "strict_fp.h"

static const double REGRET = 0.003; /* of all time may go into trials that lose */
static const double LOSS_MOST = 4;
enum { PAUSE_MIN = 64, PAUSE_MAX = 1024, GAP = 16 }; /* frames */

const struct cox__set *cox__company_find(const struct cox__company *company, uint32_t devices)
{
    for (uint32_t i = 0; i < COX__SETS && company->sets[i].devices != 0; i++) /* free entries come last */
        if (company->sets[i].devices == devices)
            return &company->sets[i];
    return NULL;
}

struct cox__set *cox__company_entry(struct cox__company *company, uint32_t devices)
{
    uint32_t at = COX__SETS;
    for (uint32_t i = 0; i < COX__SETS; i++) {
        if (company->sets[i].devices == devices)
            return &company->sets[i];
        if (company->sets[i].devices == 0 && at == COX__SETS)
            at = i;
    }
    while (at == COX__SETS) { /* the oldest, but not the one in use */
        if (company->sets[company->next].devices != company->in_use)
            at = company->next;
        company->next = (company->next + 1) % COX__SETS;
    }
    company->sets[at] = (struct cox__set){.devices = devices, .pause = PAUSE_MIN};
    return &company->sets[at];
}

void cox__company_lost(struct cox__company *company, uint32_t devices, uint64_t frame, uint32_t trial_frames,
                       double loss)
{
    struct cox__set *set = cox__company_entry(company, devices);
    set->due = frame + (uint64_t)set->pause * trial_frames;
    set->pause = set->pause * 2 > PAUSE_MAX ? PAUSE_MAX : set->pause * 2;
    company->due = frame + GAP + (uint64_t)(cox__clip(loss, 0, LOSS_MOST) * trial_frames / REGRET);
}
