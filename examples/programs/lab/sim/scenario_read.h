/* What the readers of scenario files share, beyond plain values (strict_json.h): objects in
 * objects, names of devices. All functions return false once the reader has failed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SCENARIO_READ_H
#define COX_EXAMPLES_LAB_SCENARIO_READ_H

#include "lab/strict_json.h"
#include "scenario.h"

/* Enter the object under `key` of `at`, which must exist. */
bool lab_place_enter_member(struct strict_place *in, const struct strict_place *at, const char *key,
                            const char *const *known);

bool lab_place_device(const struct strict_place *at, const char *key,
                      const struct lab_scenario *scenario, const char *name, uint32_t *out);

/* Read an array of device names, a bit each; 0 without the key. */
bool lab_place_devices(const struct strict_place *at, const char *key,
                       const struct lab_scenario *scenario, uint32_t *out);

/* --- scenario_chance.c --- */

/* Read a device's "jitter", "jitter_tail", "level", "jumps", "launch_tail", "outliers" and
 * "trace". */
bool lab_read_device_chance(const struct strict_place *at, struct lab_scenario_device *out,
                            struct lab_scenario *scenario);

/* Read "engine", "application", "bursts" and "links" of the file. */
/* Append numbers from `low` to `high`, times `unit`, to the scenario's traces. */
bool lab_read_series(const struct strict_place *at, const char *key, const json_t *values,
                     double low, double high, double unit, struct lab_scenario *scenario);

bool lab_read_engine(const struct strict_place *at, struct lab_scenario *out);

#endif
