/* cox-devices: what Coxswain finds on this machine and what it would do with it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/cache_folder.h"
#include "common/plain_output.h"
#include "compile.h"
#include "compile_kernel.h"
#include "listing.h"

#include <coxswain/coxswain.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_BAD = 1, EXIT_USAGE = 2 };

/* Values of options without a letter. */
enum {
    OPT_JSON = 256,
    OPT_DEVICES,
    OPT_RESERVE,
    OPT_MEASURE,
    OPT_COMPILE,
    OPT_OPTIONS,
    OPT_HEADERS,
    OPT_LIBRARY,
    OPT_OUTPUT,
    OPT_PCI,
    OPT_VERSION
};

static const char usage_text[] =
    "Usage: cox-devices [options]\n"
    "       cox-devices --compile [options] [FILE.cl]\n"
    "\n"
    "Lists the OpenCL platforms and devices of this machine, and how each device reaches host memory.\n"
    "Also lists the CPU's cores, the core to reserve for feeding the devices, and what is missing.\n"
    "\n"
    "  --devices LIST      cpu, gpu, all (default), PLATFORM.DEVICE or part of a name, comma-separated;\n"
    "                      :NxC makes N sub-devices of C compute units; =shared, =mapped or =staged\n"
    "                      sets the memory mode\n"
    "  --reserve WHICH     core to reserve: auto (default), on, off or the number of a CPU\n"
    "  --measure           measure how soon the end of a frame is noticed, and whether frames are copied\n"
    "  --compile           compile FILE.cl into the cache, or the kernels for common films, and exit\n"
    "  --options TEXT      compile FILE.cl with these options of the OpenCL compiler\n"
    "  --headers DIR       the files in DIR are headers of FILE.cl\n"
    "  --library FILE      link FILE.cl with the source in FILE; may be repeated\n"
    "  --output FILE       also write the compiled code to FILE, for cox_pass.code\n"
    "  --json              print JSON\n"
    "  --pci DIR           look for GPUs in DIR (default /sys/bus/pci/devices)\n"
    "  -h, --help          print this text\n"
    "  --version           print the version\n";

struct options {
    bool json, measure, compile;
    struct kernel_files kernel; /* with --compile */
    const char *devices;
    const char *pci_dir;
    enum cox_reserve reserve;
    uint32_t reserve_cpu;
};

/* The lines of the library: errors become the line that ends the program, warnings become notes. */
struct log {
    pthread_mutex_t lock;
    char error[1024];
    bool at_once; /* write errors and warnings to standard error, such as a compiler's output */
    struct listing *listing;
};

/* Whether to show a line as a note. The listing itself says why a core is reserved or not, and why a
 * device is left out. */
static bool is_note(const char *line)
{
    return strncmp(line, "reserved core:", 14) != 0 && !strstr(line, " is left out: ");
}

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    struct log *log = user;
    struct listing *listing = log->listing;
    pthread_mutex_lock(&log->lock);

    if (log->at_once && level <= COX_LOG_WARN) {
        fprintf(stderr, "cox-devices: %s\n", line);
    } else if (level == COX_LOG_ERROR) {
        const size_t used = strlen(log->error);
        snprintf(log->error + used, sizeof log->error - used, "%s%s", used ? "; " : "", line);
    } else if (is_note(line) && listing->note_count < NOTES_MAX) {
        snprintf(listing->notes[listing->note_count++], sizeof listing->notes[0], "%s", line);
    }

    pthread_mutex_unlock(&log->lock);
}

/* Print an error. Returns the exit status. */
static int fail(const char *what)
{
    fprintf(stderr, "cox-devices: %s\n", what);
    return EXIT_BAD;
}

/* Returns 0, or the exit status. */
static int parse_reserve(const char *text, struct options *options)
{
    static const struct {
        const char *word;
        enum cox_reserve reserve;
    } words[] = {{"auto", COX_RESERVE_AUTO}, {"on", COX_RESERVE_ON}, {"off", COX_RESERVE_OFF}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i].word) == 0) {
            options->reserve = words[i].reserve;
            return 0;
        }
    }

    char *end;
    errno = 0;
    unsigned long cpu = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno || cpu > UINT32_MAX) {
        fprintf(stderr,
                "cox-devices: --reserve '%s': expected auto, on, off or the number of a CPU\n",
                text);
        return EXIT_USAGE;
    }

    options->reserve = COX_RESERVE_CORE;
    options->reserve_cpu = (uint32_t)cpu;
    return 0;
}

