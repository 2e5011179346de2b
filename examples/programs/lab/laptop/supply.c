/* SPDX-License-Identifier: Apache-2.0 */
#include "supply.h"
#include "lab/telemetry/sysfs.h"

#include <string.h>

enum { SUPPLIES_MAX = 16 };

static const char folder[] = "class/power_supply";

const char *laptop_supply_name(enum laptop_supply supply)
{
    static const char *const names[] = {"unknown", "mains", "battery"};

    return names[supply];
}

/* Mains if a mains adapter or a USB charger is online, else battery if there is one. The batteries
 * of mice and other devices do not count: their scope is "Device". */
enum laptop_supply laptop_supply_now(const char *sysfs)
{
    enum laptop_supply supply = LAPTOP_SUPPLY_UNKNOWN;
    char names[SUPPLIES_MAX][SYSFS_NAME_BYTES], text[24];
    const char *root = "/sys";

    if (sysfs)
        root = sysfs;
    size_t count = sysfs_list(root, folder, "", names, SUPPLIES_MAX);

    for (size_t i = 0; i < count; i++) {
        double online;

        if (sysfs_text(root, text, sizeof text, "%s/%s/scope", folder, names[i]) &&
            strcmp(text, "Device") == 0)
            continue;
        if (!sysfs_text(root, text, sizeof text, "%s/%s/type", folder, names[i]))
            continue;

        if (strcmp(text, "Battery") == 0) {
            if (supply == LAPTOP_SUPPLY_UNKNOWN)
                supply = LAPTOP_SUPPLY_BATTERY;
        } else if (sysfs_number(root, &online, "%s/%s/online", folder, names[i]) && online > 0) {
            supply = LAPTOP_SUPPLY_MAINS;
        }
    }
    return supply;
}
