/* Power of the CPU: RAPL's energy counters, through powercap (Documentation/power/powercap). If
 * these are not readable: through the perf PMU `power` (arch/x86/events/rapl.c), which needs
 * another permission.
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "discover.h"
#include "energy.h"
#include "sysfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ZONES_MAX = 64, EVENTS_MAX = 32, CPUS_MAX = 1024, PACKAGES_MAX = 16 };

static const char powercap_path[] = "class/powercap", pmu_path[] = "devices/power";

/* A package, and a domain that contains packages, always uses some power; a part of a package
 * may be off. */
static const double package_min_watts = 1e-3;

static struct lab__source *add_power(struct lab_telemetry *telemetry, const char *name)
{
    struct lab__source *source = lab__source_add(telemetry, LAB_POWER, LAB__RATE, LAB__QUICK,
                                                 "power of ", name);

    if (!strchr(name, '/'))
        lab__source_limits(source, package_min_watts, 2000);
    return source;
}

/* --- powercap --------------------------------------------------------------------------------- */

/* The domain's name: "package-0", or "package-0/core" for a part of a package. `zone` is
 * "intel-rapl:0" or "intel-rapl:0:1". */
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

/* Returns the number of zones that can be read. `*error` says why a zone cannot be read; 0 if there
 * is no zone. */
static uint32_t find_zones(struct lab_telemetry *telemetry, const char *root, int *error)
{
    char zones[ZONES_MAX][SYSFS_NAME_BYTES], name[48], origin[SYSFS_PATH_BYTES], folder[1024];
    size_t count = sysfs_list(root, powercap_path, "", zones, ZONES_MAX);
    uint32_t found = 0;

    snprintf(folder, sizeof folder, "%.900s/%s", root, powercap_path);
    for (size_t i = 0; i < count; i++) {
        struct lab_energy *meter;

        /* `intel-rapl-mmio:0` is another interface to the counter of `intel-rapl:0`. */
        if (strncmp(zones[i], "intel-rapl:", 11) != 0 ||
            !read_zone_name(root, zones[i], name, sizeof name))
            continue;
        if (!lab_energy_open_domain(folder, zones[i], &meter)) {
            *error = errno;
            continue;
        }

        struct lab__source *source = add_power(telemetry, name);
        snprintf(origin, sizeof origin, "%s/%s/energy_uj", powercap_path, zones[i]);
        lab__source_reading(telemetry, source,
                            &(const struct lab__reading){
                                .form = LAB__METER, .file = -1, .meter = meter},
                            origin);
        found += lab__source_end(telemetry, source);
    }

    return found;
}

/* --- perf ------------------------------------------------------------------------------------- */

