/* The machine's power supplies: batteries and mains
 * (Documentation/ABI/testing/sysfs-class-power).
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "discover.h"
#include "sysfs.h"

#include <string.h>

enum { SUPPLIES_MAX = 16 };

static const char supplies_path[] = "class/power_supply";

/* A battery is read slowly: its embedded controller takes milliseconds to answer. */
static void find_battery(struct lab_telemetry *telemetry, const char *name)
{
    struct lab__source *power = lab__source_add(telemetry, LAB_POWER, LAB__PRODUCT, LAB__SLOW,
                                                "power from ", name);
    bool found = lab__source_file(telemetry, power, LAB__NUMBER, 1e-6, "%s/%s/power_now",
                                  supplies_path, name) ||
                 (lab__source_file(telemetry, power, LAB__NUMBER, 1e-6, "%s/%s/current_now",
                                   supplies_path, name) &&
                  lab__source_file(telemetry, power, LAB__NUMBER, 1e-6, "%s/%s/voltage_now",
                                   supplies_path, name));

    if (found)
        lab__source_file(telemetry, power, LAB__SIGN, 1, "%s/%s/status", supplies_path, name);
    lab__source_end(telemetry, power);

    lab__source_single(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW, "status of ", name, 1,
                       "%s/%s/status", supplies_path, name);
}

void lab__find_supplies(struct lab_telemetry *telemetry, const char *root)
{
    char names[SUPPLIES_MAX][SYSFS_NAME_BYTES], type[24], scope[24];
    size_t count = sysfs_list(root, supplies_path, "", names, SUPPLIES_MAX);

    for (size_t i = 0; i < count; i++) {
        /* The battery of a mouse has the scope "Device". */
        if (!sysfs_text(root, type, sizeof type, "%s/%s/type", supplies_path, names[i]) ||
            (sysfs_text(root, scope, sizeof scope, "%s/%s/scope", supplies_path, names[i]) &&
             strcmp(scope, "Device") == 0))
            continue;

        if (strcmp(type, "Battery") == 0)
            find_battery(telemetry, names[i]);
        if (strcmp(type, "Mains") == 0)
            lab__source_single(telemetry, LAB_SETTING, LAB__TEXT, LAB__SLOW, "on line: ", names[i],
                               1, "%s/%s/online", supplies_path, names[i]);
    }
}
