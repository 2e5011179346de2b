/* A set of rows: ranges in ascending order that do not touch each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_ROW_SET_H
#define COX_ENGINE_ROW_SET_H

#include <stdbool.h>
#include <stdint.h>

struct cox__row_range {
    uint32_t first, end;
};

/* Zeroed: empty. */
struct cox__row_set {
    uint32_t count;
    uint32_t capacity;
    struct cox__row_range *ranges;
};

/* Add or remove rows first .. end - 1. The set keeps its memory for later. False: no memory; the
 * set may lack rows that it should have, but has no rows that it should not have. */
bool cox__row_set_add(struct cox__row_set *set, uint32_t first, uint32_t end);
bool cox__row_set_remove(struct cox__row_set *set, uint32_t first, uint32_t end);

void cox__row_set_clear(struct cox__row_set *set);

/* Whether the set has the row. `*until`: the first later row for which the answer changes, at most
 * `end`. */
bool cox__row_set_has(const struct cox__row_set *set, uint32_t row, uint32_t end, uint32_t *until);

/* Free the set's memory. */
void cox__row_set_free(struct cox__row_set *set);

#endif
