/* The results as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/json_members.h"
#include "report.h"
#include "words.h"

#include <math.h>
#include <stdio.h>

static void member_quartiles(struct json *json, const char *key,
                             const struct guides_quartiles *value)
{
    json_member_object(json, key, true);
    json_member_number(json, "median", value->median);
    json_member_number(json, "q1", value->low);
    json_member_number(json, "q3", value->high);
    json_close_object(json);
}

static void one_cell(struct json *json, const struct guides_variant *variant,
                     const struct guides_cell *cell)
{
    json_open_object(json, true);
    json_member_string(json, "key", variant->key);
    json_member_string(json, "name", cell->name);
    if (*cell->group) {
        json_member_string(json, "group", cell->group);
    }
    json_member_string(json, "status", guides_status_name(cell->status));
    if (cell->status == GUIDES_MEASURED) {
        member_quartiles(json, "value", &cell->value);
        member_quartiles(json, "speed_over_first", &cell->ratio);
        json_member_unsigned(json, "rounds", cell->rounds);
        json_member_number(json, "predicted", cell->predicted);
        json_member_number(json, "largest_error_ppm", cell->error * 1e6);
    } else {
        json_member_string(json, "why", cell->why);
    }

    json_close_object(json);
}

static void one_result(struct json *json, const struct guides_result *result)
{
    const struct guides_experiment *experiment = result->experiment;

    json_open_object(json, false);
    json_member_string(json, "key", experiment->key);
    json_member_string(json, "title", experiment->title);
    json_member_string(json, "unit", guides_unit_name(experiment->unit));
    json_member_string(json, "finding", result->finding);
    json_member_array(json, "cells", false);
    for (uint32_t v = 0; v < experiment->count; v++)
        one_cell(json, &experiment->variants[v], &result->cells[v]);
    json_close_array(json);
    json_close_object(json);
}

static void one_sheet(struct json *json, const struct guides_sheet *sheet)
{
    const struct guides_device *device = &sheet->device;

    json_open_object(json, false);
    json_member_string(json, "device", device->info.name);
    json_member_string(json, "platform", device->info.platform);
    json_member_string(json, "driver", device->info.driver);
    json_member_unsigned(json, "width", device->width);
    json_member_unsigned(json, "height", device->height);
    json_member_bool(json, "profiled", device->profiled);
    json_member_array(json, "experiments", false);
    for (uint32_t r = 0; r < sheet->count; r++)
        one_result(json, &sheet->results[r]);
    json_close_array(json);
    json_close_object(json);
}

void guides_json(const struct guides_report *report, FILE *to)
{
    struct json json;
    double others = quiet_others(&report->quiet);

    if (others < 0)
        others = NAN;

    json_begin(&json, to);
    json_open_object(&json, false);
    json_member_string(&json, "benchmark", "guides");
    machine_json(&report->machine, &json);
    json_member_string(&json, "date", report->date);
    json_member_string(&json, "version", cox_version());
    json_member_bool(&json, "quick", report->quick);
    json_member_number(&json, "seconds", report->seconds);
    json_member_number(&json, "others_cpus", others);
    json_member_unsigned(&json, "rounds_again", report->quiet.again);
    json_member_array(&json, "devices", false);
    for (uint32_t d = 0; d < report->count; d++)
        one_sheet(&json, &report->sheets[d]);
    json_close_array(&json);
    json_report_end(&json);
}