/* Returns 0, or the exit status. */
static int take_kernel_option(int option, const char *text, struct kernel_files *kernel)
{
    if (option == OPT_LIBRARY && kernel->library_count == LIBRARIES_MAX) {
        fprintf(stderr, "cox-devices: --library %s: too many; at most %d\n", text, LIBRARIES_MAX);
        return EXIT_USAGE;
    }

    if (option == OPT_OPTIONS)
        kernel->options = text;
    else if (option == OPT_HEADERS)
        kernel->headers_dir = text;
    else if (option == OPT_LIBRARY)
        kernel->libraries[kernel->library_count++] = text;
    else
        kernel->output = text;
    return 0;
}

/* Options for a kernel need one. Returns -1 to go on, or the exit status. */
static int check_kernel(const struct kernel_files *kernel)
{
    const char *option = NULL;
    if (kernel->options)
        option = "--options";
    if (kernel->headers_dir)
        option = "--headers";
    if (kernel->library_count)
        option = "--library";
    if (kernel->output)
        option = "--output";
    if (!option || kernel->source)
        return -1;

    fprintf(stderr, "cox-devices: %s needs --compile and a FILE.cl\n", option);
    return EXIT_USAGE;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {{"json", no_argument, NULL, OPT_JSON},
                                          {"devices", required_argument, NULL, OPT_DEVICES},
                                          {"reserve", required_argument, NULL, OPT_RESERVE},
                                          {"measure", no_argument, NULL, OPT_MEASURE},
                                          {"compile", no_argument, NULL, OPT_COMPILE},
                                          {"options", required_argument, NULL, OPT_OPTIONS},
                                          {"headers", required_argument, NULL, OPT_HEADERS},
                                          {"library", required_argument, NULL, OPT_LIBRARY},
                                          {"output", required_argument, NULL, OPT_OUTPUT},
                                          {"pci", required_argument, NULL, OPT_PCI},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, OPT_VERSION},
                                          {NULL, 0, NULL, 0}};

    *options = (struct options){.pci_dir = "/sys/bus/pci/devices"};
    for (int option; (option = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        int status = 0;
        switch (option) {
        case OPT_JSON:
            options->json = true;
            break;
        case OPT_DEVICES:
            options->devices = optarg;
            break;
        case OPT_RESERVE:
            status = parse_reserve(optarg, options);
            break;
        case OPT_MEASURE:
            options->measure = true;
            break;
        case OPT_COMPILE:
            options->compile = true;
            break;
        case OPT_OPTIONS:
        case OPT_HEADERS:
        case OPT_LIBRARY:
        case OPT_OUTPUT:
            status = take_kernel_option(option, optarg, &options->kernel);
            break;
        case OPT_PCI:
            options->pci_dir = optarg;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        case OPT_VERSION:
            printf("cox-devices %s\n", cox_version());
            return 0;
        default:
            return EXIT_USAGE; /* getopt has said why */
        }
        if (status)
            return status;
    }

    if (options->compile && optind < argc)
        options->kernel.source = argv[optind++];
    if (optind < argc) {
        fprintf(stderr, "cox-devices: unexpected argument '%s'; see cox-devices --help\n",
                argv[optind]);
        return EXIT_USAGE;
    }
    return check_kernel(&options->kernel);
}

/* `all`: the default selection. */
static bool collect(const cox_runtime *runtime, struct listing *listing, bool all)
{
    cox_runtime_host_info(runtime, &listing->host);
    listing->platform_count = cox_runtime_platform_count(runtime);
    listing->device_count = cox_runtime_device_count(runtime);
    listing->arithmetic = cox_runtime_arithmetic(runtime);
    listing->platforms = calloc(listing->platform_count + 1, sizeof *listing->platforms);
    listing->devices = calloc(listing->device_count + 1, sizeof *listing->devices);
    if (!listing->platforms || !listing->devices)
        return false;

    for (uint32_t i = 0; i < listing->platform_count; i++)
        cox_runtime_platform_info(runtime, i, &listing->platforms[i]);
    for (uint32_t i = 0; i < listing->device_count; i++)
        cox_runtime_device_info(runtime, i, &listing->devices[i]);

    while (all && listing->left_out_count < LEFT_OUT_MAX &&
           cox_runtime_left_out(runtime, listing->left_out_count,
                                &listing->left_out[listing->left_out_count]) == COX_OK)
        listing->left_out_count++;
    return true;
}

