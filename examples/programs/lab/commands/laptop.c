/* cox-lab laptop: its command line, and the parts one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "lab/commands.h"
#include "common/text.h"
#include "lab/run/measure.h"
#include "lab/laptop/bundle.h"
#include "lab/laptop/child.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage_text[] =
    "Usage: cox-lab laptop [options]\n"
    "\n"
    "Measures load balancing between the CPU and the GPU of this machine, in parts. Makes an "
    "HTML page,\n"
    "plots as CSV with a gnuplot script, and an archive of everything. After an "
    "interruption, start it\n"
    "again: finished parts are kept. Parts are measured separately on mains and on battery.\n"
    "\n"
    "  --minutes N          approximate total time, 2 to 600 (default: 20)\n"
    "  --devices LIST       devices to use (default: all)\n"
    "  --kernel NAME        tonemap, video, work or blur (default: tonemap)\n"
    "  --size WxH           frame size; the part sizes also uses smaller and larger ones\n"
    "                       (default: 1920x1080; work: 128x480)\n"
    "  --parts LIST         parts to measure: sizes, curve, reserve, corun, kinds, disturb, energy\n"
    "                       (default: all)\n"
    "  --frames N           frames of each policy in each part, 24 to 100000 (default: by "
    "--minutes)\n"
    "  -o DIR               output folder (default: laptop)\n"
    "  --fresh              first remove earlier results from the folder\n"
    "  -h, --help           print this text\n";

enum {
    OPTION_MINUTES = 256,
    OPTION_DEVICES,
    OPTION_KERNEL,
    OPTION_SIZE,
    OPTION_PARTS,
    OPTION_FRAMES,
    OPTION_FRESH,
    OPTION_SYSFS,
    OPTION_POWERCAP
};

/* --- Arguments -------------------------------------------------------------------------------- */

static bool read_number(const char *option, const char *text, double low, double high,
                        double *value)
{
    char *end;

    *value = strtod(text, &end);
    return (end != text && !*end && *value >= low && *value <= high) ||
           lab_fail("%s '%s': must be a number from %g to %g", option, text, low, high);
}

static bool read_size(const char *text, struct laptop_options *options)
{
    uint32_t *columns = &options->columns, *rows = &options->rows;
    int end = 0;

    return (sscanf(text, "%5" SCNu32 "x%5" SCNu32 "%n", columns, rows, &end) == 2 && !text[end] &&
            *columns >= LAB_SIZE_MIN && *rows >= LAB_SIZE_MIN && *columns <= LAB_SIZE_MAX &&
            *rows <= LAB_SIZE_MAX) ||
           lab_fail("--size '%s': must be WxH, both from %d to %d", text, LAB_SIZE_MIN,
                    LAB_SIZE_MAX);
}

static bool read_parts(const char *list)
{
    enum laptop_part part;
    char name[32];

    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");

        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!laptop_part_find(name, &part) || part == LAPTOP_PROBE)
            return lab_fail("--parts: unknown part '%s'; parts: sizes, curve, reserve, "
                            "corun, kinds, disturb, energy",
                            name);
        at += length;
        if (!*at)
            return true;
    }
}

/* An absolute path, because the parts run in another folder. */
static bool read_folder(const char *option, const char *path, char *out)
{
    return realpath(path, out) || lab_fail("%s '%s': %s", option, path, strerror(errno));
}

static bool read_option(int option, struct laptop_options *options)
{
    enum lab_kernel_kind kind;
    double number;

    switch (option) {
    case OPTION_MINUTES:
        return read_number("--minutes", optarg, 2, 600, &options->minutes);
    case OPTION_DEVICES:
        options->devices = optarg;
        return true;
    case OPTION_KERNEL:
        options->kernel = optarg;
        return lab_kernel_find(optarg, &kind) ||
               lab_fail("--kernel '%s': must be tonemap, video, work or blur", optarg);
    case OPTION_SIZE:
        return read_size(optarg, options);
    case OPTION_PARTS:
        options->parts = optarg;
        return read_parts(optarg);
    case OPTION_FRAMES:
        if (!read_number("--frames", optarg, 24, 100000, &number))
            return false;
        options->frames = (uint32_t)number;
        return true;
    case OPTION_FRESH:
        options->fresh = true;
        return true;
    case OPTION_SYSFS:
        return read_folder("--sysfs", optarg, options->sysfs);
    case OPTION_POWERCAP:
        return read_folder("--powercap", optarg, options->powercap);
    case 'o':
        options->folder = optarg;
        return true;
    default:
        fputs("Try 'cox-lab laptop --help'.\n", stderr);
        return false;
    }
}

