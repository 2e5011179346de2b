/* Power of the processor: the energy counters of RAPL, by powercap (Documentation/power/powercap), or, where these may
 * not be read, by the perf PMU `power` (arch/x86/events/rapl.c), which another permission is for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/energy.h"
#include "parts.h"
#include "sysfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ZONES_MAX = 64, EVENTS_MAX = 32, PACKAGES_MAX = 16 };

static const char powercap_path[] = "class/powercap", pmu_path[] = "devices/power";

/* "intel-rapl:0" or, in it, "intel-rapl:0:1"; `intel-rapl-mmio:0` is a counter of the former by another way. */
static bool is_zone(const char *entry)
{
    return strncmp(entry, "intel-rapl:", 11) == 0;
}

/* What the zone measures: "package-0", or of a part of one "package-0/core". */
static bool read_zone_name(const char *root, const char *zone, char *name, size_t bytes)
{
    char parent[SYSFS_NAME_BYTES], outer[24] = "", inner[24];
    snprintf(parent, sizeof parent, "%s", zone);
    char *colon = strrchr(parent, ':');
    if (!sysfs_text(root, inner, sizeof inner, "%s/%s/name", powercap_path, zone))
        return false;
    if (colon && strchr(parent, ':') != colon) {
        *colon = '\0';
        sysfs_text(root, outer, sizeof outer, "%s/%s/name", powercap_path, parent);
    }
    snprintf(name, bytes, "%s%s%s", outer, *outer ? "/" : "", inner);
    return true;
}

/* A package, and what holds one, always uses some power; a part of one may be off. */
static const double least_watts = 1e-3;

static void limit_part(struct lab__source *source, const char *part)
{
    if (!strchr(part, '/'))
        lab__source_limits(source, least_watts, 2000);
}

/* Returns how many zones are read; `*error` says why one is not, 0 = there is no zone. */
static uint32_t find_zones(struct lab_telemetry *telemetry, const char *root, int *error)
{
    char zones[ZONES_MAX][SYSFS_NAME_BYTES], name[48], origin[SYSFS_PATH_BYTES], folder[1024];
    size_t count = sysfs_list(root, powercap_path, "", zones, ZONES_MAX);
    uint32_t found = 0;
    snprintf(folder, sizeof folder, "%.900s/%s", root, powercap_path);
    for (size_t i = 0; i < count; i++) {
        struct lab_energy *meter;
        if (!is_zone(zones[i]) || !read_zone_name(root, zones[i], name, sizeof name))
            continue;
        if (!lab_energy_open_domain(folder, zones[i], &meter)) {
            *error = errno;
            continue;
        }
        struct lab__source *source = lab__source_add(telemetry, LAB_POWER, LAB__RATE, LAB__QUICK,
                                                     "power of ", "%s", name);
        limit_part(source, name);
        snprintf(origin, sizeof origin, "%s/%s/energy_uj", powercap_path, zones[i]);
        lab__source_meter(telemetry, source, meter, origin);
        found += lab__source_end(telemetry, source);
    }
    return found;
}

