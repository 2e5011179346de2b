/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_read.h"

#include <stdio.h>
#include <string.h>

bool lab_place_enter_member(struct strict_place *in, const struct strict_place *at, const char *key,
                            const char *const *known)
{
    char path[STRICT_PATH_BYTES];

    snprintf(path, sizeof path, "%.130s%s%.20s", at->path, at->path[0] ? "." : "", key);
    return strict_enter(in, at->reader, json_object_get(at->object, key), known, path, 0);
}

bool lab_place_device(const struct strict_place *at, const char *key,
                      const struct lab_scenario *scenario, const char *name, uint32_t *out)
{
    for (uint32_t d = 0; d < scenario->device_count; d++) {
        if (strcmp(scenario->devices[d].name, name) == 0) {
            *out = d;
            return true;
        }
    }
    return strict_refuse(at, key, "unknown device \"%s\"", name);
}

bool lab_place_devices(const struct strict_place *at, const char *key,
                       const struct lab_scenario *scenario, uint32_t *out)
{
    json_t *names = strict_array(at, key, false, COX_DEVICES_MAX);

    *out = 0;
    for (size_t i = 0; names && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        uint32_t device = 0;

        if (!name)
            return strict_refuse(at, key, "must contain only names of devices");
        if (!lab_place_device(at, key, scenario, name, &device))
            return false;
        *out |= 1u << device;
    }

    return !at->reader->failed;
}
