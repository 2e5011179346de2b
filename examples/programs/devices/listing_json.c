/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"
#include "common/json.h"

#include <coxswain/coxswain.h>
#include <stdio.h>

static void put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

static void put_number(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_unsigned(json, number);
}

static void put_real(struct json *json, const char *key, double number)
{
    json_key(json, key);
    json_number(json, number);
}

static void put_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

static void put_lines(struct json *json, const char *key, const char *lines, size_t stride,
                      uint32_t count)
{
    json_key(json, key);
    json_open_array(json, count == 0);
    for (uint32_t i = 0; i < count; i++)
        json_string(json, lines + i * stride);
    json_close_array(json);
}

static void put_host(struct json *json, const struct cox_host_info *host)
{
    json_key(json, "host");
    json_open_object(json, false);
    put_number(json, "cores", host->cores);
    put_number(json, "cpus", host->cpus);

    json_key(json, "kinds");
    json_open_array(json, true);
    for (uint32_t i = 0; i < host->kind_count; i++) {
        json_open_object(json, true);
        put_text(json, "name", host->kind_name[i]);
        put_number(json, "cores", host->kind_cores[i]);
        json_close_object(json);
    }
    json_close_array(json);

    put_bool(json, "reserved", host->reserved);
    put_bool(json, "workers_kept_off", host->workers_kept_off);
    json_key(json, "reserved_cpu");
    if (host->reserved)
        json_unsigned(json, host->reserved_cpu);
    else
        json_null(json);

    put_text(json, "reserve_reason", host->reserve_reason);
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
    put_bool(json, "wrapped", measured->wrapped);
    put_real(json, "extra_us", measured->extra_us);
    put_real(json, "gb_per_s", measured->gb_per_s);
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
    put_real(json, "p50_us", measured->p50_us);
    put_real(json, "p99_us", measured->p99_us);
    put_real(json, "clock_error_us", measured->clock_error_us);
    json_close_object(json);
}

static void put_device(struct json *json, const struct cox_device_info *device,
                       const struct measured *measured)
{
    char number[NUMBER_BYTES];
    listing_number(device, number);

    json_open_object(json, false);
    put_text(json, "number", number);
    put_text(json, "name", device->name);
    put_text(json, "platform", device->platform);
    put_text(json, "driver", device->driver);
    put_text(json, "id", device->id);
    put_text(json, "type", cox_device_type_name(device->type));
    put_text(json, "mode", cox_memory_mode_name(device->mode));

    put_number(json, "platform_index", device->platform_index);
    put_number(json, "device_index", device->device_index);
    put_number(json, "subdevice", device->subdevice);
    put_number(json, "context_group", device->context_group);

    put_number(json, "compute_units", device->compute_units);
    put_number(json, "parent_units", device->parent_units);
    put_number(json, "max_work_group", device->max_work_group);
    put_number(json, "vector_width_float", device->vector_width_float);

    put_number(json, "base_align_bytes", device->base_align_bytes);
    put_number(json, "global_bytes", device->global_bytes);
    put_number(json, "max_alloc_bytes", device->max_alloc_bytes);
    put_bool(json, "unified", device->unified);
    put_text(json, "host_memory", cox_host_memory_name(device->host_memory));
    put_text(json, "fma", cox_fma_name(device->fma));

    if (measured) {
        put_ends(json, &measured->ends);
        put_memory(json, &measured->memory);
    }
    json_close_object(json);
}

static void put_platforms(struct json *json, const struct listing *listing)
{
    json_key(json, "platforms");
    json_open_array(json, false);
    for (uint32_t i = 0; i < listing->platform_count; i++) {
        const struct cox_platform_info *platform = &listing->platforms[i];
        json_open_object(json, false);
        put_number(json, "index", i);
        put_text(json, "name", platform->name);
        put_text(json, "vendor", platform->vendor);
        put_text(json, "version", platform->version);
        put_number(json, "devices", platform->devices);
        json_close_object(json);
    }
    json_close_array(json);
}

static void put_devices(struct json *json, const struct listing *listing)
{
    json_key(json, "devices");
    json_open_array(json, false);
    for (uint32_t i = 0; i < listing->device_count; i++) {
        const struct measured *measured = NULL;
        if (listing->measured)
            measured = &listing->measured[i];
        put_device(json, &listing->devices[i], measured);
    }
    json_close_array(json);
}

void listing_print_json(const struct listing *listing)
{
    const struct missing *missing = &listing->missing;
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    put_text(&json, "version", cox_version());
    put_host(&json, &listing->host);
    put_text(&json, "arithmetic", cox_arithmetic_name(listing->arithmetic));

    put_platforms(&json, listing);
    put_devices(&json, listing);
    put_lines(&json, "missing", missing->text[0], sizeof missing->text[0], missing->count);
    put_lines(&json, "notes", listing->notes[0], sizeof listing->notes[0], listing->note_count);
    json_close_object(&json);
    json_end(&json);
}