/* -1 = go on, else an exit status. */
static int parse(int argc, char **argv, struct laptop_options *options)
{
    static const struct option known[] = {{"minutes", required_argument, NULL, OPTION_MINUTES},
                                          {"devices", required_argument, NULL, OPTION_DEVICES},
                                          {"kernel", required_argument, NULL, OPTION_KERNEL},
                                          {"size", required_argument, NULL, OPTION_SIZE},
                                          {"parts", required_argument, NULL, OPTION_PARTS},
                                          {"frames", required_argument, NULL, OPTION_FRAMES},
                                          {"fresh", no_argument, NULL, OPTION_FRESH},
                                          /* For tests; recorded with the commands. */
                                          {"sysfs", required_argument, NULL, OPTION_SYSFS},
                                          {"powercap", required_argument, NULL, OPTION_POWERCAP},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    *options = (struct laptop_options){.minutes = 20, .kernel = "tonemap", .folder = "laptop"};

    for (int option; (option = getopt_long(argc, argv, "ho:", known, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            return LAB_OK;
        }
        if (!read_option(option, options))
            return LAB_USAGE;
    }
    if (optind < argc) {
        lab_fail("unexpected argument '%s'", argv[optind]);
        return LAB_USAGE;
    }

    if (!options->columns && strcmp(options->kernel, "work") == 0) {
        options->columns = 128;
        options->rows = 480;
    } else if (!options->columns) {
        options->columns = 1920;
        options->rows = 1080;
    }
    return -1;
}

/* --- The parts -------------------------------------------------------------------------------- */

struct laptop {
    struct laptop_options options;
    struct laptop_machine machine;
    struct laptop_records records;
};

static void show_plan(const struct laptop_record *record)
{
    printf("%s%s\n", laptop_part_name(record->part),
           laptop_on_battery(record) ? ", on battery" : "");
    for (uint32_t c = 0; c < record->plan.count; c++)
        printf("  %s\n", record->plan.commands[c].text);
    fflush(stdout);
}

/* Run a part unless it is done. Returns an exit status; a part that fails does not stop the others,
 * so it gives LAB_OK. */
static int do_part(struct laptop *laptop, enum laptop_part part, double seconds)
{
    const char *sysfs = laptop_or_null(laptop->options.sysfs);
    struct laptop_record record = {.part = part, .supply = laptop_supply_now(sysfs)};
    const struct laptop_record *done = laptop_record_find(&laptop->records, part,
                                                          laptop_on_battery(&record));
    const time_t now = time(NULL);
    char name[64];
    struct tm utc;

    if (done && done->status == LAB_OK) {
        printf("%s: already done\n", laptop_part_name(part));
        return LAB_OK;
    }

    laptop_file_name(&record, ".db", name, sizeof name);
    laptop_plan(&laptop->options, &laptop->machine, part, seconds, name, &record.plan);
    if (!record.plan.count) {
        printf("%s: skipped. %s\n", laptop_part_name(part), record.plan.why);
        return LAB_OK;
    }

    if (gmtime_r(&now, &utc))
        strftime(record.started_at, sizeof record.started_at, "%Y-%m-%dT%H:%M:%SZ", &utc);
    show_plan(&record);
    if (!laptop_run_part(&laptop->options, &record))
        return LAB_INTERRUPTED;

    laptop_file_name(&record, ".txt", name, sizeof name);
    if (record.status != LAB_OK)
        lab_fail("part %s: failed with exit status %d; its output is in %s/%s",
                 laptop_part_name(part), record.status, laptop->options.folder, name);
    laptop_record_put(&laptop->records, &record);
    if (!laptop_records_write(&laptop->options, &laptop->records))
        return LAB_BAD;
    return LAB_OK;
}

/* The part's share of the remaining time, by weight. */
static double seconds_for(const struct laptop *laptop, enum laptop_part part)
{
    const char *sysfs = laptop_or_null(laptop->options.sysfs);
    const bool on_battery = laptop_supply_now(sysfs) == LAPTOP_SUPPLY_BATTERY;
    const double weight = laptop_part_weight(&laptop->machine, part);
    double left = laptop->options.minutes * 60, weights = 0;

    for (enum laptop_part p = 0; p < LAPTOP_ALL_PARTS; p++) {
        const struct laptop_record *done = laptop_record_find(&laptop->records, p, on_battery);

        if (done)
            left -= done->seconds;
        else if (laptop_part_wanted(&laptop->options, p))
            weights += laptop_part_weight(&laptop->machine, p);
    }

    if (!(weights > 0 && left > 0))
        return 0;
    if (weights < weight)
        weights = weight;
    return left * weight / weights;
}

/* With one device there is nothing to balance. */
static bool has_devices(const struct laptop_probe *probe)
{
    long threads = sysconf(_SC_NPROCESSORS_ONLN), half = 1;
    char name[256];

    if (probe->device_count > 1)
        return true;
    if (threads > 2)
        half = threads / 2;
    return lab_fail("only one device was found: %s. Two are needed: run cox-devices to "
                    "see why others are missing, or use two halves of the CPU: cox-lab "
                    "laptop --devices cpu:2x%ld --fresh",
                    text_plain(probe->devices[0].name, name, sizeof name), half);
}

/* Returns an exit status. */
static int do_parts(struct laptop *laptop)
{
    int status = do_part(laptop, LAPTOP_PROBE, 0);
    const struct laptop_record *probe = laptop_record_find(&laptop->records, LAPTOP_PROBE, false);
    char database[64];

    if (status != LAB_OK)
        return status;
    if (!probe)
        probe = laptop_record_find(&laptop->records, LAPTOP_PROBE, true);
    if (!probe || probe->status != LAB_OK)
        return LAB_BAD;

    laptop_file_name(probe, ".db", database, sizeof database);
    if (!laptop_probe_read(database, &laptop->machine.probe) ||
        !has_devices(&laptop->machine.probe))
        return LAB_BAD;

    for (enum laptop_part part = LAPTOP_PROBE + 1; part < LAPTOP_ALL_PARTS && status == LAB_OK;
         part++)
        if (laptop_part_wanted(&laptop->options, part))
            status = do_part(laptop, part, seconds_for(laptop, part));
    return status;
}

/* Make the folder the current one, so that no path appears in the recorded commands. The lock,
 * which ends with this process, keeps other processes out. */
static bool enter_folder(const struct laptop_options *options)
{
    if (mkdir(options->folder, 0777) != 0 && errno != EEXIST)
        return lab_fail("%s: %s", options->folder, strerror(errno));
    if (chdir(options->folder) != 0)
        return lab_fail("%s: %s", options->folder, strerror(errno));

    int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno == EWOULDBLOCK)
        return lab_fail("%s: another cox-lab laptop is using this folder", options->folder);
    return lab_fail("%s: %s", options->folder, strerror(errno));
}

/* Returns an exit status. */
static int measure(struct laptop *laptop)
{
    if (!enter_folder(&laptop->options))
        return LAB_BAD;
    if (laptop->options.fresh)
        laptop_records_clear();
    if (!laptop_records_read(&laptop->options, &laptop->records))
        return LAB_BAD;

    laptop_machine_read(&laptop->options, &laptop->machine);
    int status = do_parts(laptop);
    if (status == LAB_INTERRUPTED)
        lab_fail("interrupted; run the same command again to continue");
    else if (laptop->machine.probe.device_count > 1 &&
             !laptop_write_results(&laptop->options, &laptop->machine, &laptop->records))
        status = LAB_BAD;

    for (uint32_t i = 0; i < laptop->records.count && status == LAB_OK; i++)
        if (laptop->records.all[i].status != LAB_OK)
            status = LAB_BAD;
    return status;
}

int lab_laptop_main(int argc, char **argv)
{
    struct laptop *laptop = calloc(1, sizeof *laptop);

    if (!laptop) {
        lab_fail("out of memory");
        return LAB_BAD;
    }

    int status = parse(argc, argv, &laptop->options);
    if (status < 0)
        status = measure(laptop);
    free(laptop);
    return status;
}
