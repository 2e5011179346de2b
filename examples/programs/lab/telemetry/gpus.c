/* Clocks, temperatures, power and load of GPUs whose drivers have files in /sys: i915, xe, amdgpu.
 *
 * The drivers i915 and xe count the energy of discrete cards. The kernel describes these files in
 * Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and -xe-hwmon. An integrated GPU is
 * RAPL's zone "uncore".
 *
 * The driver amdgpu averages power itself. For a GPU within a CPU it is the power of the whole chip
 * (Documentation/gpu/amdgpu/thermal.rst).
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "discover.h"
#include "sysfs.h"

enum { CARDS_MAX = 16, TEMPERATURES_MAX = 8, POWERS_MAX = 2 };

/* The part and the driver's label of the sensor. */
static void name_sensor(const char *root, const char *chip, const char *kind, unsigned number,
                        const char *part, char *name, size_t bytes)
{
    char label[24];

    if (!sysfs_text(root, label, sizeof label, "%s/%s%u_label", chip, kind, number) && number > 1)
        snprintf(label, sizeof label, "%u", number);
    snprintf(name, bytes, "%s%s%s", part, *label ? " " : "", label);
}

static void find_sensors(struct lab_telemetry *telemetry, const char *root, const char *part,
                         const char *chip)
{
    char name[48];

    for (unsigned i = 1; i <= TEMPERATURES_MAX; i++) {
        name_sensor(root, chip, "temp", i, part, name, sizeof name);
        lab__source_single(telemetry, LAB_TEMPERATURE, LAB__MEAN, LAB__QUICK, "temperature of ",
                           name, 1e-3, "%s/temp%u_input", chip, i);
    }

    for (unsigned i = 1; i <= POWERS_MAX; i++) {
        name_sensor(root, chip, "power", i, part, name, sizeof name);
        if (lab__source_single(telemetry, LAB_POWER, LAB__MEAN, LAB__QUICK, "power of ", name, 1e-6,
                               "%s/power%u_average", chip, i) ||
            lab__source_single(telemetry, LAB_POWER, LAB__MEAN, LAB__QUICK, "power of ", name, 1e-6,
                               "%s/power%u_input", chip, i))
            continue;

        name_sensor(root, chip, "energy", i, part, name, sizeof name);
        lab__source_single(telemetry, LAB_POWER, LAB__RATE, LAB__QUICK, "power of ", name, 1e-6,
                           "%s/energy%u_input", chip, i);
    }
}

/* The actual clock is preferred to the requested one. */
static void find_clock(struct lab_telemetry *telemetry, const char *card, const char *part,
                       const char *chip)
{
    static const char *const files[] = {
        "gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq",
        "gt/gt0/rps_cur_freq_mhz", "gt_cur_freq_mhz", "device/tile0/gt0/freq0/cur_freq"};
    struct lab__source *source = lab__source_add(telemetry, LAB_CLOCK, LAB__MEAN, LAB__QUICK,
                                                 "clock of ", part);
    bool found = false;

    for (int i = 0; i < 6 && !found; i++)
        found = lab__source_file(telemetry, source, LAB__NUMBER, 1, "class/drm/%s/%s", card,
                                 files[i]);
    if (!found && *chip)
        found = lab__source_file(telemetry, source, LAB__NUMBER, 1e-6, "%s/freq1_input", chip);
    if (!found)
        lab__source_file(telemetry, source, LAB__LEVELS, 1, "class/drm/%s/device/pp_dpm_sclk",
                         card);
    lab__source_end(telemetry, source);
}

void lab__find_gpus(struct lab_telemetry *telemetry, const char *root)
{
    char cards[CARDS_MAX][SYSFS_NAME_BYTES], chips[1][SYSFS_NAME_BYTES], folder[SYSFS_PATH_BYTES];
    size_t count = sysfs_list(root, "class/drm", "card", cards, CARDS_MAX);

    for (size_t i = 0; i < count; i++) {
        char chip[SYSFS_PATH_BYTES] = "", part[24];

        snprintf(part, sizeof part, "GPU %.16s", cards[i]);
        snprintf(folder, sizeof folder, "class/drm/%.63s/device/hwmon", cards[i]);
        if (sysfs_list(root, folder, "hwmon", chips, 1))
            snprintf(chip, sizeof chip, "%.100s/%.60s", folder, chips[0]);

        find_clock(telemetry, cards[i], part, chip);
        if (*chip)
            find_sensors(telemetry, root, part, chip);
        lab__source_single(telemetry, LAB_LOAD, LAB__MEAN, LAB__QUICK, "load of ", part, 1,
                           "class/drm/%s/device/gpu_busy_percent", cards[i]);
    }
}
