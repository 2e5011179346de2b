/* Temperatures of the CPU: its sensors (hwmon) and the thermal zones.
 *
 * coretemp updates its sensors once a second (drivers/hwmon/coretemp.c), so they are read slowly.
 * The zone x86_pkg_temp reads the package's sensor each time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "discover.h"
#include "sysfs.h"

#include <string.h>

enum { FOLDERS_MAX = 64, ENTRIES_MAX = 512 };

static bool starts_with_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strncmp(text, *words, strlen(*words)) == 0)
            return true;
    return false;
}

/* The sensor's number and label; false if the entry is no temperature. */
static bool read_label(const char *root, const char *chip, const char *entry, unsigned *sensor,
                       char *label, size_t bytes)
{
    int end = 0;

    if (sscanf(entry, "temp%3u_input%n", sensor, &end) != 1 || end == 0 || entry[end])
        return false;
    if (!sysfs_text(root, label, bytes, "class/hwmon/%s/temp%u_label", chip, *sensor))
        snprintf(label, bytes, "temp%u", *sensor);
    return true;
}

/* Intel's cores together are one source, the hottest core. */
static void find_sensors(struct lab_telemetry *telemetry, const char *root, const char *chip,
                         bool intel)
{
    char folder[SYSFS_PATH_BYTES], label[40], entries[ENTRIES_MAX][SYSFS_NAME_BYTES];
    const enum lab__pace pace = intel ? LAB__SLOW : LAB__QUICK;
    unsigned sensor;

    snprintf(folder, sizeof folder, "class/hwmon/%.63s", chip);
    size_t count = sysfs_list(root, folder, "", entries, ENTRIES_MAX);
    for (size_t i = 0; i < count; i++)
        if (read_label(root, chip, entries[i], &sensor, label, sizeof label) &&
            !(intel && strncmp(label, "Core ", 5) == 0))
            lab__source_single(telemetry, LAB_TEMPERATURE, LAB__MEAN, pace, "temperature: ", label,
                               1e-3, "class/hwmon/%s/temp%u_input", chip, sensor);
    if (!intel)
        return;

    struct lab__source *hottest = lab__source_add(telemetry, LAB_TEMPERATURE, LAB__MOST, LAB__SLOW,
                                                  "temperature of the ", "hottest core");
    for (size_t i = 0; i < count; i++)
        if (read_label(root, chip, entries[i], &sensor, label, sizeof label) &&
            strncmp(label, "Core ", 5) == 0)
            lab__source_file(telemetry, hottest, LAB__NUMBER, 1e-3, "class/hwmon/%s/temp%u_input",
                             chip, sensor);
    lab__source_end(telemetry, hottest);
}

static void find_zones(struct lab_telemetry *telemetry, const char *root)
{
    static const char *const types[] = {"x86_pkg_temp", "cpu", "gpu", "soc", NULL};
    char zones[FOLDERS_MAX][SYSFS_NAME_BYTES], type[40];
    size_t count = sysfs_list(root, "class/thermal", "thermal_zone", zones, FOLDERS_MAX);

    for (size_t i = 0; i < count; i++)
        if (sysfs_text(root, type, sizeof type, "class/thermal/%s/type", zones[i]) &&
            starts_with_any(type, types))
            lab__source_single(telemetry, LAB_TEMPERATURE, LAB__MEAN, LAB__QUICK,
                               "temperature: zone ", type, 1e-3, "class/thermal/%s/temp", zones[i]);
}

void lab__find_heat(struct lab_telemetry *telemetry, const char *root)
{
    char chips[FOLDERS_MAX][SYSFS_NAME_BYTES], driver[40];
    uint32_t before = lab_telemetry_count(telemetry);
    size_t count = sysfs_list(root, "class/hwmon", "hwmon", chips, FOLDERS_MAX);

    for (size_t i = 0; i < count; i++) {
        if (!sysfs_text(root, driver, sizeof driver, "class/hwmon/%s/name", chips[i]))
            continue;

        bool intel = strcmp(driver, "coretemp") == 0;
        if (intel || strcmp(driver, "k10temp") == 0 || strcmp(driver, "zenpower") == 0)
            find_sensors(telemetry, root, chips[i], intel);
    }
    find_zones(telemetry, root);

    if (lab_telemetry_count(telemetry) == before)
        lab__note(telemetry,
                  "temperatures of the processor: no coretemp (Intel) or k10temp (AMD) in "
                  "class/hwmon, and no zone of the processor in class/thermal; as root: "
                  "modprobe coretemp, or modprobe k10temp (a virtual machine has neither)");
}
