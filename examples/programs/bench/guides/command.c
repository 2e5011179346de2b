/* cox-bench guides: runs every experiment on every device, then writes the page.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/commands.h"
#include "bench/message.h"
#include "catalogue.h"
#include "command_line.h"
#include "common/html.h"
#include "common/now.h"
#include "common/outfile.h"
#include "measure.h"
#include "report.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES_MAX = 16, EXIT_BAD = 1 };

/* Get the infos of the listed devices. */
static bool find_devices(const char *list, struct guides_sheet *sheets, uint32_t *count)
{
    cox_runtime *runtime = NULL;
    cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = list,
                                                              .reserve = COX_RESERVE_OFF,
                                                              .log = bench_log},
                           &runtime);

    if (!bench_good(status, "devices"))
        return false;
    *count = cox_runtime_device_count(runtime);
    for (uint32_t d = 0; d < *count && d < DEVICES_MAX; d++)
        cox_runtime_device_info(runtime, d, &sheets[d].device.info);

    cox_runtime_destroy(&runtime);
    if (*count > DEVICES_MAX)
        return bench_fail("%u devices are too many; choose at most %d with --devices", *count,
                          DEVICES_MAX);

    return true;
}

/* Whether no variant failed or was wrong. */
static bool all_right(const struct guides_result *result)
{
    for (uint32_t v = 0; v < result->experiment->count; v++) {
        const struct guides_cell *cell = &result->cells[v];

        if (cell->status == GUIDES_WRONG || cell->status == GUIDES_FAILED)
            return bench_fail("%s, %s: %s: %s", result->experiment->key,
                              result->experiment->variants[v].key, guides_status_name(cell->status),
                              cell->why);
    }

    return true;
}

static void print_device(const struct guides_device *device, FILE *lines)
{
    fputs(device->info.name, lines);
    if (!device->profiled)
        fputs(" (by the host's clock, because the device reports no kernel times)", lines);
    fputc('\n', lines);
}

static bool measure_device(const struct guides_options *options, struct guides_sheet *sheet,
                           FILE *lines, bool *right)
{
    sheet->device.quick = options->quick;
    sheet->results = calloc(GUIDES_EXPERIMENTS_MAX, sizeof *sheet->results);
    if (!sheet->results)
        return bench_fail("out of memory");

    bool good = guides_device_open(&sheet->device);
    if (good)
        print_device(&sheet->device, lines);
    for (uint32_t i = 0; good && guides_experiment_at(i); i++) {
        const struct guides_experiment *experiment = guides_experiment_at(i);
        if (!guides_wanted(options->only, experiment->key))
            continue;
        struct guides_result *result = &sheet->results[sheet->count++];
        result->experiment = experiment;
        good = guides_measure(&sheet->device, result);
        *right &= all_right(result);
        fprintf(lines, "  %-14s %s\n", experiment->key, result->finding);
        fflush(lines);
    }

    guides_device_close(&sheet->device);

    return good;
}

static bool write_page(const struct guides_report *report, const char *path)
{
    struct html page = {0};
    struct error error;
    bool good = guides_page(report, &page) || bench_fail("out of memory");

    good = good && (html_save(&page, path, &error) || bench_fail("%s: %s", path, error.text));
    html_free(&page);

    return good;
}

static bool write_json(const struct guides_report *report, const char *path)
{
    struct error error;
    struct outfile *file;

    if (!outfile_open(&file, path, &error))
        return bench_fail("%s: %s", path, error.text);
    guides_json(report, outfile_stream(file));

    return outfile_finish(&file, &error) || bench_fail("%s: %s", path, error.text);
}

static void begin_report(struct guides_report *report)
{
    time_t now = time(NULL);
    struct tm parts;
    machine_read(&report->machine);
    if (gmtime_r(&now, &parts))
        strftime(report->date, sizeof report->date, "%Y-%m-%d", &parts);
}

int bench_guides(int argc, char **argv)
{
    struct guides_options options;
    struct guides_sheet sheets[DEVICES_MAX] = {0};
    struct guides_report report = {.sheets = sheets};
    bool right = true;
    int status = guides_options_parse(argc, argv, &options);

    if (status >= 0)
        return status;

    /* Progress goes to standard error if standard output is one of the files. */
    const bool to_stdout = strcmp(options.page, "-") == 0 ||
                           (options.json && strcmp(options.json, "-") == 0);
    FILE *lines = stdout;
    if (to_stdout)
        lines = stderr;

    report.quick = options.quick;
    begin_report(&report);
    uint64_t begin = now_ns();
    bool good = find_devices(options.devices, sheets, &report.count);
    quiet_start(&report.quiet, options.quiet_s);
    for (uint32_t d = 0; good && d < report.count; d++) {
        sheets[d].device.quiet = &report.quiet;
        good = measure_device(&options, &sheets[d], lines, &right);
    }
    report.seconds = (double)(now_ns() - begin) * 1e-9;
    good = good && write_page(&report, options.page) &&
           (!options.json || write_json(&report, options.json));
    if (good && !to_stdout)
        printf("%s\n", options.page);
    for (uint32_t d = 0; d < report.count && d < DEVICES_MAX; d++)
        free(sheets[d].results);
    if (!good || !right)
        return EXIT_BAD;

    return 0;
}
