/* `chunks`: the whole frame is a pool, and each free device takes the next chunk (dynamic
 * self-scheduling). All chunks have one size. The policy learns nothing. Every chunk costs a
 * launch, and the frame ends with the last chunk of the slowest device. Without a pool, rows are
 * split by the speeds of warm-up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "split/layout.h"
#include "policies.h"
#include "split/strict_fp.h"

enum { CHUNKS_PER_FRAME = 32 };

struct state {
    uint32_t chunk_rows; /* 0 = CHUNKS_PER_FRAME of the frame */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    (void)view;
    struct state *state = memory;

    if (options)
        state->chunk_rows = options->chunk_rows;
    return COX_OK;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)memory;
    return cox__layout_pool(view, out);
}

static void next(void *memory, const struct cox_sched_view *view,
                 const struct cox_chunk_request *offer, struct cox_chunk *out)
{
    const struct state *state = memory;
    uint32_t rows = view->rows / CHUNKS_PER_FRAME;

    if (state->chunk_rows)
        rows = state->chunk_rows;
    out->rows = cox__layout_chunk(view, offer, rows);
}

const struct cox_policy cox__policy_chunks = {
    .name = "chunks", .state_bytes = state_bytes, .init = init, .split = split, .assign = next};
