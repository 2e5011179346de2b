/* SPDX-License-Identifier: Apache-2.0 */
#include "by_seed.h"
#include "common/quantiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- By seeds --------------------------------------------------------------------------------- */

bool lab_by_seed_fill(struct lab_by_seed *out, const double *periods, size_t frames, uint32_t seeds)
{
    double *sorted = malloc(frames * sizeof *sorted);

    lab_by_seed_free(out);
    out->mean_ns = malloc(seeds * sizeof *out->mean_ns);
    out->p99_ns = malloc(seeds * sizeof *out->p99_ns);
    if (!sorted || !out->mean_ns || !out->p99_ns) {
        free(sorted);
        return false;
    }

    for (uint32_t s = 0; s < seeds; s++) {
        const double *own = periods + s * frames;
        double sum = 0;

        for (size_t f = 0; f < frames; f++) {
            lab_blocks_add(&out->blocks, own[f], s);
            sum += own[f];
        }

        memcpy(sorted, own, frames * sizeof *sorted);
        out->mean_ns[s] = sum / (double)frames;
        out->p99_ns[s] = percentile_of(sorted, frames, 99);
    }

    out->seeds = seeds;
    free(sorted);
    return !out->blocks.failed;
}

void lab_by_seed_free(struct lab_by_seed *by_seed)
{
    lab_blocks_free(&by_seed->blocks);
    free(by_seed->mean_ns);
    free(by_seed->p99_ns);
    *by_seed = (struct lab_by_seed){.seeds = 0};
}

/* --- Certainty -------------------------------------------------------------------------------- */

/* The ratios of each seed. `scratch` has room for them. */
static struct lab_seed_spread spread_of(const double *own, const double *first, uint32_t seeds,
                                        double *scratch)
{
    for (uint32_t s = 0; s < seeds; s++)
        scratch[s] = own[s] / first[s];

    const double median = quantile_of(scratch, seeds, 0.5); /* sorts */
    return (struct lab_seed_spread){scratch[0], median, scratch[seeds - 1]};
}

bool lab_certainty_of(struct lab_by_seed *own, struct lab_by_seed *first, struct lab_certainty *out)
{
    const struct lab_seed_spread unknown = {NAN, NAN, NAN};

    *out = (struct lab_certainty){
        .over_first = lab_no_pair, .mean_of_seeds = unknown, .p99_of_seeds = unknown};
    if (!lab_bootstrap(&own->blocks, NULL, &out->of))
        return false;
    if (own == first || first->seeds != own->seeds)
        return true;

    double *scratch = malloc(own->seeds * sizeof *scratch);
    if (!scratch)
        return false;

    out->mean_of_seeds = spread_of(own->mean_ns, first->mean_ns, own->seeds, scratch);
    out->p99_of_seeds = spread_of(own->p99_ns, first->p99_ns, own->seeds, scratch);
    free(scratch);
    return lab_bootstrap_pair(&own->blocks, &first->blocks, &out->over_first);
}
