/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include <coxswain/coxswain.h>
#include <stdio.h>
#include <string.h>

static void print_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }

    const int decimals = value < 100 && unit > 0;
    printf("%6.*f %s", decimals, value, units[unit]);
}

void listing_number(const struct cox_device_info *device, char text[NUMBER_BYTES])
{
    int used = snprintf(text, NUMBER_BYTES, "%u.%u", device->platform_index, device->device_index);
    if (device->subdevice)
        snprintf(text + used, NUMBER_BYTES - (size_t)used, "#%u", device->subdevice);
}

static void print_host(const struct cox_host_info *host)
{
    printf("Processor\n");
    printf("  cores          %u", host->cores);
    if (host->cpus != host->cores)
        printf(", with %u hardware threads", host->cpus);

    printf("\n  core kinds     ");
    if (host->kind_count == 0)
        printf("all alike, or not reported by the system");

    for (uint32_t i = 0; i < host->kind_count; i++) {
        printf("%s%u ", i ? ", " : "", host->kind_cores[i]);
        if (host->kind_name[i][0])
            printf("%s", host->kind_name[i]);
        else
            printf("of power rank %u", i);
    }

    printf("\n  reserved core  %s\n", host->reserve_reason);
}

/* Without the text about how PoCL was built, which follows two spaces. */
static int version_length(const struct cox_platform_info *platform)
{
    const char *end = strstr(platform->version, "  ");
    if (!end)
        return (int)strlen(platform->version);

    return (int)(end - platform->version);
}

/* Grow a column's width to `length`, up to `most`. */
static void widen(int *width, int length, int most)
{
    if (length > most)
        length = most;
    if (length > *width)
        *width = length;
}

static void print_empty(const struct cox_platform_info *platform)
{
    const char *why = missing_why_empty(platform);
    if (why)
        printf("none, which is normal (%s)\n", why);
    else
        printf("none, which is normal\n");
}

static void print_platforms(const struct listing *listing)
{
    int name_width = 4, version_width = 7;
    for (uint32_t i = 0; i < listing->platform_count; i++) {
        widen(&name_width, (int)strlen(listing->platforms[i].name), 40);
        widen(&version_width, version_length(&listing->platforms[i]), 48);
    }

    printf("\nPlatforms\n  NO  %-*s  %-*s  DEVICES\n", name_width, "NAME", version_width,
           "VERSION");
    for (uint32_t i = 0; i < listing->platform_count; i++) {
        const struct cox_platform_info *platform = &listing->platforms[i];
        int version = 0;
        widen(&version, version_length(platform), version_width);
        printf("  %2u  %-*.*s  %-*.*s  ", i, name_width, name_width, platform->name, version_width,
               version, platform->version);
        if (platform->devices > 0)
            printf("%u\n", platform->devices);
        else
            print_empty(platform);
    }
}

static void print_device(const struct cox_device_info *device)
{
    char number[NUMBER_BYTES], units[32];
    listing_number(device, number);
    int used = snprintf(units, sizeof units, "%u", device->compute_units);
    if (device->compute_units != device->parent_units)
        snprintf(units + used, sizeof units - (size_t)used, "/%u", device->parent_units);

    printf("  %-6s  %-11s  %-6s  %7u  %5s  %5u B  %6u  ", number,
           cox_device_type_name(device->type), cox_memory_mode_name(device->mode),
           device->context_group, units, device->base_align_bytes, device->vector_width_float);
    print_bytes(device->global_bytes);
    printf("  %s\n", device->name);
}

/* The meaning of the memory modes that are in use. */
static void print_modes(const struct listing *listing)
{
    static const struct {
        enum cox_memory_mode mode;
        const char *text;
    } modes[] = {
        {COX_MODE_SHARED,
         "shares one OpenCL context with other devices; its bands are parts of one buffer"},
        {COX_MODE_MAPPED, "works on its own range of host memory"},
        {COX_MODE_STAGED, "has its own memory; copies run at the same time as kernels"},
    };
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        bool used = false;
        for (uint32_t i = 0; i < listing->device_count; i++)
            used = used || listing->devices[i].mode == modes[m].mode;

        if (used)
            printf("  %-7s %s\n", cox_memory_mode_name(modes[m].mode), modes[m].text);
    }
}

