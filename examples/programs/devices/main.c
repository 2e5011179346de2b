/* cox-devices: what Coxswain finds on this machine and what it would do with it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/cache_folder.h"
#include "common/json.h"
#include "compile.h"
#include "measure.h"
#include "missing.h"

#include <coxswain/coxswain.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_BAD = 1, EXIT_USAGE = 2, NOTES_MAX = 16 };

static const char usage_text[] =
    "Usage: cox-devices [--json] [--devices LIST] [--reserve WHICH] [--measure]\n"
    "       cox-devices --compile [--devices LIST]\n"
    "\n"
    "Lists the OpenCL platforms and devices of this machine, how each device would share memory with the others, the\n"
    "processor's cores, the core that would be reserved for feeding the devices, and what is missing.\n"
    "\n"
    "      --json            for scripts\n"
    "      --devices LIST    cpu, gpu, all, PLATFORM.DEVICE, part of a name; :NxC for N sub-devices of C compute\n"
    "                        units; =shared, =mapped or =staged; comma-separated (default: every device)\n"
    "      --reserve WHICH   auto (default), on, off or the number of a CPU\n"
    "      --measure         run frames on each device: how soon is it known that one has ended, is its\n"
    "                        memory copied?\n"
    "      --compile         instead: compile the kernels of usual films now, so that cox-tonemap's first run on\n"
    "                        these devices need not\n"
    "      --pci DIR         look for GPUs in DIR instead of /sys/bus/pci/devices\n"
    "  -h, --help            this text\n"
    "      --version         the version\n";

struct options {
    bool json, measure, compile;
    const char *devices;
    const char *pci_dir;
    enum cox_reserve reserve;
    uint32_t reserve_cpu;
};

/* Everything that is shown, copied out of the runtime. */
struct found {
    struct cox_host_info host;
    uint32_t platform_count;
    struct cox_platform_info *platforms;
    uint32_t device_count;
    struct cox_device_info *devices;
    enum cox_arithmetic arithmetic;
    struct measured *measured; /* of each device; NULL = not asked for */
    struct missing missing;
};

/* What the library says: errors become the one line that ends the program, warnings notes below the
 * tables. */
static struct {
    pthread_mutex_t lock;
    char error[1024];
    uint32_t note_count;
    char note[NOTES_MAX][256];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&said.lock);
    if (level == COX_LOG_ERROR) {
        size_t used = strlen(said.error);
        snprintf(said.error + used, sizeof said.error - used, "%s%s", used ? "; " : "", line);
    } else if (strncmp(line, "reserved core:", 14) != 0 && said.note_count < NOTES_MAX) {
        /* Why a core is reserved or not stands in the host's own line. */
        snprintf(said.note[said.note_count++], sizeof said.note[0], "%s", line);
    }
    pthread_mutex_unlock(&said.lock);
}

/* ---- text ---- */

static void print_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    printf("%6.*f %s", value < 100 && unit > 0 ? 1 : 0, value, units[unit]);
}

static void selector(const struct cox_device_info *device, char *out, size_t bytes)
{
    if (device->subdevice)
        snprintf(out, bytes, "%u.%u#%u", device->platform_index, device->device_index,
                 device->subdevice);
    else
        snprintf(out, bytes, "%u.%u", device->platform_index, device->device_index);
}

static void print_host(const struct cox_host_info *host)
{
    printf("Processor\n");
    printf("  cores          %u", host->cores);
    if (host->cpus != host->cores)
        printf(", with %u hardware threads", host->cpus);
    printf("\n  core kinds     ");
    if (host->kind_count == 0)
        printf("alike, or not told apart by the system");
    for (uint32_t i = 0; i < host->kind_count; i++) {
        printf("%s%u ", i ? ", " : "", host->kind_cores[i]);
        if (host->kind_name[i][0])
            printf("%s", host->kind_name[i]);
        else
            printf("of power rank %u", i);
    }
    printf("\n  reserved core  %s\n", host->reserve_reason);
}

