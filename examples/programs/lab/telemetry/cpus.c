/* The processor's cores by kind: their clocks, what governs these, and how often heat has slowed them down.
 *
 * Kinds are what Intel's two PMUs list (Documentation/ABI/testing/sysfs-devices-system-cpu, sysfs-bus-event_source-
 * devices), else cores of like capacity, else of like greatest frequency. Of each core the first hardware thread is
 * read: both have one clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"
#include "parts.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS_MAX = 1024, KINDS_MAX = LAB_CORE_KINDS_MAX, CLOCKS_MAX = 64 };

static const char cpus_path[] = "devices/system/cpu";

/* A core of another kind has less than so much of the speed of the fastest one in its class: favoured cores of one kind
 * differ by a tenth, small ones reach seven tenths of large ones at most. */
static const double like_speed = 0.8;

struct core {
    uint32_t cpu;
    uint32_t class; /* by PMU: core, atom, lowpower */
    uint32_t package;
    double speed; /* the greatest frequency, or the capacity */
    uint32_t kind;
};

struct cores {
    uint32_t count, kind_count;
    const char *names[KINDS_MAX];
    struct core all[CPUS_MAX];
};

static bool is_first_thread(const char *root, uint32_t cpu)
{
    double first;
    return !sysfs_number(root, &first, "%s/cpu%u/topology/thread_siblings_list", cpus_path, cpu) ||
           first == cpu;
}

static uint32_t find_cores(const char *root, struct cores *cores)
{
    char(*names)[SYSFS_NAME_BYTES] = malloc(CPUS_MAX * sizeof *names);
    size_t count = names ? sysfs_list(root, cpus_path, "cpu", names, CPUS_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        struct core core = {.cpu = (uint32_t)strtoul(names[i] + 3, NULL, 10)};
        double package;
        if (!is_first_thread(root, core.cpu))
            continue;
        if (sysfs_number(root, &package, "%s/%s/topology/physical_package_id", cpus_path,
                         names[i]) &&
            package > 0)
            core.package = (uint32_t)package;
        cores->all[cores->count++] = core;
    }
    free(names);
    return cores->count;
}

/* The class of each core by Intel's PMUs. False if they tell none from the others. */
static bool class_by_pmu(const char *root, struct cores *cores)
{
    static const char *const pmus[] = {"cpu_core", "cpu_atom", "cpu_lowpower"};
    bool found = false;
    for (uint32_t class = 0; class < 3; class ++) {
        char list[256];
        if (!sysfs_text(root, list, sizeof list, "devices/%s/cpus", pmus[class]))
            continue;
        for (uint32_t i = 0; i < cores->count; i++)
            if (sysfs_list_has(list, cores->all[i].cpu)) {
                cores->all[i].class = class;
                found |= class > 0;
            }
    }
    return found;
}

/* The number in that file of each core; false if one has none. */
static bool read_speeds(const char *root, struct cores *cores, const char *file)
{
    bool all = true;
    for (uint32_t i = 0; i < cores->count; i++)
        all &= sysfs_number(root, &cores->all[i].speed, "%s/cpu%u/%s", cpus_path, cores->all[i].cpu,
                            file);
    return all;
}

static int faster_first(const void *left, const void *right)
{
    const struct core *a = left, *b = right;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->speed != b->speed)
        return a->speed > b->speed ? -1 : 1;
    return a->cpu < b->cpu ? -1 : 1;
}

static void find_kinds(const char *root, struct cores *cores)
{
    static const char *const hybrid[KINDS_MAX] = {"P cores", "E cores", "LP-E cores"};
    static const char *const sizes[KINDS_MAX][KINDS_MAX] = {
        {"cores"}, {"large cores", "small cores"}, {"large cores", "middle cores", "small cores"}};
    bool by_pmu = class_by_pmu(root, cores);
    if (by_pmu || !read_speeds(root, cores, "cpu_capacity"))
        read_speeds(root, cores, "cpufreq/cpuinfo_max_freq");
    qsort(cores->all, cores->count, sizeof *cores->all, faster_first);
    const struct core *top = cores->all;
    uint32_t kind = 0, name = top->class;
    cores->names[0] = hybrid[name];
    for (uint32_t i = 0; i < cores->count; i++) {
        struct core *core = &cores->all[i];
        bool slower = core->speed < like_speed * top->speed && !(by_pmu && core->class == 0);
        if ((core->class != top->class || slower) && kind + 1 < KINDS_MAX) {
            /* Slow ones of the class of E cores are what has a class of its own elsewhere. */
            name = core->class > name ? core->class : name + 1;
            cores->names[++kind] = hybrid[name < KINDS_MAX ? name : KINDS_MAX - 1];
            top = core;
        }
        core->kind = kind;
    }
    cores->kind_count = kind + 1;
    if (!by_pmu)
        memcpy(cores->names, sizes[kind], sizeof cores->names);
}

