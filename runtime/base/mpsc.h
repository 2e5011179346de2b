/* Intrusive lock-free queue with many producers and one consumer: a stack that the consumer takes
 * whole.
 *
 * A push links the node in front of the head by compare-exchange. A take exchanges the head with
 * NULL and reverses the list, so that nodes come out in push order. The consumer never pops a
 * single node, so there is no ABA problem. If a node is pushed again after it was taken, it belongs
 * to the next batch.
 *
 * With `queued`, a node can be pushed from several places and arrives once. The consumer clears it
 * before it handles the node, so a push during the handling is not lost.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_MPSC_H
#define COX_BASE_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct cox__mpsc_node {
    struct cox__mpsc_node *next;
    atomic_bool queued;
};

struct cox__mpsc {
    _Atomic(struct cox__mpsc_node *) head;
};

/* Returns true if the queue was empty: the consumer needs a wake-up. Sequentially consistent, so
 * that the caller can check afterwards whether the consumer is awake. Any thread. */
static inline bool cox__mpsc_push(struct cox__mpsc *queue, struct cox__mpsc_node *node)
{
    if (atomic_exchange_explicit(&node->queued, true, memory_order_acq_rel))
        return false;

    struct cox__mpsc_node *head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    do
        node->next = head;

    while (!atomic_compare_exchange_weak_explicit(&queue->head, &head, node, memory_order_seq_cst,
                                                  memory_order_relaxed));

    return head == NULL;
}

/* All nodes in push order, linked by `next`. Read `next` before cox__mpsc_open(node). Consumer
 * only. */
static inline struct cox__mpsc_node *cox__mpsc_take(struct cox__mpsc *queue)
{
    struct cox__mpsc_node *node = atomic_exchange_explicit(&queue->head, NULL,
                                                           memory_order_acquire);
    struct cox__mpsc_node *first = NULL;

    while (node) {
        struct cox__mpsc_node *next = node->next;
        node->next = first;
        first = node;
        node = next;
    }

    return first;
}

/* Allow a taken node to be pushed again. Consumer only. */
static inline void cox__mpsc_open(struct cox__mpsc_node *node)
{
    atomic_store_explicit(&node->queued, false, memory_order_release);
}

#endif
