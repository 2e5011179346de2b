/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"
#include "common/json.h"

#include <coxswain/coxswain.h>
#include <stdio.h>

static void put_lines(struct json *json, const char *key, const char *lines, size_t stride,
                      uint32_t count)
{
    json_member_array(json, key, count == 0);
    for (uint32_t i = 0; i < count; i++)
        json_string(json, lines + i * stride);
    json_close_array(json);
}

static void put_host(struct json *json, const struct cox_host_info *host)
{
    json_member_object(json, "host", false);
    json_member_unsigned(json, "cores", host->cores);
    json_member_unsigned(json, "cpus", host->cpus);

    json_member_array(json, "kinds", true);
    for (uint32_t i = 0; i < host->kind_count; i++) {
        json_open_object(json, true);
        json_member_string(json, "name", host->kind_name[i]);
        json_member_unsigned(json, "cores", host->kind_cores[i]);
        json_close_object(json);
    }
    json_close_array(json);

    json_member_bool(json, "reserved", host->reserved);
    json_member_bool(json, "workers_kept_off", host->workers_kept_off);
    json_key(json, "reserved_cpu");
    if (host->reserved)
        json_unsigned(json, host->reserved_cpu);
    else
        json_null(json);

    json_member_string(json, "reserve_reason", host->reserve_reason);
    json_close_object(json);
}

static void put_memory(struct json *json, const struct measured_memory *measured)
{
    json_key(json, "frame_memory");
    if (measured->status) {
        json_null(json);
        return;
    }

    json_open_object(json, true);
    json_member_bool(json, "wrapped", measured->wrapped);
    json_member_number(json, "extra_us", measured->extra_us);
    json_member_number(json, "gb_per_s", measured->gb_per_s);
    json_close_object(json);
}

static void put_ends(struct json *json, const struct measured_ends *measured)
{
    json_key(json, "noticed_after");
    if (!measured->told) {
        json_null(json);
        return;
    }

    json_open_object(json, true);
    json_member_number(json, "p50_us", measured->p50_us);
    json_member_number(json, "p99_us", measured->p99_us);
    json_member_number(json, "clock_error_us", measured->clock_error_us);
    json_close_object(json);
}

static void put_device(struct json *json, const struct cox_device_info *device,
                       const struct measured *measured)
{
    char number[NUMBER_BYTES];
    listing_number(device, number);

    json_open_object(json, false);
    json_member_string(json, "number", number);
    json_member_string(json, "name", device->name);
    json_member_string(json, "platform", device->platform);
    json_member_string(json, "driver", device->driver);
    json_member_string(json, "id", device->id);
    json_member_string(json, "type", cox_device_type_name(device->type));
    json_member_string(json, "mode", cox_memory_mode_name(device->mode));

    json_member_unsigned(json, "platform_index", device->platform_index);
    json_member_unsigned(json, "device_index", device->device_index);
    json_member_unsigned(json, "subdevice", device->subdevice);
    json_member_unsigned(json, "context_group", device->context_group);

    json_member_unsigned(json, "compute_units", device->compute_units);
    json_member_unsigned(json, "parent_units", device->parent_units);
    json_member_unsigned(json, "max_work_group", device->max_work_group);
    json_member_unsigned(json, "vector_width_float", device->vector_width_float);

    json_member_unsigned(json, "base_align_bytes", device->base_align_bytes);
    json_member_unsigned(json, "global_bytes", device->global_bytes);
    json_member_unsigned(json, "max_alloc_bytes", device->max_alloc_bytes);
    json_member_bool(json, "unified", device->unified);
    json_member_string(json, "host_memory", cox_host_memory_name(device->host_memory));
    json_member_string(json, "fma", cox_fma_name(device->fma));

    if (measured) {
        put_ends(json, &measured->ends);
        put_memory(json, &measured->memory);
    }
    json_close_object(json);
}

static void put_platforms(struct json *json, const struct listing *listing)
{
    json_member_array(json, "platforms", false);
    for (uint32_t i = 0; i < listing->platform_count; i++) {
        const struct cox_platform_info *platform = &listing->platforms[i];
        json_open_object(json, false);
        json_member_unsigned(json, "index", i);
        json_member_string(json, "name", platform->name);
        json_member_string(json, "vendor", platform->vendor);
        json_member_string(json, "version", platform->version);
        json_member_unsigned(json, "devices", platform->devices);
        json_close_object(json);
    }
    json_close_array(json);
}

static void put_devices(struct json *json, const struct listing *listing)
{
    json_member_array(json, "devices", false);
    for (uint32_t i = 0; i < listing->device_count; i++) {
        const struct measured *measured = NULL;
        if (listing->measured)
            measured = &listing->measured[i];
        put_device(json, &listing->devices[i], measured);
    }
    json_close_array(json);
}

static void put_left_out(struct json *json, const struct listing *listing)
{
    json_member_array(json, "left_out", listing->left_out_count == 0);
    for (uint32_t i = 0; i < listing->left_out_count; i++) {
        const struct cox_left_out *device = &listing->left_out[i];
        char number[NUMBER_BYTES];
        snprintf(number, sizeof number, "%u.%u", device->platform_index, device->device_index);

        json_open_object(json, true);
        json_member_string(json, "number", number);
        json_member_string(json, "name", device->name);
        json_member_string(json, "platform", device->platform);
        json_member_string(json, "reason", device->reason);
        json_close_object(json);
    }
    json_close_array(json);
}

void listing_print_json(const struct listing *listing)
{
    const struct missing *missing = &listing->missing;
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_string(&json, "version", cox_version());
    put_host(&json, &listing->host);
    json_member_string(&json, "arithmetic", cox_arithmetic_name(listing->arithmetic));

    put_platforms(&json, listing);
    put_devices(&json, listing);
    put_left_out(&json, listing);
    put_lines(&json, "missing", missing->text[0], sizeof missing->text[0], missing->count);
    put_lines(&json, "notes", listing->notes[0], sizeof listing->notes[0], listing->note_count);
    json_close_object(&json);
    json_end(&json);
}
