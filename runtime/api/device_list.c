/* SPDX-License-Identifier: Apache-2.0 */
#include "device_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES = 192 };

/* Whether `text` is decimal digits; `*value` is their value. */
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

/* Whether the entry names the device: by number, type, place or a part of its name. */
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

/* Add the devices that the entry names. False: it names no device. */
static bool add(const cox_runtime *runtime, const char *entry, bool chosen[COX_DEVICES_MAX])
{
    struct cox__backend *backend = runtime->backend;
    bool any = false;

    for (uint32_t d = 0; d < backend->ops->device_count(backend); d++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, d, &info);

        if (*entry && names(entry, d, &info))
            any = chosen[d] = true;
    }
    return any;
}

/* Drop spaces at the end. */
static void trim(char *entry)
{
    size_t length = strlen(entry);
    while (length > 0 && entry[length - 1] == ' ')
        entry[--length] = '\0';
}

/* As cox__device_list_find. If it fails, `entry` is the one that names no device. */
static bool find(const cox_runtime *runtime, const char *text, uint32_t devices[COX_DEVICES_MAX],
                 uint32_t *count, char entry[ENTRY_BYTES])
{
    bool chosen[COX_DEVICES_MAX] = {false};
    *count = 0;
    if (!text || strcmp(text, "all") == 0)
        return true;

    for (const char *at = text;;) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, ",");
        snprintf(entry, ENTRY_BYTES, "%.*s", (int)length, at);
        trim(entry);
        if (!add(runtime, entry, chosen))
            return false;
        if (!at[length])
            break;

        at += length + 1;
    }

    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        if (chosen[d])
            devices[(*count)++] = d;
    return true;
}

bool cox__device_list_find(const cox_runtime *runtime, const char *text,
                           uint32_t devices[COX_DEVICES_MAX], uint32_t *count)
{
    char entry[ENTRY_BYTES];
    return find(runtime, text, devices, count, entry);
}

cox_status cox__device_list_read(const cox_runtime *runtime, const char *text,
                                 uint32_t devices[COX_DEVICES_MAX], uint32_t *count)
{
    char entry[ENTRY_BYTES];
    if (find(runtime, text, devices, count, entry))
        return COX_OK;

    cox__log(&runtime->log, COX_LOG_ERROR, "devices: '%s' matches none of the runtime's %u devices",
             entry, runtime->backend->ops->device_count(runtime->backend));
    return COX_E_NOT_FOUND;
}
