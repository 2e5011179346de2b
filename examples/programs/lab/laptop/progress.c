/* parts.json: which parts are done, with what, on which supply.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "common/outfile.h"
#include "lab/commands.h"
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void laptop_file_name(enum laptop_part part, enum laptop_supply supply, const char *ending,
                      char *name, size_t bytes)
{
    snprintf(name, bytes, "%s%s%s", laptop_part_name(part),
             supply == LAPTOP_SUPPLY_BATTERY ? "-battery" : "", ending);
}

const struct laptop_record *laptop_record_find(const struct laptop_records *records,
                                               enum laptop_part part, bool on_battery)
{
    for (uint32_t i = 0; i < records->count; i++)
        if (records->all[i].part == part &&
            (records->all[i].supply == LAPTOP_SUPPLY_BATTERY) == on_battery)
            return &records->all[i];
    return NULL;
}

void laptop_record_put(struct laptop_records *records, const struct laptop_record *record)
{
    uint32_t i = 0;
    bool on_battery = record->supply == LAPTOP_SUPPLY_BATTERY;
    while (i < records->count && (records->all[i].part != record->part ||
                                  (records->all[i].supply == LAPTOP_SUPPLY_BATTERY) != on_battery))
        i++;
    if (i == sizeof records->all / sizeof records->all[0])
        return;
    records->all[i] = *record;
    records->count += i == records->count;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static void put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

static void put_record(struct json *json, const struct laptop_record *record)
{
    char database[64];
    laptop_file_name(record->part, record->supply, ".db", database, sizeof database);
    json_open_object(json, false);
    put_text(json, "part", laptop_part_name(record->part));
    put_text(json, "database", database);
    put_text(json, "supply", laptop_supply_name(record->supply));
    put_text(json, "supply_at_end", laptop_supply_name(record->supply_end));
    put_text(json, "started_at", record->started_at);
    json_key(json, "seconds");
    json_number(json, record->seconds);
    json_key(json, "status");
    json_unsigned(json, (uint64_t)record->status);
    json_key(json, "commands");
    json_open_array(json, false);
    for (uint32_t c = 0; c < record->plan.count; c++)
        json_string(json, record->plan.commands[c].text);
    json_close_array(json);
    json_close_object(json);
}

bool laptop_records_write(const struct laptop_options *options,
                          const struct laptop_records *records)
{
    struct error error;
    struct outfile *file;
    struct json json;
    if (!outfile_open(&file, laptop_records_file, &error))
        return lab_fail("%s: %s", laptop_records_file, error.text);
    json_begin(&json, outfile_stream(file));
    json_open_object(&json, false);
    put_text(&json, "devices", options->devices ? options->devices : "");
    put_text(&json, "kernel", options->kernel);
    json_key(&json, "columns");
    json_unsigned(&json, options->columns);
    json_key(&json, "rows");
    json_unsigned(&json, options->rows);
    json_key(&json, "parts");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < records->count; i++)
        put_record(&json, &records->all[i]);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
    return outfile_finish(&file, &error) || lab_fail("%s: %s", laptop_records_file, error.text);
}

void laptop_records_clear(void)
{
    static const char *const endings[] = {".db", ".db-wal", ".db-shm", ".db-journal", ".txt"};
    char name[64];
    for (enum laptop_part part = 0; part < LAPTOP_ALL_PARTS; part++)
        for (int i = 0; i < 5; i++) {
            laptop_file_name(part, LAPTOP_SUPPLY_MAINS, endings[i], name, sizeof name);
            unlink(name);
            laptop_file_name(part, LAPTOP_SUPPLY_BATTERY, endings[i], name, sizeof name);
            unlink(name);
        }
    unlink(laptop_records_file);
}
