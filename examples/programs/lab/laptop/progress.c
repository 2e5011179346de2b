/* The list of parts that are done, and writing it. progress_read.c reads it: the headers of the
 * JSON writer and of Jansson cannot meet in one file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"
#include "common/json.h"
#include "common/outfile.h"
#include "lab/fail.h"

#include <unistd.h>

const char laptop_records_file[] = "parts.json";

bool laptop_on_battery(const struct laptop_record *record)
{
    return record->supply == LAPTOP_SUPPLY_BATTERY;
}

void laptop_file_name(const struct laptop_record *record, const char *ending, char *name,
                      size_t bytes)
{
    snprintf(name, bytes, "%s%s%s", laptop_part_name(record->part),
             laptop_on_battery(record) ? "-battery" : "", ending);
}

/* The index of a record; the count if no record matches. */
static uint32_t find(const struct laptop_records *records, enum laptop_part part, bool on_battery)
{
    uint32_t i = 0;

    while (i < records->count &&
           (records->all[i].part != part || laptop_on_battery(&records->all[i]) != on_battery))
        i++;
    return i;
}

const struct laptop_record *laptop_record_find(const struct laptop_records *records,
                                               enum laptop_part part, bool on_battery)
{
    uint32_t i = find(records, part, on_battery);

    if (i == records->count)
        return NULL;
    return &records->all[i];
}

void laptop_record_put(struct laptop_records *records, const struct laptop_record *record)
{
    uint32_t i = find(records, record->part, laptop_on_battery(record));

    if (i == LAPTOP_RECORDS_MAX)
        return;
    records->all[i] = *record;
    if (i == records->count)
        records->count++;
}

void laptop_record_remove(const struct laptop_record *record)
{
    static const char *const endings[] = {".db", ".db-wal", ".db-shm", ".db-journal", ".txt"};
    char name[64];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        laptop_file_name(record, endings[i], name, sizeof name);
        unlink(name);
    }
}

void laptop_records_clear(void)
{
    for (enum laptop_part part = 0; part < LAPTOP_ALL_PARTS; part++) {
        laptop_record_remove(&(struct laptop_record){.part = part});
        laptop_record_remove(&(struct laptop_record){.part = part,
                                                     .supply = LAPTOP_SUPPLY_BATTERY});
    }
    unlink(laptop_records_file);
}

static void put_record(struct json *json, const struct laptop_record *record)
{
    char database[64];

    laptop_file_name(record, ".db", database, sizeof database);
    json_open_object(json, false);
    json_member_string(json, "part", laptop_part_name(record->part));
    json_member_string(json, "database", database);
    json_member_string(json, "supply", laptop_supply_name(record->supply));
    json_member_string(json, "supply_at_end", laptop_supply_name(record->supply_end));
    json_member_string(json, "started_at", record->started_at);
    json_member_number(json, "seconds", record->seconds);
    json_member_unsigned(json, "status", (uint64_t)record->status);

    json_member_array(json, "commands", false);
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
    json_member_string(&json, "devices", options->devices ? options->devices : "");
    json_member_string(&json, "kernel", options->kernel);
    json_member_unsigned(&json, "columns", options->columns);
    json_member_unsigned(&json, "rows", options->rows);

    json_member_array(&json, "parts", false);
    for (uint32_t i = 0; i < records->count; i++)
        put_record(&json, &records->all[i]);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
    return outfile_finish(&file, &error) || lab_fail("%s: %s", laptop_records_file, error.text);
}