static void find_clocks(struct lab_telemetry *telemetry, const struct cores *cores)
{
    uint32_t found = 0;
    for (uint32_t kind = 0; kind < cores->kind_count; kind++) {
        struct lab__source *source = lab__source_add(telemetry, LAB_CLOCK, LAB__MEAN, LAB__QUICK,
                                                     "clock of the ", "%s", cores->names[kind]);
        uint32_t read = 0;
        lab__source_limits(source, 1, 20000); /* a core that runs has a clock */
        for (uint32_t i = 0; i < cores->count && read < CLOCKS_MAX; i++)
            if (cores->all[i].kind == kind)
                read += lab__source_file(telemetry, source, 1e-3,
                                         "%s/cpu%u/cpufreq/scaling_cur_freq", cpus_path,
                                         cores->all[i].cpu);
        found += lab__source_end(telemetry, source);
    }
    if (!found)
        lab__note(
            telemetry,
            "clocks of the cores: %s/cpu0/cpufreq/scaling_cur_freq cannot be read: the kernel has no "
            "cpufreq driver here; a virtual machine has none",
            cpus_path);
}

static void find_settings(struct lab_telemetry *telemetry, const struct cores *cores)
{
    static const char *const files[] = {"scaling_governor", "energy_performance_preference"};
    static const char *const names[] = {"governor of the ", "energy preference of the "};
    for (uint32_t kind = 0; kind < cores->kind_count; kind++)
        for (int i = 0; i < 2; i++) {
            uint32_t first = 0;
            while (first < cores->count && cores->all[first].kind != kind)
                first++;
            struct lab__source *source = lab__source_add(telemetry, LAB_SETTING, LAB__TEXT,
                                                         LAB__SLOW, names[i], "%s",
                                                         cores->names[kind]);
            if (first < cores->count)
                lab__source_file(telemetry, source, 1, "%s/cpu%u/cpufreq/%s", cpus_path,
                                 cores->all[first].cpu, files[i]);
            lab__source_end(telemetry, source);
        }
    struct lab__source *profile = lab__source_add(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW, "",
                                                  "platform profile");
    lab__source_file(telemetry, profile, 1, "firmware/acpi/platform_profile");
    lab__source_end(telemetry, profile);
}

/* A package's counter is the same file in each of its cores. */
static void find_throttling(struct lab_telemetry *telemetry, const struct cores *cores)
{
    struct lab__source *packages = lab__source_add(telemetry, LAB_THROTTLE, LAB__RISE, LAB__QUICK,
                                                   "throttling of the ", "package");
    for (uint32_t i = 0; i < cores->count; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first &= cores->all[k].package != cores->all[i].package;
        if (first)
            lab__source_file(telemetry, packages, 1,
                             "%s/cpu%u/thermal_throttle/package_throttle_count", cpus_path,
                             cores->all[i].cpu);
    }
    lab__source_end(telemetry, packages);
    for (uint32_t kind = 0; kind < cores->kind_count; kind++) {
        struct lab__source *source = lab__source_add(telemetry, LAB_THROTTLE, LAB__RISE, LAB__SLOW,
                                                     "throttling of the ", "%s",
                                                     cores->names[kind]);
        for (uint32_t i = 0, read = 0; i < cores->count && read < CLOCKS_MAX; i++)
            if (cores->all[i].kind == kind)
                read += lab__source_file(telemetry, source, 1,
                                         "%s/cpu%u/thermal_throttle/core_throttle_count", cpus_path,
                                         cores->all[i].cpu);
        lab__source_end(telemetry, source);
    }
}

void lab__find_cpus(struct lab_telemetry *telemetry, const char *root)
{
    struct cores *cores = calloc(1, sizeof *cores);
    if (cores && find_cores(root, cores) > 0) {
        find_kinds(root, cores);
        find_clocks(telemetry, cores);
        find_throttling(telemetry, cores);
        find_settings(telemetry, cores);
    } else {
        lab__note(telemetry, "the cores: %s/%s has none", root, cpus_path);
    }
    free(cores);
}

static int by_cpu(const void *left, const void *right)
{
    const struct core *a = left, *b = right;
    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

uint32_t lab_core_kinds(const char *sysfs, struct lab_core_kind kinds[LAB_CORE_KINDS_MAX])
{
    const char *root = sysfs ? sysfs : "/sys";
    struct cores *cores = calloc(1, sizeof *cores);
    uint32_t count = 0;
    if (cores && find_cores(root, cores) > 0) {
        find_kinds(root, cores);
        count = cores->kind_count;
        qsort(cores->all, cores->count, sizeof *cores->all, by_cpu);
        for (uint32_t kind = 0; kind < count; kind++) {
            kinds[kind] = (struct lab_core_kind){.cores = 0};
            snprintf(kinds[kind].name, sizeof kinds[kind].name, "%s", cores->names[kind]);
        }
        for (uint32_t i = 0; i < cores->count; i++) {
            struct lab_core_kind *kind = &kinds[cores->all[i].kind];
            size_t length = strlen(kind->cpus);
            int wanted = snprintf(kind->cpus + length, sizeof kind->cpus - length, "%s%u",
                                  kind->cores ? "," : "", cores->all[i].cpu);
            if (wanted > 0 && (size_t)wanted < sizeof kind->cpus - length)
                kind->cores++;
            else
                kind->cpus[length] = '\0';
        }
    }
    free(cores);
    return count;
}
