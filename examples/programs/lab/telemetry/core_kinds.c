/* SPDX-License-Identifier: Apache-2.0 */
#include "core_kinds.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char cpus_path[] = "devices/system/cpu";

/* A core starts a new kind if it is slower than this share of the fastest core of its class.
 * Favoured cores of one kind differ by a tenth; small cores reach at most seven tenths of large
 * ones. */
static const double same_kind_speed = 0.8;

static bool is_first_thread(const char *root, uint32_t cpu)
{
    double first;

    return !sysfs_number(root, &first, "%s/cpu%u/topology/thread_siblings_list", cpus_path, cpu) ||
           first == cpu;
}

/* Both hardware threads of a core have one clock, so only the first one is listed. */
static void find_cores(const char *root, struct lab__cores *cores)
{
    char(*names)[SYSFS_NAME_BYTES] = malloc(LAB__CORES_MAX * sizeof *names);
    if (!names)
        return;

    size_t count = sysfs_list(root, cpus_path, "cpu", names, LAB__CORES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct lab__core core = {.cpu = (uint32_t)strtoul(names[i] + 3, NULL, 10)};
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
}

/* Intel's hybrid CPUs have one PMU for each class of cores. False if all cores are of one class. */
static bool class_by_pmu(const char *root, struct lab__cores *cores)
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

/* Read this file of each core as its speed. False if a core lacks it. */
static bool read_speeds(const char *root, struct lab__cores *cores, const char *file)
{
    bool all = true;

    for (uint32_t i = 0; i < cores->count; i++)
        all &= sysfs_number(root, &cores->all[i].speed, "%s/cpu%u/%s", cpus_path, cores->all[i].cpu,
                            file);
    return all;
}

static int fastest_first(const void *left, const void *right)
{
    const struct lab__core *a = left, *b = right;

    if (a->class != b->class)
        return (a->class > b->class) - (a->class < b->class);
    if (a->speed != b->speed)
        return (a->speed < b->speed) - (a->speed > b->speed);
    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

static int by_cpu(const void *left, const void *right)
{
    const struct lab__core *a = left, *b = right;
    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* Kinds are the classes of Intel's PMUs (Documentation/ABI/testing/sysfs-devices-system-cpu,
 * sysfs-bus-event_source-devices), else cores of similar capacity, else of similar greatest
 * frequency. */
static void find_kinds(const char *root, struct lab__cores *cores)
{
    enum { KINDS_MAX = LAB_CORE_KINDS_MAX };
    static const char *const hybrid[KINDS_MAX] = {"P cores", "E cores", "LP-E cores"};
    static const char *const sizes[KINDS_MAX][KINDS_MAX] = {
        {"cores"}, {"large cores", "small cores"}, {"large cores", "middle cores", "small cores"}};

    bool by_pmu = class_by_pmu(root, cores);
    if (by_pmu || !read_speeds(root, cores, "cpu_capacity"))
        read_speeds(root, cores, "cpufreq/cpuinfo_max_freq");
    qsort(cores->all, cores->count, sizeof *cores->all, fastest_first);

    const struct lab__core *top = cores->all;
    uint32_t kind = 0, name = top->class;
    cores->names[0] = hybrid[name];
    for (uint32_t i = 0; i < cores->count; i++) {
        struct lab__core *core = &cores->all[i];
        bool slower = core->speed < same_kind_speed * top->speed && !(by_pmu && core->class == 0);

        if ((core->class != top->class || slower) && kind + 1 < KINDS_MAX) {
            /* Some CPUs list slow LP-E cores in the class of the E cores. */
            if (core->class > name)
                name = core->class;
            else if (name + 1 < KINDS_MAX)
                name++;
            cores->names[++kind] = hybrid[name];
            top = core;
        }
        core->kind = kind;
    }

    cores->kind_count = kind + 1;
    if (!by_pmu)
        memcpy(cores->names, sizes[kind], sizeof cores->names);
}

struct lab__cores *lab__cores_read(const char *root)
{
    struct lab__cores *cores = calloc(1, sizeof *cores);
    if (!cores)
        return NULL;

    find_cores(root, cores);
    if (!cores->count) {
        free(cores);
        return NULL;
    }

    find_kinds(root, cores);
    return cores;
}

/* Append the core's CPU to the list, unless the list is full. */
static void add_core(struct lab_core_kind *kind, uint32_t cpu)
{
    size_t length = strlen(kind->cpus), room = sizeof kind->cpus - length;
    int needed = snprintf(kind->cpus + length, room, "%s%u", kind->cores ? "," : "", cpu);

    if (needed > 0 && (size_t)needed < room)
        kind->cores++;
    else
        kind->cpus[length] = '\0';
}

uint32_t lab_core_kinds(const char *sysfs, struct lab_core_kind kinds[LAB_CORE_KINDS_MAX])
{
    if (!sysfs)
        sysfs = "/sys";

    struct lab__cores *cores = lab__cores_read(sysfs);
    if (!cores)
        return 0;

    uint32_t count = cores->kind_count;
    for (uint32_t kind = 0; kind < count; kind++) {
        kinds[kind] = (struct lab_core_kind){.cores = 0};
        snprintf(kinds[kind].name, sizeof kinds[kind].name, "%s", cores->names[kind]);
    }

    qsort(cores->all, cores->count, sizeof *cores->all, by_cpu);
    for (uint32_t i = 0; i < cores->count; i++)
        add_core(&kinds[cores->all[i].kind], cores->all[i].cpu);

    free(cores);
    return count;
}
