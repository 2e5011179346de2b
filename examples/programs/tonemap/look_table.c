/* SPDX-License-Identifier: Apache-2.0 */
#include "look_table.h"
#include "messages.h"

#include <string.h>

bool look_table_read(struct look_table *table, const struct options *options)
{
    struct error error;
    return !options->lut || cube_read(&table->cube, options->lut, &error) ||
           message_file_error(options->lut, &error);
}

bool look_table_use(struct look_table *table, cox_runtime *runtime, struct film_plan *plan)
{
    const struct cube *cube = &table->cube;
    struct cox_video_lut lut = {.points = cube->points, .colors = cube->colors};
    memcpy(lut.domain_least, cube->least, sizeof lut.domain_least);
    memcpy(lut.domain_most, cube->most, sizeof lut.domain_most);
    if (!cube->points)
        return true;

    cox_status status = cox_buffer_create(runtime, cox_video_lut_bytes(lut.points), &table->buffer);
    if (status == COX_OK)
        status = cox_video_lut_table(&lut, cox_buffer_data(table->buffer));
    if (status != COX_OK)
        return message_status_error("cannot use the look-up table", status);

    plan->lut_points = lut.points;
    plan->lut_table = table->buffer;
    return true;
}

void look_table_free(struct look_table *table)
{
    cube_free(&table->cube);
    cox_buffer_destroy(&table->buffer);
}