static void print_devices(const struct listing *listing)
{
    printf("\nDevices\n"
           "  NO      TYPE         MODE    CONTEXT  UNITS    ALIGN  VECTOR      MEMORY  NAME\n");
    for (uint32_t i = 0; i < listing->device_count; i++)
        print_device(&listing->devices[i]);

    printf("\n");
    print_modes(listing);

    printf("\nArithmetic of all devices: %s\n", cox_arithmetic_name(listing->arithmetic));
    for (uint32_t i = 0; i < listing->device_count; i++)
        if (listing->devices[i].fma != COX_FMA_FAST)
            printf("  %s has %s fma\n", listing->devices[i].name,
                   listing->devices[i].fma == COX_FMA_SLOW ? "slow" : "no");
}

static void print_left_out(const struct listing *listing)
{
    if (listing->left_out_count > 0)
        printf("\nLeft out\n");

    for (uint32_t i = 0; i < listing->left_out_count; i++) {
        const struct cox_left_out *device = &listing->left_out[i];
        printf("  %u.%u  %s (%s): %s\n", device->platform_index, device->device_index, device->name,
               device->platform, device->reason);
    }
}

static void print_ends(const struct listing *listing)
{
    printf("\nHow soon the end of a frame of 64 KiB is noticed, by the device's clock\n"
           "  NO                 MEDIAN   99TH PERCENTILE     CLOCK ERROR\n");
    for (uint32_t i = 0; i < listing->device_count; i++) {
        const struct measured_ends *measured = &listing->measured[i].ends;
        char number[NUMBER_BYTES];
        listing_number(&listing->devices[i], number);

        if (measured->status)
            printf("  %-10s  not measured: %s\n", number, cox_status_text(measured->status));
        else if (!measured->told)
            printf("  %-10s  its clock does not report ends: the end is when the host notices it\n",
                   number);
        else
            printf("  %-10s  %10.1f us  %13.1f us  %11.1f us\n", number, measured->p50_us,
                   measured->p99_us, measured->clock_error_us);
    }
}

static void print_memory(const struct listing *listing)
{
    printf("\nHow much longer a frame of 64 MiB takes than one of 64 KiB\n"
           "  NO              LONGER BY\n");
    for (uint32_t i = 0; i < listing->device_count; i++) {
        const struct measured_memory *measured = &listing->measured[i].memory;
        char number[NUMBER_BYTES];
        listing_number(&listing->devices[i], number);

        if (measured->status)
            printf("  %-10s  not measured: %s\n", number, cox_status_text(measured->status));
        else if (measured->wrapped)
            printf("  %-10s  %10.1f us  wrapped: no copies\n", number, measured->extra_us);
        else
            printf("  %-10s  %10.1f us  copied, at %.1f GB/s\n", number, measured->extra_us,
                   measured->gb_per_s);
    }
}

static void print_lines(const char *title, const char *lines, size_t stride, uint32_t count)
{
    if (count > 0)
        printf("\n%s\n", title);

    for (uint32_t i = 0; i < count; i++)
        printf("  %s\n", lines + i * stride);
}

void listing_print_text(const struct listing *listing)
{
    print_host(&listing->host);
    print_platforms(listing);
    print_devices(listing);
    print_left_out(listing);
    if (listing->measured) {
        print_ends(listing);
        print_memory(listing);
    }

    print_lines("Missing", listing->missing.text[0], sizeof listing->missing.text[0],
                listing->missing.count);
    print_lines("Notes", listing->notes[0], sizeof listing->notes[0], listing->note_count);
}