static bool measure_all(cox_runtime *runtime, struct listing *listing)
{
    listing->measured = calloc(listing->device_count + 1, sizeof *listing->measured);
    for (uint32_t i = 0; listing->measured && i < listing->device_count; i++)
        measure_device(runtime, i, &listing->measured[i]);

    return listing->measured != NULL;
}

/* The reason of a failure: the library's errors, or the status. */
static const char *reason(const struct log *log, cox_status status)
{
    return log->error[0] ? log->error : cox_status_text(status);
}

static int check_output(void)
{
    const char *failure = plain_output_failure(stdout);
    if (!failure)
        return 0;

    fprintf(stderr, "cox-devices: cannot write to standard output: %s\n", failure);
    return EXIT_BAD;
}

/* Put the user's kernel, or those of all kinds of film, into the cache. */
static int compile_all(cox_runtime *runtime, const struct options *options, const struct log *log,
                       bool cached)
{
    if (!cached && !options->kernel.output)
        return fail("no cache folder for compiled kernels: set $XDG_CACHE_HOME or $HOME");

    cox_status status = COX_OK;
    int result = 0;
    if (options->kernel.source) {
        result = compile_kernel(runtime, &options->kernel, &status);
    } else {
        printf("Films\n");
        status = compile_films(runtime);
    }

    if (status != COX_OK)
        result = fail(reason(log, status));
    return result ? result : check_output();
}

/* Nothing is missing from a selection of devices. */
static void find_missing(struct listing *listing, const struct options *options, cox_status status)
{
    /* There are platforms, but no runtime that knows their names. */
    static const struct cox_platform_info nameless;
    struct missing_found offer = {listing->platforms, listing->platform_count, listing->devices,
                                  listing->device_count};
    if (options->devices)
        return;

    if (status == COX_E_NO_DEVICE)
        offer = (struct missing_found){&nameless, 1, NULL, 0};
    missing_find(&listing->missing, &offer, options->pci_dir, "/dev/dri");
}

/* Warn before OpenCL is used: PoCL ends the process if it finds neither the size of the memory nor
 * the processor. */
static void look_at_system(void)
{
    static const struct {
        const char *path, *folder, *type;
    } needs[] = {{"/sys/devices/system", "/sys", "sysfs"}, {"/proc/self", "/proc", "proc"}};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (access(needs[i].path, F_OK) != 0)
            fprintf(stderr,
                    "cox-devices: %s is not mounted, so PoCL may end this program; run: "
                    "mount -t %s %s %s\n",
                    needs[i].folder, needs[i].type, needs[i].type, needs[i].folder);
}

static int fail_start(struct listing *listing, const struct options *options, const struct log *log,
                      cox_status status)
{
    fail(reason(log, status));
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        find_missing(listing, options, status);
    for (uint32_t i = 0; i < listing->missing.count; i++)
        fprintf(stderr, "  %s\n", listing->missing.text[i]);

    return EXIT_BAD;
}

static int list(cox_runtime *runtime, struct listing *listing, const struct options *options)
{
    const bool all = !options->devices || strcmp(options->devices, "all") == 0;
    if (!collect(runtime, listing, all))
        return fail(cox_status_text(COX_E_NOMEM));
    find_missing(listing, options, COX_OK);
    if (options->measure && !measure_all(runtime, listing))
        return fail(cox_status_text(COX_E_NOMEM));

    if (options->json)
        listing_print_json(listing);
    else
        listing_print_text(listing);
    return check_output();
}

int main(int argc, char **argv)
{
    struct options options;
    struct listing listing = {0};
    struct log log = {.lock = PTHREAD_MUTEX_INITIALIZER, .listing = &listing};
    cox_runtime *runtime = NULL;
    const char *cache = NULL;
    char folder[4096];
    plain_output_begin();
    int result = parse_options(argc, argv, &options);
    if (result >= 0)
        return result;

    if (options.compile)
        cache = cache_folder(folder, sizeof folder);
    log.at_once = options.kernel.source;
    look_at_system();
    const cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = options.devices,
                                                              .reserve = options.reserve,
                                                              .reserve_cpu = options.reserve_cpu,
                                                              .cache_dir = cache,
                                                              .log = on_log,
                                                              .log_user = &log},
                           &runtime);
    if (status != COX_OK)
        result = fail_start(&listing, &options, &log, status);
    else if (options.compile)
        result = compile_all(runtime, &options, &log, cache);
    else
        result = list(runtime, &listing, &options);

    free(listing.measured);
    free(listing.devices);
    free(listing.platforms);
    cox_runtime_destroy(&runtime);
    return result;
}
