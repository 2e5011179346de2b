/* Trials of other plans, by blocks of frames before, during and after.
 * SPDX-License-Identifier: Apache-2.0 */
#include "trials.h"
#include "split/clip.h"
#include "split/strict_fp.h"

static const double GAIN_ONCE = 0.05;   /* that is believed after one trial, */
static const double GAIN_TWICE = 0.006; /* and after two */
/* shortest frame over those before, from which on a trial ends early */
static const double HOPELESS = 1.15;
/* the same for one frame, if the longest before was shorter, too */
static const double HOPELESS_ONCE = 1.7;
static const double LOSS = 0.004; /* part of the time that trials may cost */
enum { PAUSE_FIRST = 8, PAUSE_MIN = 32, PAUSE_MAX = 1024, EARLY = 2, OWN_TIMES = 3 };

void cox__trials_init(struct cox__trials *trials, struct cox__trial_plan plan)
{
    *trials = (struct cox__trials){.in_use = plan, .due = PAUSE_FIRST};
}

void cox__trials_use(struct cox__trials *trials, struct cox__trial_plan plan)
{
    *trials = (struct cox__trials){.in_use = plan, .serial = trials->serial, .due = trials->due};
}

static int find(const struct cox__trials *trials, struct cox__trial_plan plan)
{
    for (int i = 0; i < COX__TRIAL_PLANS; i++)
        if (trials->plans[i].plan.devices && cox__trials_same(trials->plans[i].plan, plan))
            return i;
    return -1;
}

bool cox__trials_due(const struct cox__trials *trials, struct cox__trial_plan plan, uint64_t frame)
{
    const int known = find(trials, plan);
    return trials->phase == COX__TRIAL_IDLE && frame >= trials->due && plan.devices &&
           !cox__trials_same(plan, trials->in_use) &&
           (known < 0 || frame >= trials->plans[known].due);
}

void cox__trials_begin(struct cox__trials *trials, struct cox__trial_plan plan, uint32_t block,
                       double worth)
{
    trials->tried = plan;
    trials->worth = worth;
    const int known = find(trials, plan);
    block *= known >= 0 && trials->plans[known].trials ? 2 : 1;
    trials->block = block < COX__TRIAL_BLOCK_MAX ? block : COX__TRIAL_BLOCK_MAX;
    trials->phase = COX__TRIAL_BEFORE;
    trials->split = trials->tried_split = 0;
    trials->serial++;
    for (int i = 0; i < 3; i++)
        trials->blocks[i].frames = 0;
}

struct cox__trial_plan cox__trials_plan(struct cox__trials *trials, uint64_t frame,
                                        uint32_t overlap, uint32_t settle)
{
    const bool during = trials->phase == COX__TRIAL_DURING;
    const uint32_t at = frame % COX__TRIAL_RING;
    trials->split += trials->phase != COX__TRIAL_IDLE;
    trials->tried_split += during;
    trials->ring[at].frame = frame;
    trials->ring[at].serial = trials->serial;
    trials->ring[at].phase = trials->phase;
    trials->ring[at].alone = trials->split > overlap;
    trials->ring[at].counts = trials->split >
                              overlap + (trials->phase > COX__TRIAL_BEFORE ? settle : 0);
    return during ? trials->tried : trials->in_use;
}

/* Add a time to a block, in order. */
static void add(struct cox__trials *trials, int block, double time)
{
    double *times = trials->blocks[block].times;
    uint32_t at = trials->blocks[block].frames++;
    for (; at > 0 && times[at - 1] > time; at--)
        times[at] = times[at - 1];
    times[at] = time;
}

/* The mean of the middle half of a block, which neither a late frame nor a quick one moves; 0 = it
 * is empty. */
static double middle(const struct cox__trials *trials, int block)
{
    const uint32_t frames = trials->blocks[block].frames, out = frames / 4;
    double sum = 0;
    for (uint32_t i = out; i < frames - out; i++)
        sum += trials->blocks[block].times[i];
    return frames ? sum / (frames - 2 * out) : 0;
}

