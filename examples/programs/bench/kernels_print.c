/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels_print.h"
#include "json_members.h"
#include "lines.h"

#include <math.h>
#include <stdio.h>

/* --- figures --- */

static double fps(double ns)
{
    if (ns <= 0)
        return 0;

    return 1e9 / ns;
}

static double gbs(const struct kernels_entrant *entrant)
{
    return (double)entrant->bytes * fps(entrant->frame_ns) * 1e-9;
}

/* 10^9 operations per second. */
static double rate(const struct kernels *kernels, const struct kernels_entrant *entrant,
                   double operations)
{
    return operations * kernels->frames.width * kernels->frames.height * fps(entrant->frame_ns) *
           1e-9;
}

static bool uses_fma(const struct kernels *kernels)
{
    return cox_runtime_arithmetic(kernels->runtime) == COX_ARITHMETIC_FMA;
}

/* 10^9 operations per second of a ceiling. An fma is one, a multiplication and an addition are
 * two. */
static double ceiling_rate(const struct kernels *kernels, uint32_t ceiling)
{
    const double operations = (uses_fma(kernels) ? 1.0 : 2.0) * kernels_multiply_adds[ceiling];
    return rate(kernels, &kernels->entrants[ceiling], operations);
}

static double operations_of(const struct kernels *kernels, uint32_t kernel)
{
    return kernels_list[kernel].operations[uses_fma(kernels)];
}

/* A kernel's share of the copy's bytes and of the highest rate of operations; the higher one
 * binds. */
struct shares {
    double memory, arithmetic;
};

static struct shares find_shares(const struct kernels *kernels, uint32_t kernel)
{
    const struct kernels_entrant *entrant = &kernels->entrants[KERNELS_CEILINGS + kernel];
    const double operations = rate(kernels, entrant, operations_of(kernels, kernel));

    return (struct shares){.memory = gbs(entrant) / gbs(&kernels->entrants[0]),
                           .arithmetic = operations / ceiling_rate(kernels, KERNELS_CEILINGS - 1)};
}

/* Below this share of both ceilings something else binds, such as atomic counting or latency. */
static const double bound_from = 0.4;

static const char *binding_name(const struct shares *shares)
{
    if (fmax(shares->memory, shares->arithmetic) < bound_from)
        return "neither";
    if (shares->memory > shares->arithmetic)
        return "memory";

    return "arithmetic";
}

/* --- output --- */

static void print_vectors(const struct bench_vectors *vectors)
{
    printf("  pictures of %u x %u with vectors and with scalars, fastest frame of each\n",
           vectors->width, vectors->height);
    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS; f++) {
        const struct bench_vectors_format *of = &vectors->formats[f];
        printf("  vectors over scalars, %-16s %7.2f ms against %7.2f: %.2f times as fast, "
               "at least %.2f: %s\n",
               of->name, of->vector_ms, of->scalar_ms, of->ratio, vectors->bar,
               bench_verdict(of->ratio >= vectors->bar));
    }
}

static void print_device(const struct kernels *kernels)
{
    const struct cox_device_info *device = &kernels->device;

    printf("\n%s (%s %s, %s), %u compute units, %s memory, %s\n", device->name, device->platform,
           device->driver, cox_device_type_name(device->type), device->compute_units,
           cox_memory_mode_name(device->mode),
           cox_arithmetic_name(cox_runtime_arithmetic(kernels->runtime)));
    if (kernels->entrants[0].unprofiled)
        printf("  the device reports no kernel times: these are from submission to completion\n");
    printf("  %-28s %10s %19s %9s %15s\n", "ceiling", "frames/s", "[quartiles]", "GB/s",
           "10^9 ops/s");

    for (uint32_t c = 0; c < KERNELS_CEILINGS; c++) {
        const struct kernels_entrant *entrant = &kernels->entrants[c];
        char name[48] = "copy";

        if (c > 0)
            snprintf(name, sizeof name, "copy + %u multiply-adds", kernels_multiply_adds[c]);
        printf("  %-28s %10.1f [%8.1f,%8.1f] %9.2f %15.1f\n", name, fps(entrant->frame_ns),
               fps(entrant->high_ns), fps(entrant->low_ns), gbs(entrant), ceiling_rate(kernels, c));
    }

    printf("  %-28s %10s %19s %9s %8s %6s %8s   %s\n", "kernel", "frames/s", "[quartiles]", "GB/s",
           "of copy", "ops/px", "of ops/s", "binds");
    for (uint32_t k = 0; k < KERNELS_COUNT; k++) {
        const struct kernels_entrant *entrant = &kernels->entrants[KERNELS_CEILINGS + k];
        const struct shares shares = find_shares(kernels, k);
        printf("  %-28s %10.1f [%8.1f,%8.1f] %9.2f %8.2f "
               "",
               kernels_list[k].name, fps(entrant->frame_ns), fps(entrant->high_ns),
               fps(entrant->low_ns), gbs(entrant), shares.memory);
        if (operations_of(kernels, k) > 0)
            printf("%6.0f %8.2f   %s\n", operations_of(kernels, k), shares.arithmetic,
                   binding_name(&shares));
        else
            printf("%6s %8s   -\n", "-", "-");
    }

    if (kernels_is_cpu(kernels))
        print_vectors(&kernels->vectors);
}

