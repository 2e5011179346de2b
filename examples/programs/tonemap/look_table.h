/* The look-up table of --lut: read from its file, then a buffer for the devices.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_LOOK_TABLE_H
#define TONEMAP_LOOK_TABLE_H

#include "film_plan.h"
#include "media/cube.h"
#include "options.h"

/* All zeros = no table. */
struct look_table {
    struct cube cube;
    cox_buffer *buffer;
};

/* What a table of these options is for, such as "PQ to SDR BT.709": the beginning of its title. */
void look_table_signals(const struct options *options, char *text, size_t bytes);

/* Read the file if --lut is given. Here and below: false after printing why. */
bool look_table_read(struct look_table *table, const struct options *options);

/* Make the buffer, and let the plan use it. */
bool look_table_use(struct look_table *table, const struct options *options, cox_runtime *runtime,
                    struct film_plan *plan);

/* After the plan's last frame. */
void look_table_free(struct look_table *table);

#endif