static enum cox__trial_verdict judge(struct cox__trials *trials, uint64_t frame)
{
    const double other = middle(trials, COX__TRIAL_DURING - 1),
                 before = middle(trials, COX__TRIAL_BEFORE - 1);
    const double after = middle(trials, COX__TRIAL_AFTER - 1),
                 own = after > 0 ? (before + after) / 2 : before;
    const double ratio = own > 0 ? other / own : 1;
    int at = find(trials, trials->tried);
    if (at < 0) {
        at = (int)(trials->next++ % COX__TRIAL_PLANS);
        trials->plans[at].plan = trials->tried;
        trials->plans[at].trials = 0;
        trials->plans[at].pause = PAUSE_MIN;
    }
    const uint32_t counted = trials->plans[at].trials < 3 ? trials->plans[at].trials++ : 2;
    trials->plans[at].ratio = (trials->plans[at].ratio * counted + ratio) / (counted + 1);
    trials->phase = COX__TRIAL_IDLE;
    const double known = trials->plans[at].ratio;
    const bool won = ratio < 1 - GAIN_ONCE || (counted && ratio < 1 && known < 1 - GAIN_TWICE);
    if (won) {
        /* what it was compared with is what may be tried from now on */
        trials->plans[at].plan = trials->in_use;
        trials->plans[at].ratio = 1 / cox__clip(ratio, 0.1, 10);
        trials->plans[at].pause = PAUSE_MIN;
        trials->in_use = trials->tried;
        for (int i = 0; i < COX__TRIAL_PLANS; i++) /* the others were compared with another plan */
            trials->plans[i].trials = trials->plans[i].trials > 1;
    }
    trials->plans[at].due = frame + (known < 1 ? PAUSE_MIN / 2 : trials->plans[at].pause);
    if (known >= 1)
        trials->plans[at].pause = trials->plans[at].pause * 2 > PAUSE_MAX
                                      ? PAUSE_MAX
                                      : trials->plans[at].pause * 2;
    trials->due = frame + 4 + (uint64_t)(cox__clip(ratio - 1, 0, 4) * trials->tried_split / LOSS);
    return won ? COX__TRIAL_WON : COX__TRIAL_LOST;
}

enum cox__trial_verdict cox__trials_tell(struct cox__trials *trials, uint64_t frame, double time)
{
    const uint32_t at = frame % COX__TRIAL_RING;
    if (trials->ring[at].frame != frame || trials->ring[at].serial != trials->serial ||
        trials->ring[at].phase != trials->phase || trials->phase == COX__TRIAL_IDLE)
        return COX__TRIAL_GOES_ON;
    const int block = (int)trials->phase - 1;
    const bool during = trials->phase == COX__TRIAL_DURING;
    if (during && trials->ring[at].alone) {
        const double before = middle(trials, 0);
        if (time > HOPELESS_ONCE * before &&
            time > trials->blocks[0].times[trials->blocks[0].frames - 1]) {
            trials->blocks[block].frames = 0;
            add(trials, block, time);
            return judge(trials, frame);
        }
    }
    if (!trials->ring[at].counts)
        return COX__TRIAL_GOES_ON;
    add(trials, block, time);
    if (during && trials->blocks[block].frames >= EARLY &&
        trials->blocks[block].times[0] > HOPELESS * middle(trials, 0))
        return judge(trials, frame);
    const uint32_t enough = during ? trials->block
                                   : OWN_TIMES * trials->block; /* the plan in use costs nothing */
    if (trials->blocks[block].frames <
        (enough < COX__TRIAL_BLOCK_MAX ? enough : COX__TRIAL_BLOCK_MAX))
        return COX__TRIAL_GOES_ON;
    if (trials->phase == COX__TRIAL_AFTER)
        return judge(trials, frame);
    if (trials->phase == COX__TRIAL_BEFORE && middle(trials, 0) <= trials->worth) {
        trials->phase = COX__TRIAL_IDLE;
        trials->due = frame + PAUSE_FIRST;
        return COX__TRIAL_GOES_ON;
    }
    trials->phase++;
    trials->split = 0;
    return COX__TRIAL_GOES_ON;
}
