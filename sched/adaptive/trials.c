/* Trials of other plans, by blocks of frames before, during and after.
 * SPDX-License-Identifier: Apache-2.0 */
#include "trials.h"
#include "split/clip.h"
#include "split/strict_fp.h"

/* Least gain that is believed. Between 0.03 and 0.05 the means change by 0.03 %. A second trial for
 * smaller gains was worth nothing. */
static const double GAIN = 0.03;
/* Gain that needs no third block. Waiting for it made contending devices stay 2 % longer. */
static const double GAIN_CLEAR = 0.1;
/* A trial ends early if its shortest frame takes this many times as long as those before. */
static const double HOPELESS = 1.15;
/* Part of the time that trials may cost. 0.008 is slower by 0.02 %. */
static const double LOSS = 0.004;
/* Most frames until the next trial: a loss may have been a hiccup, too. */
static const double PAUSE_LOSS_MAX = 1024;
enum { PAUSE_FIRST = 8, PAUSE_MIN = 32, PAUSE_MAX = 256, EARLY = 2, OWN_TIMES = 3 };

void cox__trials_init(struct cox__trials *trials, struct cox__trial_plan plan)
{
    *trials = (struct cox__trials){.in_use = plan, .due = PAUSE_FIRST};
}

void cox__trials_use(struct cox__trials *trials, struct cox__trial_plan plan)
{
    *trials = (struct cox__trials){.in_use = plan, .serial = trials->serial, .due = trials->due};
}

/* The index of what is known about a plan; -1 = nothing. */
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

    trials->block = cox__min_u32(block, COX__TRIAL_BLOCK_MAX);
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
    uint32_t skipped = overlap;
    if (trials->phase > COX__TRIAL_BEFORE)
        skipped += settle;

    trials->split += trials->phase != COX__TRIAL_IDLE;
    trials->tried_split += during;

    trials->ring[at].frame = frame;
    trials->ring[at].serial = trials->serial;
    trials->ring[at].phase = trials->phase;
    trials->ring[at].counts = trials->split > skipped;

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

/* The mean of the middle half of a block, so that neither a late nor a quick frame moves it; 0 = it
 * is empty. */
static double middle(const struct cox__trials *trials, int block)
{
    const uint32_t frames = trials->blocks[block].frames, out = frames / 4;
    if (frames == 0)
        return 0;

    double sum = 0;
    for (uint32_t i = out; i < frames - out; i++)
        sum += trials->blocks[block].times[i];
    return sum / (frames - 2 * out);
}

/* The mean time of the frames with the tried plan, over that with the plan in use. */
static double measured_ratio(const struct cox__trials *trials)
{
    const double other = middle(trials, COX__TRIAL_DURING - 1);
    const double before = middle(trials, COX__TRIAL_BEFORE - 1);
    const double after = middle(trials, COX__TRIAL_AFTER - 1);
    double own = before;

    if (after > 0)
        own = (before + after) / 2;
    if (own > 0)
        return other / own;
    return 1;
}

/* End the trial: decide which plan is in use from now on, and when the other may be tried again. */
static enum cox__trial_verdict judge(struct cox__trials *trials, uint64_t frame)
{
    const double ratio = measured_ratio(trials);
    const bool won = ratio < 1 - GAIN;
    const struct cox__trial_plan loser = won ? trials->in_use : trials->tried;
    int at = find(trials, trials->tried);

    if (at < 0) {
        at = (int)(trials->next++ % COX__TRIAL_PLANS);
        trials->plans[at].pause = PAUSE_MIN;
    }
    if (won) {
        trials->plans[at].pause = PAUSE_MIN;
        trials->in_use = trials->tried;
    }

    trials->plans[at].plan = loser;
    trials->plans[at].due = frame + trials->plans[at].pause;
    trials->plans[at].pause = cox__double_pause(trials->plans[at].pause, PAUSE_MAX);

    const double loss = cox__clip(ratio - 1, 0, 1) * trials->tried_split;
    trials->due = frame + 4 + (uint64_t)cox__min(loss / LOSS, PAUSE_LOSS_MAX);
    trials->phase = COX__TRIAL_IDLE;
    return won ? COX__TRIAL_WON : COX__TRIAL_LOST;
}

void cox__trials_forget(struct cox__trials *trials, uint32_t devices)
{
    trials->due = 0;
    for (int i = 0; i < COX__TRIAL_PLANS; i++)
        if (trials->plans[i].plan.devices & devices) {
            trials->plans[i].due = 0;
            trials->plans[i].pause = PAUSE_MIN;
        }
}

enum cox__trial_verdict cox__trials_tell(struct cox__trials *trials, uint64_t frame, double time)
{
    const uint32_t at = frame % COX__TRIAL_RING;
    if (trials->ring[at].frame != frame || trials->ring[at].serial != trials->serial ||
        trials->ring[at].phase != trials->phase || trials->phase == COX__TRIAL_IDLE)
        return COX__TRIAL_GOES_ON;

    const int block = (int)trials->phase - 1;
    const bool during = trials->phase == COX__TRIAL_DURING;

    if (!trials->ring[at].counts)
        return COX__TRIAL_GOES_ON;
    add(trials, block, time);

    if (during && trials->blocks[block].frames >= EARLY &&
        trials->blocks[block].times[0] > HOPELESS * middle(trials, 0))
        return judge(trials, frame);

    /* Frames with the plan in use cost nothing, so those blocks are longer. */
    const uint32_t enough = during ? trials->block : OWN_TIMES * trials->block;
    if (trials->blocks[block].frames < cox__min_u32(enough, COX__TRIAL_BLOCK_MAX))
        return COX__TRIAL_GOES_ON;

    if (trials->phase == COX__TRIAL_AFTER)
        return judge(trials, frame);
    if (trials->phase == COX__TRIAL_BEFORE && middle(trials, 0) <= trials->worth) {
        trials->phase = COX__TRIAL_IDLE;
        trials->due = frame + PAUSE_FIRST;
        return COX__TRIAL_GOES_ON;
    }

    /* Drift matters only if the plans are about as fast. */
    if (during && (measured_ratio(trials) < 1 - GAIN_CLEAR || measured_ratio(trials) > 1))
        return judge(trials, frame);

    trials->phase++;
    trials->split = 0;
    return COX__TRIAL_GOES_ON;
}
