/* The results as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "guides.h"

#include <math.h>
#include <stdio.h>

static void quartiles(struct json *json, const struct guides_quartiles *value)
{
    json_open_object(json, true);
    json_key(json, "median");
    json_number(json, value->median);
    json_key(json, "q1");
    json_number(json, value->low);
    json_key(json, "q3");
    json_number(json, value->high);
    json_close_object(json);
}

static void one_cell(struct json *json, const struct guides_variant *variant,
                     const struct guides_cell *cell)
{
    json_open_object(json, true);
    json_key(json, "key");
    json_string(json, variant->key);
    json_key(json, "name");
    json_string(json, cell->name);
    if (*cell->group) {
        json_key(json, "group");
        json_string(json, cell->group);
    }
    json_key(json, "status");
    json_string(json, guides_status_name(cell->status));
    if (cell->status == GUIDES_MEASURED) {
        json_key(json, "value");
        quartiles(json, &cell->value);
        json_key(json, "speed_over_first");
        quartiles(json, &cell->ratio);
        json_key(json, "rounds");
        json_unsigned(json, cell->rounds);
        json_key(json, "predicted");
        json_number(json, cell->predicted);
        json_key(json, "largest_error_ppm");
        json_number(json, cell->error * 1e6);
    } else {
        json_key(json, "why");
        json_string(json, cell->why);
    }
    json_close_object(json);
}

static void one_result(struct json *json, const struct guides_result *result)
{
    const struct guides_experiment *experiment = result->experiment;
    json_open_object(json, false);
    json_key(json, "key");
    json_string(json, experiment->key);
    json_key(json, "title");
    json_string(json, experiment->title);
    json_key(json, "unit");
    json_string(json, guides_unit_name(experiment->unit));
    json_key(json, "finding");
    json_string(json, result->finding);
    json_key(json, "cells");
    json_open_array(json, false);
    for (uint32_t v = 0; v < experiment->count; v++)
        one_cell(json, &experiment->variants[v], &result->cells[v]);
    json_close_array(json);
    json_close_object(json);
}

static void one_sheet(struct json *json, const struct guides_sheet *sheet)
{
    const struct guides_device *device = &sheet->device;
    json_open_object(json, false);
    json_key(json, "device");
    json_string(json, device->info.name);
    json_key(json, "platform");
    json_string(json, device->info.platform);
    json_key(json, "driver");
    json_string(json, device->info.driver);
    json_key(json, "width");
    json_unsigned(json, device->width);
    json_key(json, "height");
    json_unsigned(json, device->height);
    json_key(json, "profiled");
    json_bool(json, device->profiled);
    json_key(json, "experiments");
    json_open_array(json, false);
    for (uint32_t r = 0; r < sheet->count; r++)
        one_result(json, &sheet->results[r]);
    json_close_array(json);
    json_close_object(json);
}

void guides_json(const struct guides_report *report, FILE *to)
{
    struct json json;
    json_begin(&json, to);
    json_open_object(&json, false);
    json_key(&json, "benchmark");
    json_string(&json, "guides");
    machine_json(&report->machine, &json);
    json_key(&json, "date");
    json_string(&json, report->date);
    json_key(&json, "version");
    json_string(&json, cox_version());
    json_key(&json, "quick");
    json_bool(&json, report->quick);
    json_key(&json, "seconds");
    json_number(&json, report->seconds);
    json_key(&json, "others_cpus");
    json_number(&json, quiet_others(&report->quiet) >= 0 ? quiet_others(&report->quiet) : NAN);
    json_key(&json, "rounds_again");
    json_unsigned(&json, report->quiet.again);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t d = 0; d < report->count; d++)
        one_sheet(&json, &report->sheets[d]);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}