/* PoCL appends how it was built, after two spaces. */
static int version_length(const struct cox_platform_info *platform)
{
    const char *end = strstr(platform->version, "  ");
    return (int)(end ? (size_t)(end - platform->version) : strlen(platform->version));
}

static void print_platforms(const struct found *found)
{
    int name_width = 4, version_width = 7;
    for (uint32_t i = 0; i < found->platform_count; i++) {
        int name = (int)strlen(found->platforms[i].name),
            version = version_length(&found->platforms[i]);
        name_width = name > name_width ? name : name_width;
        version_width = version > version_width ? version : version_width;
    }
    name_width = name_width > 40 ? 40 : name_width;
    version_width = version_width > 48 ? 48 : version_width;
    printf("\nPlatforms\n  NO  %-*s  %-*s  DEVICES\n", name_width, "NAME", version_width,
           "VERSION");
    for (uint32_t i = 0; i < found->platform_count; i++) {
        const struct cox_platform_info *platform = &found->platforms[i];
        int version = version_length(platform);
        printf("  %2u  %-*.*s  %-*.*s  ", i, name_width, name_width, platform->name, version_width,
               version < version_width ? version : version_width, platform->version);
        if (platform->devices > 0) {
            printf("%u\n", platform->devices);
        } else {
            const char *why = missing_why_empty(platform);
            printf("none, which is normal%s%s%s\n", why ? " (" : "", why ? why : "",
                   why ? ")" : "");
        }
    }
}

static void print_devices(const struct found *found)
{
    static const struct {
        enum cox_memory_mode mode;
        const char *text;
    } modes[] = {
        {COX_MODE_SHARED, "one context with others; each band is a part of one buffer"},
        {COX_MODE_MAPPED, "works in host memory, on its own range of it"},
        {COX_MODE_STAGED, "has memory of its own; copies run beside the kernels"},
    };
    bool used[3] = {false, false, false};
    printf(
        "\nDevices\n  NO      TYPE         MODE    CONTEXT  UNITS    ALIGN  VECTOR      MEMORY  NAME\n");
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct cox_device_info *device = &found->devices[i];
        char number[32], units[32];
        selector(device, number, sizeof number);
        if (device->compute_units == device->parent_units)
            snprintf(units, sizeof units, "%u", device->compute_units);
        else
            snprintf(units, sizeof units, "%u/%u", device->compute_units, device->parent_units);
        printf("  %-6s  %-11s  %-6s  %7u  %5s  %5u B  %6u  ", number,
               cox_device_type_name(device->type), cox_memory_mode_name(device->mode),
               device->context_group, units, device->base_align_bytes, device->vector_width_float);
        print_bytes(device->global_bytes);
        printf("  %s\n", device->name);
        for (size_t m = 0; m < 3; m++)
            used[m] = used[m] || modes[m].mode == device->mode;
    }
    printf("\n");
    for (size_t m = 0; m < 3; m++) {
        if (used[m])
            printf("  %-7s %s\n", cox_memory_mode_name(modes[m].mode), modes[m].text);
    }
    printf("\nArithmetic of all of them: %s\n", cox_arithmetic_name(found->arithmetic));
    for (uint32_t i = 0; i < found->device_count; i++)
        if (found->devices[i].fma != COX_FMA_FAST)
            printf("  %s has %s fma\n", found->devices[i].name,
                   found->devices[i].fma == COX_FMA_SLOW ? "a slow" : "no");
}

static void print_ends(const struct found *found)
{
    printf(
        "\nEnds of frames of 64 KiB, by the device's clock\n  NO          NOTICED AFTER  99 OF 100 WITHIN  CLOCK RIGHT TO\n");
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct measured_ends *measured = &found->measured[i].ends;
        char number[32];
        selector(&found->devices[i], number, sizeof number);
        if (measured->status)
            printf("  %-10s  not measured: %s\n", number, cox_status_text(measured->status));
        else if (!measured->told)
            printf("  %-10s  its clock tells none: an end is when the host learns of it\n", number);
        else
            printf("  %-10s  %10.1f us  %13.1f us  %11.1f us\n", number, measured->p50_us,
                   measured->p99_us, measured->clock_error_us);
    }
}

