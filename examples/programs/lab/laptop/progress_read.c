/* Reading parts.json. A file of another measurement is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"
#include "lab/fail.h"
#include "lab/strict_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text)
        return "";
    return text;
}

static int64_t whole_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static enum laptop_supply supply_of(const char *name)
{
    enum laptop_supply supply = LAPTOP_SUPPLY_BATTERY;

    while (supply != LAPTOP_SUPPLY_UNKNOWN && strcmp(laptop_supply_name(supply), name) != 0)
        supply--;
    return supply;
}

/* A part without its database is measured again. */
static void take_record(const json_t *value, struct laptop_records *records)
{
    struct laptop_record record = {.supply = supply_of(text_of(value, "supply")),
                                   .supply_end = supply_of(text_of(value, "supply_at_end")),
                                   .status = (int)whole_of(value, "status"),
                                   .seconds = json_number_value(json_object_get(value, "seconds"))};
    const json_t *commands = json_object_get(value, "commands");
    char database[64];

    if (!laptop_part_find(text_of(value, "part"), &record.part))
        return;

    snprintf(record.started_at, sizeof record.started_at, "%s", text_of(value, "started_at"));
    for (size_t c = 0; c < json_array_size(commands) && c < LAPTOP_COMMANDS_MAX; c++) {
        const char *text = json_string_value(json_array_get(commands, c));
        snprintf(record.plan.commands[record.plan.count++].text, LAPTOP_COMMAND_BYTES, "%s",
                 text ? text : "");
    }

    laptop_file_name(&record, ".db", database, sizeof database);
    if (access(database, R_OK) == 0 || record.status != LAB_OK)
        laptop_record_put(records, &record);
}

static bool is_same(const json_t *root, const struct laptop_options *options)
{
    const char *devices = options->devices ? options->devices : "";

    return strcmp(text_of(root, "devices"), devices) == 0 &&
           strcmp(text_of(root, "kernel"), options->kernel) == 0 &&
           whole_of(root, "columns") == options->columns && whole_of(root, "rows") == options->rows;
}

bool laptop_records_read(const struct laptop_options *options, struct laptop_records *records)
{
    char why[400] = "";
    struct strict_reader reader = {
        .file = laptop_records_file, .why = why, .why_bytes = sizeof why};
    json_t *root = NULL;
    size_t bytes;

    records->count = 0;
    if (access(laptop_records_file, F_OK) != 0 && errno == ENOENT)
        return true;

    char *text = strict_read_file(laptop_records_file, FILE_BYTES_MAX, &bytes, why, sizeof why);
    if (text)
        root = strict_parse(&reader, text, bytes, FILE_BYTES_MAX);
    free(text);
    if (!root)
        return lab_fail("%s", why);

    const json_t *parts = json_object_get(root, "parts");
    const bool same = is_same(root, options);
    for (size_t i = 0; same && i < json_array_size(parts); i++)
        take_record(json_array_get(parts, i), records);
    if (!same)
        lab_fail("the folder has results for --devices '%s' --kernel %s --size "
                 "%" PRId64 "x%" PRId64 "; use another folder with -o, or --fresh to replace them",
                 text_of(root, "devices"), text_of(root, "kernel"), whole_of(root, "columns"),
                 whole_of(root, "rows"));

    json_decref(root);
    return same;
}
