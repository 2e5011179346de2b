/* Whether this machine runs on mains or on battery.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_SUPPLY_H
#define COX_EXAMPLES_LAB_LAPTOP_SUPPLY_H

enum laptop_supply { LAPTOP_SUPPLY_UNKNOWN, LAPTOP_SUPPLY_MAINS, LAPTOP_SUPPLY_BATTERY };

/* "unknown", "mains", "battery". */
const char *laptop_supply_name(enum laptop_supply supply);

/* From the power supplies that the system lists; `sysfs` NULL = /sys. */
enum laptop_supply laptop_supply_now(const char *sysfs);

#endif
