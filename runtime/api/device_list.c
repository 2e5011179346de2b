/* SPDX-License-Identifier: Apache-2.0 */
#include "device_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES = 192 };

/* Whether `text` is decimal digits, and their value. */
static bool is_number(const char *text, unsigned long *value)
{
    char *end = NULL;
    if (*text < '0' || *text > '9')
        return false;

    *value = strtoul(text, &end, 10);
    return !*end;
}

static bool is_type(const char *entry, enum cox_device_type type)
{
    return strcmp(entry, cox_device_type_name(type)) == 0;
}

static bool names(const char *entry, uint32_t index, const struct cox_device_info *info)
{
    unsigned long number;
    if (entry[0] == '#')
        return is_number(entry + 1, &number) && number == index;
    if (strcmp(entry, "all") == 0)
        return true;
    if (is_type(entry, COX_DEVICE_CPU) || is_type(entry, COX_DEVICE_GPU) ||
        is_type(entry, COX_DEVICE_ACCELERATOR))
        return is_type(entry, info->type);

    char place[32];
    snprintf(place, sizeof place, "%u.%u", info->platform_index, info->device_index);
    return strcmp(entry, place) == 0 || strcasestr(info->name, entry) ||
           strcasestr(info->platform, entry);
}

/* Add the devices that the entry names. */
static cox_status add(const cox_runtime *runtime, const char *entry, bool chosen[COX_DEVICES_MAX])
{
    struct cox__backend *backend = runtime->backend;
    const uint32_t all = backend->ops->device_count(backend);
    bool any = false;
    for (uint32_t d = 0; d < all; d++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, d, &info);
        if (*entry && names(entry, d, &info))
            any = chosen[d] = true;
    }
    if (any)
        return COX_OK;

    cox__log(&runtime->log, COX_LOG_ERROR, "devices: '%s' names none of the runtime's %u devices",
             entry, all);
    return COX_E_NOT_FOUND;
}

cox_status cox__device_list_read(const cox_runtime *runtime, const char *text,
                                 uint32_t devices[COX_DEVICES_MAX], uint32_t *count)
{
    *count = 0;
    if (!text || strcmp(text, "all") == 0)
        return COX_OK;

    bool chosen[COX_DEVICES_MAX] = {false};
    for (const char *at = text;;) {
        char entry[ENTRY_BYTES];
        const size_t length = strcspn(at, ",");
        snprintf(entry, sizeof entry, "%.*s", (int)length, at);
        const cox_status status = add(runtime, entry, chosen);
        if (status)
            return status;
        if (!at[length])
            break;
        at += length + 1;
    }

    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        if (chosen[d])
            devices[(*count)++] = d;
    return COX_OK;
}
