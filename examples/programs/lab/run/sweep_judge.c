/* Judges the samples: each split's time without the effects of the rounds, and the best split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_TURNS = 2, ENOUGH_TURNS = 4, POLISH_PASSES = 5 };

/* A split gets no more samples if its median is behind the best one by this share of it, and by
 * this many standard errors of the medians. */
static const double behind = 0.02, errors = 2.5;

/* Splits this close are neighbours, as a share of the frame's rows. */
static const double smooth_over = 0.005;

struct lab_spread lab_spread_of(const double *ns, size_t count)
{
    struct lab_spread spread = {.count = count};
    double *sorted = count ? malloc(count * sizeof *sorted) : NULL;

    if (!sorted)
        return (struct lab_spread){.count = 0};

    for (size_t i = 0; i < count; i++) {
        sorted[i] = ns[i];
        spread.mean_ns += ns[i] / (double)count;
    }

    spread.p50_ns = quantile_of(sorted, count, 0.5);
    spread.p90_ns = quantile_of(sorted, count, 0.9);
    spread.p99_ns = quantile_of(sorted, count, 0.99);
    spread.p999_ns = quantile_of(sorted, count, 0.999);

    free(sorted);
    return spread;
}

/* --- Rounds ----------------------------------------------------------------------------------- */

/* Whether the rounds' effects are those of this candidate: a device alone is slowed down by other
 * causes than several together. */
static bool is_split(const struct lab_sweep *sweep, uint32_t candidate)
{
    return candidate >= sweep->device_count;
}

/* Samples are sorted by round, for one pass over the rounds. */
struct sample {
    uint32_t candidate, round;
    double log_ns;
};

struct polish {
    size_t count;
    struct sample *samples; /* of the splits, by rounds */
    double *scratch;
    double level[LAB_CANDIDATES_MAX];
    double *effect; /* of each round, on logarithms */
};

static int by_round(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return (a->round > b->round) - (a->round < b->round);
}

/* Estimate each split's time without the rounds' effects. */
static void level(const struct lab_sweep *sweep, struct polish *p)
{
    for (uint32_t c = sweep->device_count; c < sweep->count; c++) {
        const struct lab_candidate *candidate = &sweep->candidates[c];

        for (size_t i = 0; i < candidate->count; i++)
            p->scratch[i] = log(candidate->ns[i]) - p->effect[candidate->rounds[i]];

        p->level[c] = quantile_of(p->scratch, candidate->count, 0.5);
    }
}

/* Estimate the rounds' effects from the splits' times; the median round's is 0. */
static void judge_rounds(uint32_t rounds, struct polish *p)
{
    for (size_t from = 0, to; from < p->count; from = to) {
        uint32_t round = p->samples[from].round;

        for (to = from; to < p->count && p->samples[to].round == round; to++)
            p->scratch[to - from] = p->samples[to].log_ns - p->level[p->samples[to].candidate];
        p->effect[round] = quantile_of(p->scratch, to - from, 0.5);
    }

    memcpy(p->scratch, p->effect, rounds * sizeof *p->scratch);
    double middle = quantile_of(p->scratch, rounds, 0.5);

    for (uint32_t r = 0; r < rounds; r++)
        p->effect[r] -= middle;
}

/* The effects of the rounds as factors. The caller frees them; NULL if out of memory. A round
 * without samples of splits has the factor 1. */
static double *round_effects(const struct lab_sweep *sweep)
{
    struct polish p = {.count = 0};
    uint32_t rounds = sweep->round + 1;
    size_t room = rounds;

    for (uint32_t c = 0; c < sweep->count; c++)
        room += sweep->candidates[c].count;

    p.samples = calloc(room, sizeof *p.samples);
    p.scratch = calloc(room, sizeof *p.scratch);
    p.effect = calloc(rounds, sizeof *p.effect);
    if (p.samples && p.scratch && p.effect) {
        for (uint32_t c = 0; c < sweep->count; c++)
            for (size_t i = 0; is_split(sweep, c) && i < sweep->candidates[c].count; i++)
                p.samples[p.count++] = (struct sample){c, sweep->candidates[c].rounds[i],
                                                       log(sweep->candidates[c].ns[i])};

        qsort(p.samples, p.count, sizeof *p.samples, by_round);

        for (int pass = 0; pass < POLISH_PASSES && p.count; pass++) {
            level(sweep, &p);
            judge_rounds(rounds, &p);
        }

        for (uint32_t r = 0; r < rounds; r++)
            p.effect[r] = exp(p.effect[r]);
    } else {
        free(p.effect);
        p.effect = NULL;
    }

    free(p.samples);
    free(p.scratch);
    return p.effect;
}

