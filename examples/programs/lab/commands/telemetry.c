/* cox-lab telemetry: lists what can be read of this machine, and what cannot.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/json.h"
#include "common/text.h"
#include "lab/commands.h"
#include "lab/telemetry/sources.h"
#include "lab/telemetry/sysfs.h"

#include <getopt.h>
#include <math.h>
#include <time.h>

static const char usage_text[] =
    "Usage: cox-lab telemetry [options]\n"
    "\n"
    "Lists the readings of this machine that cox-lab run records: clocks, temperatures, power,\n"
    "throttling, settings. Explains how to permit those that cannot be read.\n"
    "\n"
    "  --sysfs DIR          read DIR instead of /sys\n"
    "  --json               print JSON instead of text\n"
    "  -h, --help           print this text\n";

enum { OPTION_SYSFS = 256, OPTION_JSON, PAUSE_MS = 20, PAUSES = 25 };

struct reading {
    struct lab_telemetry *telemetry;
    double values[LAB_TELEMETRY_SOURCES_MAX];
    double us; /* CPU time of a quick reading */
};

static double thread_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Read everything at the beginning and at the end, and the quick sources between, with the
 * pauses of a run, so that caches get cold. Power is the mean of all readings. */
static void read_all(struct reading *reading)
{
    uint32_t count = lab_telemetry_count(reading->telemetry),
             known[LAB_TELEMETRY_SOURCES_MAX] = {0};
    double watts[LAB_TELEMETRY_SOURCES_MAX] = {0};

    lab_telemetry_read(reading->telemetry, true, reading->values);

    for (int i = 0; i < PAUSES; i++) {
        nanosleep(&(const struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        double since = thread_us();
        lab_telemetry_read(reading->telemetry, i == PAUSES - 1, reading->values);
        reading->us += (thread_us() - since) / PAUSES;

        for (uint32_t s = 0; s < count; s++)
            if (!isnan(reading->values[s])) {
                watts[s] += reading->values[s];
                known[s]++;
            }
    }

    for (uint32_t s = 0; s < count; s++)
        if (lab_telemetry_source(reading->telemetry, s)->kind == LAB_POWER && known[s])
            reading->values[s] = watts[s] / known[s];
}

static void print_text(const struct reading *reading)
{
    const struct lab_telemetry *telemetry = reading->telemetry;
    uint32_t count = lab_telemetry_count(telemetry);
    char texts[2][256], value[64];

    for (uint32_t i = 0; i < count; i++) {
        const struct lab_telemetry_source *source = lab_telemetry_source(telemetry, i);
        const char *unit = lab_telemetry_unit(source->kind);
        if (source->kind == LAB_SETTING)
            text_plain(lab_telemetry_setting(telemetry, i, NULL), value, sizeof value);
        else if (isnan(reading->values[i]))
            snprintf(value, sizeof value, "-");
        else
            snprintf(value, sizeof value, "%.1f", reading->values[i]);

        /* The degree sign has two bytes. */
        printf("%-40s %19s %-*s  %s\n", text_plain(source->name, texts[0], sizeof texts[0]), value,
               source->kind == LAB_TEMPERATURE ? 7 : 6, unit,
               text_plain(source->origin, texts[1], sizeof texts[1]));
    }

    if (count)
        printf("\n%u source%s; one reading takes %.1f us of processor time\n", count,
               count == 1 ? "" : "s", reading->us);
    else
        printf("This machine has no readings.\n");

    for (uint32_t i = 0; lab_telemetry_note(telemetry, i); i++)
        printf("\nnot available: %s\n", lab_telemetry_note(telemetry, i));
}

static void print_json(const struct reading *reading)
{
    const struct lab_telemetry *telemetry = reading->telemetry;
    struct json json;

    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_array(&json, "sources", false);
    for (uint32_t i = 0; i < lab_telemetry_count(telemetry); i++) {
        const struct lab_telemetry_source *source = lab_telemetry_source(telemetry, i);
        const char *const texts[][2] = {{"name", source->name},
                                        {"kind", lab_telemetry_kind_name(source->kind)},
                                        {"part", source->part},
                                        {"unit", lab_telemetry_unit(source->kind)},
                                        {"origin", source->origin}};

        json_open_object(&json, true);
        for (int k = 0; k < 5; k++) {
            json_member_string(&json, texts[k][0], texts[k][1]);
        }

        json_key(&json, "value");
        if (source->kind == LAB_SETTING)
            json_string(&json, lab_telemetry_setting(telemetry, i, NULL));
        else
            json_number(&json, reading->values[i]);
        json_close_object(&json);
    }

    json_close_array(&json);
    json_member_number(&json, "reading_us", reading->us);

    json_member_array(&json, "not_read", false);
    for (uint32_t i = 0; lab_telemetry_note(telemetry, i); i++)
        json_string(&json, lab_telemetry_note(telemetry, i));

    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}

int lab_telemetry_main(int argc, char **argv)
{
    static const struct option known[] = {{"sysfs", required_argument, NULL, OPTION_SYSFS},
                                          {"json", no_argument, NULL, OPTION_JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct lab_telemetry_params params = {0};
    struct reading reading = {0};
    void (*print)(const struct reading *reading) = print_text;

    for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            return LAB_OK;
        }
        if (option == OPTION_SYSFS) {
            params.sysfs = optarg;
        } else if (option == OPTION_JSON) {
            print = print_json;
        } else {
            fputs("Try 'cox-lab telemetry --help'.\n", stderr);
            return LAB_USAGE;
        }
    }

    if (optind < argc) {
        lab_fail("unexpected argument '%s'", argv[optind]);
        return LAB_USAGE;
    }
    if (params.sysfs && !sysfs_is_folder(params.sysfs)) {
        lab_fail("--sysfs '%s': not a folder", params.sysfs);
        return LAB_USAGE;
    }

    reading.telemetry = lab_telemetry_open(&params);
    if (!reading.telemetry) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    read_all(&reading);
    print(&reading);
    lab_telemetry_close(&reading.telemetry);

    return lab_output_written() ? LAB_OK : LAB_BAD;
}
