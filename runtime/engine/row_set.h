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

/* Both take rows first .. end - 1, and keep their memory for the next time. False: no memory;
 * then the set has lost rows, but none that it should not have is in it. */
bool cox__row_set_add(struct cox__row_set *set, uint32_t first, uint32_t end);
bool cox__row_set_remove(struct cox__row_set *set, uint32_t first, uint32_t end);

void cox__row_set_clear(struct cox__row_set *set);

/* Whether the set has the row; `*until`: the first row after it, `end` at most, of which the
 * opposite is true. */
bool cox__row_set_has(const struct cox__row_set *set, uint32_t row, uint32_t end, uint32_t *until);

/* The set's memory. */
void cox__row_set_free(struct cox__row_set *set);

#endif