enum { EVEN, ODD, ALL };

/* A candidate's samples, of every other turn or all, in a typical round; `scratch` has room for
 * them. Devices alone need no correction: they run in every round. */
static struct lab_spread spread_of(const struct lab_sweep *sweep, uint32_t candidate, int half,
                                   const double *effects, double *scratch)
{
    const struct lab_candidate *c = &sweep->candidates[candidate];
    size_t count = 0;

    for (size_t i = 0; i < c->count; i++) {
        double effect = 1;

        if (is_split(sweep, candidate))
            effect = effects[c->rounds[i]];
        if (half == ALL || (int)(i / sweep->turn & 1) == half)
            scratch[count++] = c->ns[i] / effect;
    }
    return lab_spread_of(scratch, count);
}

/* The three spreads of each candidate, and the mean round's time over the median round's. */
struct judged {
    struct lab_spread spreads[3][LAB_CANDIDATES_MAX];
    double mean_effect;
};

static bool judge(const struct lab_sweep *sweep, struct judged *out)
{
    size_t most = 1;

    for (uint32_t c = 0; c < sweep->count; c++)
        if (sweep->candidates[c].count > most)
            most = sweep->candidates[c].count;

    double *effects = round_effects(sweep), *scratch = malloc(most * sizeof *scratch);
    bool good = effects && scratch;

    out->mean_effect = 0;
    for (uint32_t r = 0; good && r <= sweep->round; r++)
        out->mean_effect += effects[r] / (sweep->round + 1);

    for (uint32_t c = 0; good && c < sweep->count; c++)
        for (int half = EVEN; half <= ALL; half++)
            out->spreads[half][c] = spread_of(sweep, c, half, effects, scratch);

    free(effects);
    free(scratch);
    return good;
}

bool lab_sweep_spreads(const struct lab_sweep *sweep, struct lab_spread spreads[LAB_CANDIDATES_MAX])
{
    struct judged judged = {.mean_effect = 0};

    if (!judge(sweep, &judged))
        return false;
    memcpy(spreads, judged.spreads[ALL], sweep->count * sizeof *spreads);
    return true;
}

/* --- The best --------------------------------------------------------------------------------- */

uint32_t lab_sweep_best(const struct lab_spread *spreads, uint32_t count)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t c = 0; c < count; c++)
        if (spreads[c].count && (best == UINT32_MAX || spreads[c].p50_ns < spreads[best].p50_ns))
            best = c;
    return best;
}

bool lab_sweep_wanted(const struct lab_sweep *sweep, uint32_t candidate,
                      const struct lab_spread *spreads)
{
    uint32_t best_one = lab_sweep_best(spreads, sweep->count);
    const struct lab_spread *c = &spreads[candidate];
    if (candidate < sweep->kept || c->count < (size_t)FEW_TURNS * sweep->turn ||
        best_one == UINT32_MAX)
        return true;

    const struct lab_spread *best = &spreads[best_one];
    /* The error of a median of n values is 1.25 sigma / sqrt(n); nine of ten values lie below
     * 1.28 sigma. */
    double sigma = (best->p90_ns - best->p50_ns) / 1.28;
    double error = 1.25 * sigma * sqrt(1.0 / (double)best->count + 1.0 / (double)c->count);
    return c->p50_ns <= best->p50_ns + fmax(behind * best->p50_ns, errors * error);
}