static void print_memory(const struct found *found)
{
    printf("\nFrames of 64 MiB there and back, against 64 KiB\n  NO          TAKES MORE BY\n");
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct measured_memory *measured = &found->measured[i].memory;
        char number[32];
        selector(&found->devices[i], number, sizeof number);
        if (measured->status)
            printf("  %-10s  not measured: %s\n", number, cox_status_text(measured->status));
        else if (measured->wrapped)
            printf("  %-10s  %10.1f us  wrapped: nothing is copied\n", number, measured->extra_us);
        else
            printf("  %-10s  %10.1f us  copied, at %.1f GB/s\n", number, measured->extra_us,
                   measured->gb_per_s);
    }
}

static void print_lines(const char *title, const char *lines, size_t stride, uint32_t count)
{
    if (count > 0)
        printf("\n%s\n", title);
    for (uint32_t i = 0; i < count; i++)
        printf("  %s\n", lines + i * stride);
}

static void print_text(const struct found *found)
{
    print_host(&found->host);
    print_platforms(found);
    print_devices(found);
    if (found->measured) {
        print_ends(found);
        print_memory(found);
    }
    print_lines("Missing", found->missing.text[0], sizeof found->missing.text[0],
                found->missing.count);
    print_lines("Notes", said.note[0], sizeof said.note[0], said.note_count);
}

/* ---- JSON ---- */

static void put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

static void put_number(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_unsigned(json, number);
}

static void put_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

static void put_lines(struct json *json, const char *key, const char *lines, size_t stride,
                      uint32_t count)
{
    json_key(json, key);
    json_open_array(json, count == 0);
    for (uint32_t i = 0; i < count; i++)
        json_string(json, lines + i * stride);
    json_close_array(json);
}

static void put_host(struct json *json, const struct cox_host_info *host)
{
    json_key(json, "host");
    json_open_object(json, false);
    put_number(json, "cores", host->cores);
    put_number(json, "cpus", host->cpus);
    json_key(json, "kinds");
    json_open_array(json, true);
    for (uint32_t i = 0; i < host->kind_count; i++) {
        json_open_object(json, true);
        put_text(json, "name", host->kind_name[i]);
        put_number(json, "cores", host->kind_cores[i]);
        json_close_object(json);
    }
    json_close_array(json);
    put_bool(json, "reserved", host->reserved);
    put_bool(json, "workers_kept_off", host->workers_kept_off);
    json_key(json, "reserved_cpu");
    if (host->reserved)
        json_unsigned(json, host->reserved_cpu);
    else
        json_null(json);
    put_text(json, "reserve_reason", host->reserve_reason);
    json_close_object(json);
}

static void put_memory(struct json *json, const struct measured_memory *measured)
{
    json_key(json, "frame_memory");
    if (measured->status) {
        json_null(json);
        return;
    }
    json_open_object(json, true);
    put_bool(json, "wrapped", measured->wrapped);
    json_key(json, "extra_us");
    json_number(json, measured->extra_us);
    json_key(json, "gb_per_s");
    json_number(json, measured->gb_per_s);
    json_close_object(json);
}

static void put_ends(struct json *json, const struct measured_ends *measured)
{
    json_key(json, "noticed_after");
    if (!measured->told) {
        json_null(json);
        return;
    }
    json_open_object(json, true);
    json_key(json, "p50_us");
    json_number(json, measured->p50_us);
    json_key(json, "p99_us");
    json_number(json, measured->p99_us);
    json_key(json, "clock_error_us");
    json_number(json, measured->clock_error_us);
    json_close_object(json);
}

