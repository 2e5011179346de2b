/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/telemetry/sysfs.h"
#include "plan.h"

#include <string.h>

enum { SUPPLIES_MAX = 16 };

static const char supplies_path[] = "class/power_supply";

const char *laptop_supply_name(enum laptop_supply supply)
{
    static const char *const names[] = {"unknown", "mains", "battery"};
    return names[supply];
}

/* Mains that are on line, or a charger by USB. A mouse has a battery too: its scope is "Device". */
enum laptop_supply laptop_supply_now(const char *sysfs)
{
    const char *root = sysfs ? sysfs : "/sys";
    char names[SUPPLIES_MAX][SYSFS_NAME_BYTES], text[24];
    size_t count = sysfs_list(root, supplies_path, "", names, SUPPLIES_MAX);
    enum laptop_supply supply = LAPTOP_SUPPLY_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        double online;
        if (sysfs_text(root, text, sizeof text, "%s/%s/scope", supplies_path, names[i]) &&
            strcmp(text, "Device") == 0)
            continue;
        if (!sysfs_text(root, text, sizeof text, "%s/%s/type", supplies_path, names[i]))
            continue;
        if (strcmp(text, "Battery") == 0) {
            if (supply == LAPTOP_SUPPLY_UNKNOWN)
                supply = LAPTOP_SUPPLY_BATTERY;
        } else if (sysfs_number(root, &online, "%s/%s/online", supplies_path, names[i]) &&
                   online > 0) {
            supply = LAPTOP_SUPPLY_MAINS;
        }
    }
    return supply;
}