/* powercap's name of the domain that an event counts. */
static const char *event_part(const char *event)
{
    static const char *const names[][2] = {
        {"pkg", ""}, {"cores", "/core"}, {"gpu", "/uncore"}, {"ram", "/dram"}, {"psys", "psys"}};

    for (int i = 0; i < 5; i++)
        if (strcmp(event, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* The count begins at 0 and must rise within some steps of the counter, which take a millisecond
 * each. In a virtual machine some counters never do. */
static bool is_counting(int file)
{
    uint64_t count;

    nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
    return read(file, &count, sizeof count) == sizeof count && count > 0;
}

struct event {
    const char *name; /* "energy-pkg" */
    const char *part; /* powercap's name */
    uint32_t type;
    uint64_t config;
    double scale;
};

static bool read_event(const char *root, struct event *event)
{
    char text[64];

    event->part = event_part(event->name + strlen("energy-"));
    if (!event->part ||
        !sysfs_text(root, text, sizeof text, "%s/events/%s.unit", pmu_path, event->name) ||
        strcmp(text, "Joules") != 0 ||
        !sysfs_number(root, &event->scale, "%s/events/%s.scale", pmu_path, event->name) ||
        !sysfs_text(root, text, sizeof text, "%s/events/%s", pmu_path, event->name) ||
        strncmp(text, "event=", 6) != 0)
        return false;

    event->config = strtoull(text + 6, NULL, 0);
    return true;
}

/* Open one event for each package, on the CPUs that the PMU lists; the platform ("psys") has
 * one. */
static uint32_t open_events(struct lab_telemetry *telemetry, const struct event *event,
                            const char *cpus,
                            int (*event_open)(uint32_t type, uint64_t config, int cpu), int *error)
{
    const bool platform = strcmp(event->part, "psys") == 0;
    uint32_t found = 0, package = 0;

    for (int cpu = 0; cpu < CPUS_MAX && package < (platform ? 1 : PACKAGES_MAX); cpu++) {
        char name[48] = "psys", origin[64];

        if (!sysfs_list_has(cpus, (uint32_t)cpu))
            continue;
        if (!platform)
            snprintf(name, sizeof name, "package-%u%s", package, event->part);
        package++;

        int file = event_open(event->type, event->config, cpu);
        if (file < 0) {
            *error = errno;
            continue;
        }
        if (!strchr(name, '/') && !is_counting(file)) {
            lab__note(telemetry,
                      "power of %s: perf's counter power/%s/ does not change, as in "
                      "virtual machines",
                      name, event->name);
            close(file);
            continue;
        }

        struct lab__source *source = add_power(telemetry, name);
        snprintf(origin, sizeof origin, "perf: power/%.40s/", event->name);
        lab__source_reading(telemetry, source,
                            &(const struct lab__reading){
                                .form = LAB__EVENT, .file = file, .scale = event->scale},
                            origin);
        found += lab__source_end(telemetry, source);
    }

    return found;
}

/* As find_zones. */
static uint32_t find_events(struct lab_telemetry *telemetry, const char *root,
                            int (*event_open)(uint32_t type, uint64_t config, int cpu), int *error)
{
    char events[EVENTS_MAX][SYSFS_NAME_BYTES], cpus[256], folder[64];
    double type;
    uint32_t found = 0;

    if (!sysfs_number(root, &type, "%s/type", pmu_path) ||
        !sysfs_text(root, cpus, sizeof cpus, "%s/cpumask", pmu_path))
        return 0;
    *error = ENOSYS;
    if (!event_open)
        return 0;

    snprintf(folder, sizeof folder, "%s/events", pmu_path);
    size_t count = sysfs_list(root, folder, "", events, EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct event event = {.name = events[i], .type = (uint32_t)type};

        if (strncmp(events[i], "energy-", 7) == 0 && !strchr(events[i], '.') &&
            read_event(root, &event))
            found += open_events(telemetry, &event, cpus, event_open, error);
    }

    return found;
}

/* --- Both ------------------------------------------------------------------------------------- */

static bool is_denied(int error)
{
    return error == EACCES || error == EPERM;
}

static void note_powercap(struct lab_telemetry *telemetry, const char *root, int error)
{
    if (is_denied(error))
        lab__note(telemetry,
                  "power of the processor: only root may read %s/%s/intel-rapl:*/energy_uj. To "
                  "let the group `power` read it, write these two lines to "
                  "/etc/udev/rules.d/70-powercap.rules:\n"
                  "    SUBSYSTEM==\"powercap\", KERNEL==\"intel-rapl:*\", "
                  "ACTION==\"add|change\", RUN+=\"/bin/chgrp power /sys%%p/energy_uj\"\n"
                  "    SUBSYSTEM==\"powercap\", KERNEL==\"intel-rapl:*\", "
                  "ACTION==\"add|change\", RUN+=\"/bin/chmod g+r /sys%%p/energy_uj\"\n"
                  "and, as root: groupadd -f power; usermod -aG power USER; udevadm control "
                  "--reload; udevadm trigger --subsystem-match=powercap; then log in again",
                  root, powercap_path);
    else if (error)
        lab__note(telemetry, "power of the processor: cannot read the counters in %s/%s: %s", root,
                  powercap_path, strerror(error));
    else
        lab__note(telemetry,
                  "power of the processor: no intel-rapl (Intel, AMD) in %s/%s; as root: "
                  "modprobe intel_rapl_msr (a virtual machine has none)",
                  root, powercap_path);
}

static void note_perf(struct lab_telemetry *telemetry, int error)
{
    if (is_denied(error))
        lab__note(telemetry, "power of the processor by perf: not permitted; as root: sysctl "
                             "kernel.perf_event_paranoid=0, or setcap cap_perfmon+ep on cox-lab");
    else if (error && error != ENOSYS)
        lab__note(telemetry, "power of the processor by perf: %s", strerror(error));
}

void lab__find_power(struct lab_telemetry *telemetry, const char *root,
                     int (*event_open)(uint32_t type, uint64_t config, int cpu))
{
    int powercap = 0, perf = 0;

    if (find_zones(telemetry, root, &powercap) || find_events(telemetry, root, event_open, &perf))
        return;

    note_powercap(telemetry, root, powercap);
    note_perf(telemetry, perf);
}