static void json_times(struct json *json, const struct kernels_entrant *entrant)
{
    json_member_number(json, "fps", fps(entrant->frame_ns));
    member_range(json, "fps_quartiles", fps(entrant->high_ns), fps(entrant->low_ns));
    json_member_number(json, "gbs", gbs(entrant));
    json_member_bool(json, "profiled", !entrant->unprofiled);
}

static void json_vectors(struct json *json, const struct bench_vectors *vectors)
{
    json_member_object(json, "vectors", false);
    json_member_unsigned(json, "width", vectors->width);
    json_member_unsigned(json, "height", vectors->height);
    json_member_array(json, "formats", false);

    for (uint32_t f = 0; f < BENCH_VECTORS_FORMATS; f++) {
        json_open_object(json, true);
        json_member_string(json, "format", vectors->formats[f].name);
        json_member_number(json, "vector_ms", vectors->formats[f].vector_ms);
        json_member_number(json, "scalar_ms", vectors->formats[f].scalar_ms);
        json_member_number(json, "ratio", vectors->formats[f].ratio);
        json_close_object(json);
    }

    json_close_array(json);
    json_member_number(json, "bar", vectors->bar);
    json_member_bool(json, "met", vectors->met);
    json_close_object(json);
}

static void json_device(struct json *json, const struct kernels *kernels)
{
    json_open_object(json, false);
    json_member_string(json, "device", kernels->device.name);
    json_member_string(json, "platform", kernels->device.platform);
    json_member_string(json, "driver", kernels->device.driver);
    json_member_string(json, "arithmetic",
                       cox_arithmetic_name(cox_runtime_arithmetic(kernels->runtime)));
    json_member_string(json, "mode", cox_memory_mode_name(kernels->device.mode));
    json_member_array(json, "ceilings", false);

    for (uint32_t c = 0; c < KERNELS_CEILINGS; c++) {
        json_open_object(json, true);
        json_member_unsigned(json, "multiply_adds", kernels_multiply_adds[c]);
        json_times(json, &kernels->entrants[c]);
        json_member_number(json, "operations_gs", ceiling_rate(kernels, c));
        json_close_object(json);
    }

    json_close_array(json);
    json_member_array(json, "kernels", false);

    for (uint32_t k = 0; k < KERNELS_COUNT; k++) {
        const struct shares shares = find_shares(kernels, k);
        json_open_object(json, true);
        json_member_string(json, "kernel", kernels_list[k].key);
        json_times(json, &kernels->entrants[KERNELS_CEILINGS + k]);
        json_member_number(json, "of_copy", shares.memory);
        if (operations_of(kernels, k) > 0) {
            json_member_number(json, "operations", operations_of(kernels, k));
            json_member_number(json, "of_operations", shares.arithmetic);
            json_member_string(json, "binds", binding_name(&shares));
        }
        json_close_object(json);
    }

    json_close_array(json);
    if (kernels_is_cpu(kernels))
        json_vectors(json, &kernels->vectors);
    json_close_object(json);
}

static void print_head(const struct kernels *kernels, const struct machine *machine)
{
    bench_print_machine(machine);
    printf("frames of %u x %u; video: 4:2:0, 10 bits to 8, hable; %u frames of each kernel, "
           "in turns;\n"
           "medians of kernel times, without copies to and from the device\n",
           kernels->frames.width, kernels->frames.height, kernels->rounds);
}

static void json_head(struct json *json, const struct kernels *kernels,
                      const struct machine *machine)
{
    json_report_begin(json, "kernels", machine);
    json_member_unsigned(json, "width", kernels->frames.width);
    json_member_unsigned(json, "height", kernels->frames.height);
    json_member_unsigned(json, "frames", kernels->rounds);
    json_member_array(json, "devices", false);
}

static void print_tail(const struct kernels *kernels)
{
    putchar('\n');
    bench_print_quiet(&kernels->quiet, "rounds");
}

static void json_tail(struct json *json, const struct kernels *kernels)
{
    json_close_array(json);
    member_quiet(json, "rounds_again", &kernels->quiet);
    json_report_end(json);
}

/* --- either --- */

void kernels_print_head(struct json *json, const struct kernels *kernels)
{
    struct machine machine;

    machine_read(&machine);
    if (json)
        json_head(json, kernels, &machine);
    else
        print_head(kernels, &machine);
}

void kernels_print_device(struct json *json, const struct kernels *kernels)
{
    if (json)
        json_device(json, kernels);
    else
        print_device(kernels);
}

void kernels_print_tail(struct json *json, const struct kernels *kernels)
{
    if (json)
        json_tail(json, kernels);
    else
        print_tail(kernels);
}
