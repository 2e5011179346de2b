/* Temperatures of the processor: of its sensors (hwmon) and of the thermal zones.
 *
 * coretemp reads its sensors once a second, whatever is asked (drivers/hwmon/coretemp.c), so they are slow ones here;
 * the zone x86_pkg_temp reads the package's each time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "sysfs.h"

#include <string.h>

enum { FOLDERS_MAX = 64, ENTRIES_MAX = 512 };

/* The sensor's number and label; false if it is no temperature. */
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

static void find_sensors(struct lab_telemetry *telemetry, const char *root, const char *chip,
                         const char *driver)
{
    char folder[SYSFS_PATH_BYTES], label[40];
    char entries[ENTRIES_MAX][SYSFS_NAME_BYTES];
    unsigned sensor;
    snprintf(folder, sizeof folder, "class/hwmon/%.63s", chip);
    size_t count = sysfs_list(root, folder, "", entries, ENTRIES_MAX);
    bool intel = strcmp(driver, "coretemp") == 0;
    for (size_t i = 0; i < count; i++) {
        if (!read_label(root, chip, entries[i], &sensor, label, sizeof label) ||
            (intel && strncmp(label, "Core ", 5) == 0))
            continue;
        struct lab__source *source = lab__source_add(telemetry, LAB_TEMPERATURE, LAB__MEAN,
                                                     intel ? LAB__SLOW : LAB__QUICK,
                                                     "temperature: ", "%s", label);
        lab__source_file(telemetry, source, 1e-3, "class/hwmon/%s/temp%u_input", chip, sensor);
        lab__source_end(telemetry, source);
    }
    if (!intel)
        return;
    struct lab__source *hottest = lab__source_add(telemetry, LAB_TEMPERATURE, LAB__MOST, LAB__SLOW,
                                                  "temperature of the ", "hottest core");
    for (size_t i = 0; i < count; i++)
        if (read_label(root, chip, entries[i], &sensor, label, sizeof label) &&
            strncmp(label, "Core ", 5) == 0)
            lab__source_file(telemetry, hottest, 1e-3, "class/hwmon/%s/temp%u_input", chip, sensor);
    lab__source_end(telemetry, hottest);
}

static void find_zones(struct lab_telemetry *telemetry, const char *root)
{
    static const char *const wanted[] = {"x86_pkg_temp", "cpu", "gpu",
                                         "soc"}; /* the beginnings of types */
    char zones[FOLDERS_MAX][SYSFS_NAME_BYTES], type[40];
    size_t count = sysfs_list(root, "class/thermal", "thermal_zone", zones, FOLDERS_MAX);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        if (!sysfs_text(root, type, sizeof type, "class/thermal/%s/type", zones[i]))
            continue;
        for (int w = 0; w < 4; w++)
            found |= strncmp(type, wanted[w], strlen(wanted[w])) == 0;
        if (!found)
            continue;
        struct lab__source *source = lab__source_add(telemetry, LAB_TEMPERATURE, LAB__MEAN,
                                                     LAB__QUICK, "temperature: zone ", "%s", type);
        lab__source_file(telemetry, source, 1e-3, "class/thermal/%s/temp", zones[i]);
        lab__source_end(telemetry, source);
    }
}

void lab__find_heat(struct lab_telemetry *telemetry, const char *root)
{
    static const char *const drivers[] = {"coretemp", "k10temp", "zenpower"};
    char chips[FOLDERS_MAX][SYSFS_NAME_BYTES], driver[40];
    uint32_t before = lab_telemetry_count(telemetry);
    size_t count = sysfs_list(root, "class/hwmon", "hwmon", chips, FOLDERS_MAX);
    for (size_t i = 0; i < count; i++)
        if (sysfs_text(root, driver, sizeof driver, "class/hwmon/%s/name", chips[i]))
            for (int d = 0; d < 3; d++)
                if (strcmp(driver, drivers[d]) == 0)
                    find_sensors(telemetry, root, chips[i], driver);
    find_zones(telemetry, root);
    if (lab_telemetry_count(telemetry) == before)
        lab__note(
            telemetry,
            "temperatures of the processor: class/hwmon has no coretemp (Intel) or k10temp (AMD), and "
            "class/thermal no zone of the processor; as root: modprobe coretemp, or modprobe k10temp. "
            "A virtual machine has none");
}