/* The distance of two splits: the share of the frame's rows that change devices. */
static double distance(const struct lab_sweep *sweep, uint32_t left, uint32_t right)
{
    uint32_t moved = 0;

    for (uint32_t d = 0; d < sweep->device_count; d++) {
        uint32_t a = sweep->candidates[left].rows[d], b = sweep->candidates[right].rows[d];
        if (a > b)
            moved += a - b;
    }
    return (double)moved / sweep->rows;
}

/* Whether two splits use the same devices. */
static bool have_same_devices(const struct lab_sweep *sweep, uint32_t left, uint32_t right)
{
    for (uint32_t d = 0; d < sweep->device_count; d++)
        if (!sweep->candidates[left].rows[d] != !sweep->candidates[right].rows[d])
            return false;
    return true;
}

/* A split's time, smoothed with its neighbours': the minimum of single splits would follow the
 * noise. The weights decrease as 1 / (1 + x^2)^2. 0 if the split has no samples. */
static double smoothed(const struct lab_sweep *sweep, const struct lab_spread *spreads,
                       uint32_t candidate)
{
    double sum = 0, weights = 0;

    if (!spreads[candidate].count)
        return 0;

    for (uint32_t c = 0; c < sweep->count; c++) {
        double x = distance(sweep, candidate, c) / smooth_over;
        double weight = (double)spreads[c].count / ((1 + x * x) * (1 + x * x));

        if (!have_same_devices(sweep, candidate, c) || !spreads[c].count)
            continue;

        sum += weight * spreads[c].p50_ns;
        weights += weight;
    }
    return sum / weights;
}

/* The split with the best smoothed time; UINT32_MAX if no split has one. Splits with few turns are
 * left out: the frames of a turn are alike, so all of their samples may be lucky. */
static uint32_t choose(const struct lab_sweep *sweep, const struct lab_spread *spreads)
{
    uint32_t best = UINT32_MAX;
    double best_ns = 0;
    size_t most = 0, enough = (size_t)ENOUGH_TURNS * sweep->turn;

    for (uint32_t c = 0; c < sweep->count; c++)
        if (spreads[c].count > most)
            most = spreads[c].count;

    if (enough > most / 2)
        enough = most / 2;
    for (uint32_t c = 0; c < sweep->count; c++) {
        double ns = 0;

        if (spreads[c].count >= enough)
            ns = smoothed(sweep, spreads, c);
        if (ns > 0 && (best == UINT32_MAX || ns < best_ns)) {
            best = c;
            best_ns = ns;
        }
    }

    return best;
}

bool lab_sweep_oracle(const struct lab_sweep *sweep, struct lab_swept *out)
{
    struct judged judged = {.mean_effect = 0};
    *out = (struct lab_swept){.candidate = UINT32_MAX};

    if (!judge(sweep, &judged))
        return false;
    const struct lab_spread *all = judged.spreads[ALL], *even = judged.spreads[EVEN],
                            *odd = judged.spreads[ODD];

    for (uint32_t c = 0; c < sweep->count; c++)
        out->swept += all[c].count > 0;

    out->candidate = choose(sweep, all);
    if (out->candidate == UINT32_MAX)
        return false;
    out->spread = all[out->candidate];

    uint32_t by_even = choose(sweep, even), by_odd = choose(sweep, odd);
    if (by_even != UINT32_MAX && by_odd != UINT32_MAX && odd[by_even].count && even[by_odd].count) {
        /* Otherwise there are too few samples for halves. */
        out->spread.p50_ns = (odd[by_even].p50_ns + even[by_odd].p50_ns) / 2;
        out->spread.mean_ns = (odd[by_even].mean_ns + even[by_odd].mean_ns) / 2;
    }

    if (is_split(sweep, out->candidate))
        out->spread.mean_ns *= judged.mean_effect;
    /* A device alone may be faster than any split. */
    for (uint32_t d = 0; d < sweep->device_count; d++)
        if (all[d].count && all[d].p50_ns < out->spread.p50_ns) {
            out->candidate = d;
            out->spread = all[d];
        }

    return true;
}