/* powercap's name for what an event counts. */
static const char *event_part(const char *event)
{
    static const char *const names[][2] = {
        {"pkg", ""}, {"cores", "/core"}, {"gpu", "/uncore"}, {"ram", "/dram"}, {"psys", "psys"}};
    for (int i = 0; i < 5; i++)
        if (strcmp(event, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* Whether the count, which begins at 0, has risen after some steps of the counter, which take a millisecond each. In a
 * virtual machine some counters never do. */
static bool is_counting(int file)
{
    uint64_t count;
    nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
    return read(file, &count, sizeof count) == sizeof count && count > 0;
}

/* One event in each package, on the CPUs that the PMU names for them. */
static uint32_t find_event(struct lab_telemetry *telemetry, const char *root, uint32_t type,
                           const char *event, const char *cpus,
                           int (*event_open)(uint32_t type, uint64_t config, int cpu), int *error)
{
    char text[64];
    double scale;
    const char *part = event_part(event + strlen("energy-"));
    uint32_t found = 0, package = 0;
    if (!part || !sysfs_text(root, text, sizeof text, "%s/events/%s.unit", pmu_path, event) ||
        strcmp(text, "Joules") != 0 ||
        !sysfs_number(root, &scale, "%s/events/%s.scale", pmu_path, event) ||
        !sysfs_text(root, text, sizeof text, "%s/events/%s", pmu_path, event) ||
        strncmp(text, "event=", 6) != 0)
        return 0;
    uint64_t config = strtoull(text + 6, NULL, 0);
    for (int cpu = 0; cpu < 1024 && package < PACKAGES_MAX; cpu++) {
        if (!sysfs_list_has(cpus, (uint32_t)cpu))
            continue;
        char name[48] = "psys";
        if (strcmp(part, "psys") != 0)
            snprintf(name, sizeof name, "package-%u%s", package++, part);
        else
            package = PACKAGES_MAX;
        int file = event_open(type, config, cpu);
        if (file < 0) {
            *error = errno;
            continue;
        }
        if (!strchr(name, '/') && !is_counting(file)) {
            lab__note(telemetry,
                      "power of %s: perf's counter power/%s/ stands still, as in virtual machines",
                      name, event);
            close(file);
            continue;
        }
        struct lab__source *source = lab__source_add(telemetry, LAB_POWER, LAB__RATE, LAB__QUICK,
                                                     "power of ", "%s", name);
        limit_part(source, name);
        snprintf(text, sizeof text, "perf: power/%.40s/", event);
        lab__source_event(telemetry, source, file, scale, text);
        found += lab__source_end(telemetry, source);
    }
    return found;
}

static uint32_t find_events(struct lab_telemetry *telemetry, const char *root,
                            int (*event_open)(uint32_t type, uint64_t config, int cpu), int *error)
{
    char events[EVENTS_MAX][SYSFS_NAME_BYTES], cpus[256], folder[64];
    double type;
    uint32_t found = 0;
    if (!sysfs_number(root, &type, "%s/type", pmu_path) ||
        !sysfs_text(root, cpus, sizeof cpus, "%s/cpumask", pmu_path))
        return 0;
    *error = ENOSYS; /* nothing may be asked of this machine */
    snprintf(folder, sizeof folder, "%s/events", pmu_path);
    size_t count = event_open ? sysfs_list(root, folder, "", events, EVENTS_MAX) : 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(events[i], "energy-", 7) == 0 && !strchr(events[i], '.'))
            found += find_event(telemetry, root, (uint32_t)type, events[i], cpus, event_open,
                                error);
    return found;
}

void lab__find_power(struct lab_telemetry *telemetry, const char *root,
                     int (*event_open)(uint32_t type, uint64_t config, int cpu))
{
    int powercap = 0, perf = 0;
    uint32_t found = find_zones(telemetry, root, &powercap);
    if (!found)
        found = find_events(telemetry, root, event_open, &perf);
    if (found)
        return;
    if (powercap == EACCES || powercap == EPERM)
        lab__note(
            telemetry,
            "power of the processor: %s/%s/intel-rapl:*/energy_uj may be read by root only. To let the group "
            "`power` read it, write these two lines to /etc/udev/rules.d/70-powercap.rules:\n"
            "    SUBSYSTEM==\"powercap\", KERNEL==\"intel-rapl:*\", ACTION==\"add|change\", "
            "RUN+=\"/bin/chgrp power /sys%%p/energy_uj\"\n"
            "    SUBSYSTEM==\"powercap\", KERNEL==\"intel-rapl:*\", ACTION==\"add|change\", "
            "RUN+=\"/bin/chmod g+r /sys%%p/energy_uj\"\n"
            "and, as root: groupadd -f power; usermod -aG power USER; udevadm control --reload; udevadm trigger "
            "--subsystem-match=powercap; then log in again",
            root, powercap_path);
    else if (powercap)
        lab__note(telemetry, "power of the processor: the counters in %s/%s cannot be read: %s",
                  root, powercap_path, strerror(powercap));
    else
        lab__note(
            telemetry,
            "power of the processor: %s/%s has no intel-rapl (Intel's and AMD's processors have it); as root: "
            "modprobe intel_rapl_msr. A virtual machine has none",
            root, powercap_path);
    if (perf == EACCES || perf == EPERM)
        lab__note(telemetry, "power of the processor by perf: not permitted; as root: sysctl "
                             "kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on cox-lab");
    else if (perf && perf != ENOSYS)
        lab__note(telemetry, "power of the processor by perf: %s", strerror(perf));
}
