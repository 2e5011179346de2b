/* `chunks`: the whole frame is a pool of equal chunks, and whoever is free takes the next one: dynamic self-scheduling with
 * a fixed chunk. Knows nothing of the devices and learns nothing; every chunk costs a launch, and the frame ends with
 * the last chunk of the slowest device. Where nobody hands out rows while a frame runs, rows go by the speeds of warm-up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "policies.h"
#include "strict_fp.h"

enum { CHUNKS_PER_FRAME = 32 };

struct state {
    uint32_t chunk_rows; /* 0 = CHUNKS_PER_FRAME of the frame */
};

static size_t chunks_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status chunks_init(void *memory, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)view;
    struct state *state = memory;
    state->chunk_rows = options ? options->chunk_rows : 0;
    return COX_OK;
}

static cox_status chunks_split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)memory;
    return cox__layout_pool(view, out);
}

static void chunks_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out)
{
    const struct state *state = memory;
    uint32_t rows = state->chunk_rows ? state->chunk_rows : view->rows / CHUNKS_PER_FRAME;
    out->rows = offer->backup ? 0 : cox__layout_chunk(view, offer, rows);
}

const struct cox_policy cox__policy_chunks = {
    .name = "chunks", .state_bytes = chunks_bytes, .init = chunks_init, .split = chunks_split, .next = chunks_next};
