/* The telemetry of the CPU cores, by kind: clocks, frequency settings and thermal throttling.
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "core_kinds.h"
#include "discover.h"

#include <stdlib.h>

/* Reading more cores of a kind than this would take too long. */
enum { READ_CORES_MAX = 64 };

static const char cpus_path[] = "devices/system/cpu";

/* Add this file of each core of a kind to the source. */
static void add_cores(struct lab_telemetry *telemetry, struct lab__source *source,
                      const struct lab__cores *cores, uint32_t kind, double scale, const char *file)
{
    for (uint32_t i = 0, added = 0; i < cores->count && added < READ_CORES_MAX; i++)
        if (cores->all[i].kind == kind)
            added += lab__source_file(telemetry, source, LAB__NUMBER, scale, "%s/cpu%u/%s",
                                      cpus_path, cores->all[i].cpu, file);
}

static void find_clocks(struct lab_telemetry *telemetry, const struct lab__cores *cores)
{
    uint32_t found = 0;

    for (uint32_t kind = 0; kind < cores->kind_count; kind++) {
        struct lab__source *source = lab__source_add(telemetry, LAB_CLOCK, LAB__MEAN, LAB__QUICK,
                                                     "clock of the ", cores->names[kind]);
        lab__source_limits(source, 1, 20000); /* 0 MHz is no reading of a core that runs */
        add_cores(telemetry, source, cores, kind, 1e-3, "cpufreq/scaling_cur_freq");
        found += lab__source_end(telemetry, source);
    }

    if (!found)
        lab__note(telemetry,
                  "clocks of the cores: cannot read %s/cpu0/cpufreq/scaling_cur_freq: the "
                  "kernel has no cpufreq driver (normal in a virtual machine)",
                  cpus_path);
}

/* All cores of a kind have the same settings, so the first one is read. */
static void find_settings(struct lab_telemetry *telemetry, const struct lab__cores *cores)
{
    static const char *const settings[][2] = {
        {"governor of the ", "scaling_governor"},
        {"energy preference of the ", "energy_performance_preference"}};

    for (uint32_t kind = 0; kind < cores->kind_count; kind++) {
        uint32_t first = 0;
        while (first + 1 < cores->count && cores->all[first].kind != kind)
            first++;

        for (int i = 0; i < 2; i++)
            lab__source_single(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW, settings[i][0],
                               cores->names[kind], 1, "%s/cpu%u/cpufreq/%s", cpus_path,
                               cores->all[first].cpu, settings[i][1]);
    }

    lab__source_single(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW, "", "platform profile", 1,
                       "firmware/acpi/platform_profile");
}

static bool is_first_of_package(const struct lab__cores *cores, uint32_t core)
{
    for (uint32_t i = 0; i < core; i++)
        if (cores->all[i].package == cores->all[core].package)
            return false;
    return true;
}

static void find_throttling(struct lab_telemetry *telemetry, const struct lab__cores *cores)
{
    struct lab__source *packages = lab__source_add(telemetry, LAB_THROTTLE, LAB__RISE, LAB__QUICK,
                                                   "throttling of the ", "package");

    /* Every core of a package shows the package's counter. */
    for (uint32_t i = 0; i < cores->count; i++)
        if (is_first_of_package(cores, i))
            lab__source_file(telemetry, packages, LAB__NUMBER, 1,
                             "%s/cpu%u/thermal_throttle/package_throttle_count", cpus_path,
                             cores->all[i].cpu);
    lab__source_end(telemetry, packages);

    for (uint32_t kind = 0; kind < cores->kind_count; kind++) {
        struct lab__source *source = lab__source_add(telemetry, LAB_THROTTLE, LAB__RISE, LAB__SLOW,
                                                     "throttling of the ", cores->names[kind]);
        add_cores(telemetry, source, cores, kind, 1, "thermal_throttle/core_throttle_count");
        lab__source_end(telemetry, source);
    }
}

void lab__find_cpus(struct lab_telemetry *telemetry, const char *root)
{
    struct lab__cores *cores = lab__cores_read(root);
    if (!cores) {
        lab__note(telemetry, "cores: %s/%s lists none", root, cpus_path);
        return;
    }

    find_clocks(telemetry, cores);
    find_throttling(telemetry, cores);
    find_settings(telemetry, cores);
    free(cores);
}
