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

static const char *const inputs[] = {[COX_TRANSFER_PQ] = "PQ", [COX_TRANSFER_HLG] = "HLG"};
static const char *const outputs[] = {"SDR BT.709", "SDR BT.2020", "PQ BT.2020"};

static const char *output_of(const struct options *options)
{
    if (options->hdr_nits > 0)
        return outputs[2];
    return outputs[options->wide];
}

void look_table_signals(const struct options *options, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s to %s", inputs[options->transfer], output_of(options));
}

/* Titles that cox-tonemap writes say what a table is for: "PQ to SDR BT.709, hable". Refuse one for
 * other signals than the film's. */
static bool fits(const struct look_table *table, const struct options *options,
                 const struct cox_video_shape *shape)
{
    const char *film_out = output_of(options), *in = NULL, *out = NULL;
    if (shape->transfer > COX_TRANSFER_HLG)
        return true;
    const char *film_in = inputs[shape->transfer];

    for (int i = 0; i < 6; i++) {
        char words[40];
        const int length = snprintf(words, sizeof words, "%s to %s,", inputs[i % 2],
                                    outputs[i / 2]);
        if (!strncmp(table->cube.title, words, (size_t)length)) {
            in = inputs[i % 2];
            out = outputs[i / 2];
        }
    }
    if (!in || (in == film_in && out == film_out))
        return true;
    return message_error("%s: a table from %s to %s, but the film goes from %s to %s", options->lut,
                         in, out, film_in, film_out);
}

bool look_table_use(struct look_table *table, const struct options *options, cox_runtime *runtime,
                    struct film_plan *plan)
{
    const struct cube *cube = &table->cube;
    struct cox_video_lut lut = {.points = cube->points, .colors = cube->colors};
    memcpy(lut.domain_least, cube->least, sizeof lut.domain_least);
    memcpy(lut.domain_most, cube->most, sizeof lut.domain_most);
    if (!cube->points)
        return true;
    if (!fits(table, options, &plan->shape))
        return false;

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
