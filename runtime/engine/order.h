/* The frames of a session under way, in submission order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_ORDER_H
#define COX_ENGINE_ORDER_H

#include "invariant.h"
#include "state.h"

/* The i-th frame under way; 0 is the oldest. */
static inline struct cox__frame *cox__order_at(const struct cox__order *order, uint32_t i)
{
    COX_INVARIANT(i < order->count);
    return order->ring[(order->first + i) % COX__ORDER_MAX];
}

/* Add the newest frame. */
static inline void cox__order_push(struct cox__order *order, struct cox__frame *frame)
{
    COX_INVARIANT(order->count < COX__ORDER_MAX);
    order->ring[(order->first + order->count++) % COX__ORDER_MAX] = frame;
}

/* Take the oldest frame off. */
static inline void cox__order_pop(struct cox__order *order)
{
    COX_INVARIANT(order->count > 0);
    order->first = (order->first + 1) % COX__ORDER_MAX;
    order->count--;
}

#endif