static void put_device(struct json *json, const struct cox_device_info *device,
                       const struct measured *measured)
{
    char number[32];
    selector(device, number, sizeof number);
    json_open_object(json, false);
    put_text(json, "number", number);
    put_text(json, "name", device->name);
    put_text(json, "platform", device->platform);
    put_text(json, "driver", device->driver);
    put_text(json, "id", device->id);
    put_text(json, "type", cox_device_type_name(device->type));
    put_text(json, "mode", cox_memory_mode_name(device->mode));
    put_number(json, "platform_index", device->platform_index);
    put_number(json, "device_index", device->device_index);
    put_number(json, "subdevice", device->subdevice);
    put_number(json, "context_group", device->context_group);
    put_number(json, "compute_units", device->compute_units);
    put_number(json, "parent_units", device->parent_units);
    put_number(json, "max_work_group", device->max_work_group);
    put_number(json, "vector_width_float", device->vector_width_float);
    put_number(json, "base_align_bytes", device->base_align_bytes);
    put_number(json, "global_bytes", device->global_bytes);
    put_number(json, "max_alloc_bytes", device->max_alloc_bytes);
    put_bool(json, "unified", device->unified);
    put_text(json, "host_memory", cox_host_memory_name(device->host_memory));
    put_text(json, "fma", cox_fma_name(device->fma));
    if (measured) {
        put_ends(json, &measured->ends);
        put_memory(json, &measured->memory);
    }
    json_close_object(json);
}

static void print_json(const struct found *found)
{
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    put_text(&json, "version", cox_version());
    put_host(&json, &found->host);
    put_text(&json, "arithmetic", cox_arithmetic_name(found->arithmetic));
    json_key(&json, "platforms");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < found->platform_count; i++) {
        const struct cox_platform_info *platform = &found->platforms[i];
        json_open_object(&json, false);
        put_number(&json, "index", i);
        put_text(&json, "name", platform->name);
        put_text(&json, "vendor", platform->vendor);
        put_text(&json, "version", platform->version);
        put_number(&json, "devices", platform->devices);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < found->device_count; i++)
        put_device(&json, &found->devices[i], found->measured ? &found->measured[i] : NULL);
    json_close_array(&json);
    put_lines(&json, "missing", found->missing.text[0], sizeof found->missing.text[0],
              found->missing.count);
    put_lines(&json, "notes", said.note[0], sizeof said.note[0], said.note_count);
    json_close_object(&json);
    json_end(&json);
}

/* ---- main ---- */

static int complain(const char *what)
{
    fprintf(stderr, "cox-devices: %s\n", what);
    return EXIT_BAD;
}

/* 0, or the exit status. */
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
        fprintf(stderr, "cox-devices: --reserve %s: it is auto, on, off or the number of a CPU\n",
                text);
        return EXIT_USAGE;
    }
    options->reserve = COX_RESERVE_CORE;
    options->reserve_cpu = (uint32_t)cpu;
    return 0;
}

/* -1 to go on, or the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    enum {
        OPT_JSON = 256,
        OPT_DEVICES,
        OPT_RESERVE,
        OPT_MEASURE,
        OPT_COMPILE,
        OPT_PCI,
        OPT_VERSION
    };
    static const struct option longs[] = {{"json", no_argument, NULL, OPT_JSON},
                                          {"devices", required_argument, NULL, OPT_DEVICES},
                                          {"reserve", required_argument, NULL, OPT_RESERVE},
                                          {"measure", no_argument, NULL, OPT_MEASURE},
                                          {"compile", no_argument, NULL, OPT_COMPILE},
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
    if (optind < argc) {
        fprintf(stderr, "cox-devices: '%s' is not expected; --help lists the options\n",
                argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

static bool collect(const cox_runtime *runtime, struct found *found)
{
    cox_runtime_host_info(runtime, &found->host, sizeof found->host);
    found->platform_count = cox_runtime_platform_count(runtime);
    found->device_count = cox_runtime_device_count(runtime);
    found->arithmetic = cox_runtime_arithmetic(runtime);
    found->platforms = calloc(found->platform_count + 1, sizeof *found->platforms);
    found->devices = calloc(found->device_count + 1, sizeof *found->devices);
    if (!found->platforms || !found->devices)
        return false;
    for (uint32_t i = 0; i < found->platform_count; i++)
        cox_runtime_platform_info(runtime, i, &found->platforms[i], sizeof found->platforms[i]);
    for (uint32_t i = 0; i < found->device_count; i++)
        cox_runtime_device_info(runtime, i, &found->devices[i], sizeof found->devices[i]);
    return true;
}

static bool measure_all(cox_runtime *runtime, struct found *found)
{
    found->measured = calloc(found->device_count + 1, sizeof *found->measured);
    for (uint32_t i = 0; found->measured && i < found->device_count; i++)
        measure_device(runtime, i, &found->measured[i]);
    return found->measured != NULL;
}

/* Every kind of film has its kernels in the cache afterwards. */
static int compile_all(cox_runtime *runtime, bool cached)
{
    if (!cached)
        return complain(
            "there is no folder to keep kernels in: neither $XDG_CACHE_HOME nor $HOME names one");
    printf("Films\n");
    const cox_status status = compile_films(runtime);
    if (status != COX_OK)
        return complain(said.error[0] ? said.error : cox_status_text(status));
    return fflush(stdout) != 0 || ferror(stdout) ? complain("the output cannot be written") : 0;
}

