/* Where the machine's power comes from: batteries and mains (Documentation/ABI/testing/sysfs-class-power).
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "sysfs.h"

#include <string.h>

enum { SUPPLIES_MAX = 16 };

static const char supplies_path[] = "class/power_supply";

/* Batteries answer by the embedded controller, which takes milliseconds: seldom. */
static void find_battery(struct lab_telemetry *telemetry, const char *name)
{
    struct lab__source *power = lab__source_add(telemetry, LAB_POWER, LAB__PRODUCT, LAB__SLOW,
                                                "power from ", "%s", name);
    bool found =
        lab__source_file(telemetry, power, 1e-6, "%s/%s/power_now", supplies_path, name) ||
        (lab__source_file(telemetry, power, 1e-6, "%s/%s/current_now", supplies_path, name) &&
         lab__source_file(telemetry, power, 1e-6, "%s/%s/voltage_now", supplies_path, name));
    if (found)
        lab__source_sign(telemetry, power, "%s/%s/status", supplies_path, name);
    lab__source_end(telemetry, power);
    struct lab__source *status = lab__source_add(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW,
                                                 "status of ", "%s", name);
    lab__source_file(telemetry, status, 1, "%s/%s/status", supplies_path, name);
    lab__source_end(telemetry, status);
}

void lab__find_supplies(struct lab_telemetry *telemetry, const char *root)
{
    char names[SUPPLIES_MAX][SYSFS_NAME_BYTES], type[24], scope[24];
    size_t count = sysfs_list(root, supplies_path, "", names, SUPPLIES_MAX);
    for (size_t i = 0; i < count; i++) {
        /* A mouse has a battery too: its scope is "Device". */
        if (!sysfs_text(root, type, sizeof type, "%s/%s/type", supplies_path, names[i]) ||
            (sysfs_text(root, scope, sizeof scope, "%s/%s/scope", supplies_path, names[i]) &&
             strcmp(scope, "Device") == 0))
            continue;
        if (strcmp(type, "Battery") == 0)
            find_battery(telemetry, names[i]);
        if (strcmp(type, "Mains") != 0)
            continue;
        struct lab__source *online = lab__source_add(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW,
                                                     "on line: ", "%s", names[i]);
        lab__source_file(telemetry, online, 1, "%s/%s/online", supplies_path, names[i]);
        lab__source_end(telemetry, online);
    }
}
