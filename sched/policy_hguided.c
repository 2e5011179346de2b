/* `hguided`: EngineCL's HGuided. The whole frame is a pool, and a free device takes
 *
 *     chunk = remaining * P_d / (K * sum of P),  K = 2,
 *
 * at least one granule: large chunks first, small ones towards the end, in proportion to computing powers P that are given
 * beforehand and stay for the session. The powers here are the speeds of warm-up, else the hints. Where nobody hands out
 * rows while a frame runs, rows go by the powers.
 *
 * Source: R. Nozal, J. L. Bosque, R. Beivide: EngineCL: usability and performance in heterogeneous computing, 2020; the
 * algorithm: B. Perez et al.: Simplifying programming and load balancing of data parallel applications on heterogeneous
 * systems, 2016.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "policies.h"
#include "strict_fp.h"

static const double SHARE_DIVISOR = 2.0; /* K */

struct state {
    uint32_t device_count;
    bool powered;
    double powers[]; /* rows per nanosecond, or in proportion */
};

static size_t hguided_bytes(uint32_t device_count)
{
    return sizeof(struct state) + device_count * sizeof(double);
}

static cox_status hguided_init(void *memory, const struct cox_sched_view *view,
                               const struct cox_policy_options *options)
{
    (void)options;
    struct state *state = memory;
    state->device_count = view->device_count;
    return COX_OK;
}

static cox_status hguided_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    if (!state->powered) { /* the first frame: warm-up is over, which it was not at init */
        double ns_per_row[COX_DEVICES_MAX];
        (void)cox__layout_guess(view, ns_per_row);
        for (uint32_t d = 0; d < view->device_count; d++)
            state->powers[d] = 1.0 / ns_per_row[d];
        state->powered = true;
    }
    return cox__layout_pool(view, out);
}

static void hguided_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                         struct cox_grant *out)
{
    const struct state *state = memory;
    double sum = 0;
    for (uint32_t d = 0; d < state->device_count; d++)
        sum += view->devices[d].usable ? state->powers[d] : 0;
    double share = sum > 0 ? state->powers[offer->device] / (SHARE_DIVISOR * sum) : 1.0;
    out->rows = offer->backup ? 0 : cox__layout_chunk(view, offer, (uint32_t)(offer->rows * share));
}

const struct cox_policy cox__policy_hguided = {.name = "hguided",
                                               .state_bytes = hguided_bytes,
                                               .init = hguided_init,
                                               .split = hguided_split,
                                               .next = hguided_next};