static void find_missing(struct found *found, const struct options *options, cox_status status)
{
    static const struct cox_platform_info
        nameless; /* there are platforms, but no runtime to ask for their names */
    struct missing_found offer = {found->platforms, found->platform_count, found->devices,
                                  found->device_count};
    if (status == COX_E_NO_DEVICE)
        offer = (struct missing_found){&nameless, 1, NULL, 0};
    if (!options->devices) /* of a selection nothing is missing */
        missing_find(&found->missing, &offer, options->pci_dir, "/dev/dri");
}

/* Before OpenCL is asked: PoCL ends the process where it finds neither the memory's size nor the
 * processor. */
static void look_at_system(void)
{
    static const struct {
        const char *path, *folder, *type;
    } needs[] = {{"/sys/devices/system", "/sys", "sysfs"}, {"/proc/self", "/proc", "proc"}};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (access(needs[i].path, F_OK) != 0)
            fprintf(
                stderr,
                "cox-devices: there is nothing in %s, without which PoCL may end this program: mount -t %s %s %s\n",
                needs[i].folder, needs[i].type, needs[i].type, needs[i].folder);
}

int main(int argc, char **argv)
{
    struct options options;
    char folder[4096];
    int result = parse_options(argc, argv, &options);
    if (result >= 0)
        return result;
    const char *cache = options.compile ? cache_folder(folder, sizeof folder) : NULL;

    look_at_system();
    cox_runtime *runtime = NULL;
    struct found found = {0};
    cox_status status = cox_runtime_create(&runtime,
                                           COX_RUNTIME_PARAMS(.devices = options.devices,
                                                              .reserve = options.reserve,
                                                              .reserve_cpu = options.reserve_cpu,
                                                              .cache_dir = cache, .log = on_log));
    result = 0;
    if (status != COX_OK) {
        result = complain(said.error[0] ? said.error : cox_status_text(status));
        if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE) {
            find_missing(&found, &options, status);
            for (uint32_t i = 0; i < found.missing.count; i++)
                fprintf(stderr, "  %s\n", found.missing.text[i]);
        }
        goto done;
    }
    if (options.compile) {
        result = compile_all(runtime, cache);
        goto done;
    }
    if (!collect(runtime, &found)) {
        result = complain(cox_status_text(COX_E_NOMEM));
        goto done;
    }
    find_missing(&found, &options, status);
    if (options.measure && !measure_all(runtime, &found)) {
        result = complain(cox_status_text(COX_E_NOMEM));
        goto done;
    }
    if (options.json)
        print_json(&found);
    else
        print_text(&found);
    if (fflush(stdout) != 0 || ferror(stdout))
        result = complain("the output cannot be written");

done:
    free(found.measured);
    free(found.devices);
    free(found.platforms);
    cox_runtime_destroy(&runtime);
    return result;
}
