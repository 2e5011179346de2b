/* Experiments on memory and work-groups: transposes, scans, sizes, access orders and local memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>
#include <string.h>

/* --- Transposes --- */

static size_t expect_transposed(const struct guides_device *device,
                                const struct guides_variant *variant, float *expected)
{
    (void)variant;
    for (size_t y = 0; y < device->height; y++)
        for (size_t x = 0; x < device->width; x++)
            expected[x * device->height + y] = device->input[y * device->width + x];
    return device->pixels;
}

#define TRANSPOSE(key_, name_, kernel_, region_, options_)                            \
    {                                                                                 \
        .key = key_, .name = name_, .options = options_, .accesses = 2, .launches = { \
            {.kernel = kernel_,                                                       \
             .args = "iowh",                                                          \
             .region = region_,                                                       \
             .local = {GUIDES_TILE, GUIDES_TILE}}                                     \
        }                                                                             \
    }

static const struct guides_variant transposes[] = {
    TRANSPOSE("reading_rows", "naive, reading along rows", "transpose_reading_rows", GUIDES_PLANE,
              "-D PAD=0"),
    TRANSPOSE("writing_rows", "naive, writing along rows", "transpose_writing_rows", GUIDES_TURNED,
              "-D PAD=0"),
    TRANSPOSE("local", "through local memory", "transpose_local", GUIDES_PLANE, "-D PAD=0"),
    TRANSPOSE("padded", "through local memory, padded", "transpose_local", GUIDES_PLANE,
              "-D PAD=1"),
};

/* --- Scans --- */

static size_t expect_scanned(const struct guides_device *device,
                             const struct guides_variant *variant, float *expected)
{
    const size_t length = device->group / variant->number;
    uint32_t sum = 0, value;

    for (size_t i = 0; i < device->pixels; i++) {
        memcpy(&value, &device->input[i], sizeof value);
        if (i % length == 0)
            sum = 0;
        sum += value;
        memcpy(&expected[i], &sum, sizeof sum);
    }

    return device->pixels;
}

#define SCAN(key_, name_, over, kernel_, local_, each_, need_)                               \
    {                                                                                        \
        .key = key_ #over, .name = name_, .group = "/" #over, .number = over, .accesses = 2, \
        .need = need_, .launches = {                                                         \
            {.kernel = kernel_, .args = "io", .local = {local_}, .each = each_}              \
        }                                                                                    \
    }
/* Segments with the length of the large work-group over a number. Until the device is known, the
 * number is the name of their group. */
#define SCANS(over)                                                                                \
    SCAN("alone_", "one item per segment", over, "scan_alone", 0, GUIDES_SEGMENT, GUIDES_NOTHING), \
        SCAN("hand_", "by hand", over, "scan_by_hand", GUIDES_SEGMENT, 1, GUIDES_NOTHING),         \
        SCAN("steps_", "sub-steps of 4 values", over, "scan_steps", GUIDES_QUARTER, 4,             \
             GUIDES_NOTHING),                                                                      \
        SCAN("subgroups_", "sub-groups", over, "scan_subgroups", GUIDES_SEGMENT, 1,                \
             GUIDES_SUBGROUPS),                                                                    \
        SCAN("built_in_", "work_group_scan_inclusive_add", over, "scan_work_group",                \
             GUIDES_SEGMENT, 1, GUIDES_COLLECTIVE)

static const struct guides_variant scans[] = {SCANS(4), SCANS(2), SCANS(1)};

/* --- Sizes of work-groups --- */

static size_t expect_12(const struct guides_device *device, const struct guides_variant *variant,
                        float *expected)
{
    (void)variant;
    return guides_expect_adds(device, expected, 12);
}

#define SIZE(key_, name_, quarters, more_)                                           \
    {                                                                                \
        .key = key_, .name = name_, .number = quarters, .more = more_,               \
        .options = "-D VEC=1 -D CHAINS=1 -D N=12", .accesses = 2, .launches = {      \
            {.kernel = "ceiling_guarded", .args = "ioa", .local = {GUIDES_MULTIPLE}} \
        }                                                                            \
    }

static const struct guides_variant sizes[] = {
    SIZE("one", "a single item", 0, 0),
    SIZE("half", "half the preferred multiple", 2, 0),
    SIZE("preferred", "the preferred multiple", 4, 0),
    SIZE("beside", "the preferred multiple plus one", 4, 1),
    SIZE("double", "twice it", 8, 0),
    SIZE("four", "four times it", 16, 0),
    SIZE("eight", "eight times it", 32, 0),
    {.key = "driver",
     .name = "left to the driver",
     .options = "-D VEC=1 -D CHAINS=1 -D N=12",
     .accesses = 2,
     .launches = {{.kernel = "ceiling_guarded", .args = "ioa"}}},
};

/* --- Global memory --- */

enum { STRIDED, SHIFTED, BACKWARDS, SCATTERED };

static size_t place(const struct guides_device *device, uint32_t order, uint32_t log_stride,
                    size_t i)
{
    const size_t last = device->pixels - 1;

    switch (order) {
    case SHIFTED:
        return i + 1;
    case BACKWARDS:
        return last - i;
    case SCATTERED:
        return i * 2654435761u & last;
    default:
        return (i << log_stride & last) | i >> (device->log_pixels - log_stride);
    }
}

/* A variant's number: log2 of the stride, plus 8 times the order, plus 64 if the order is that of
 * the writes. */
static size_t expect_gathered(const struct guides_device *device,
                              const struct guides_variant *variant, float *expected)
{
    const uint32_t log_stride = variant->number & 7, order = variant->number >> 3 & 7;

    for (size_t i = 0; i < device->pixels; i++) {
        const size_t at = place(device, order, log_stride, i);
        if (variant->number & 64)
            expected[at] = device->input[i];
        else
            expected[i] = device->input[at];
    }

    return device->pixels;
}

/* An access transfers a whole cache line, of which the work-item uses one value. */
static double predict_gathered(const struct guides_device *device,
                               const struct guides_variant *variant)
{
    const double line = (double)device->line, stride = exp2(variant->number & 7);
    const uint32_t order = variant->number >> 3 & 7;
    double transferred = 1; /* values per value used */

    if (order == STRIDED)
        transferred = fmin(stride, line);
    else if (order == SCATTERED)
        transferred = line;

    return device->copy_rate * 2 / (1 + transferred);
}

#define ORDER(key_, name_, number_, options_, kernel_)                                    \
    {                                                                                     \
        .key = key_, .name = name_, .number = number_, .options = options_, .launches = { \
            {.kernel = kernel_, .args = "ioc", .local = {GUIDES_GROUP}}                   \
        }                                                                                 \
    }
#define STRIDE_READ(log, name_) \
    ORDER("read_" #log, name_, log, "-D GATHER=0 -D LOG_STRIDE=" #log, "gather")

static const struct guides_variant orders[] = {
    STRIDE_READ(0, "reads side by side"),
    ORDER("shifted", "reads side by side, offset by one value", 8 * SHIFTED,
          "-D GATHER=1 -D LOG_STRIDE=0", "gather"),
    ORDER("backwards", "reads backwards", 8 * BACKWARDS, "-D GATHER=2 -D LOG_STRIDE=0", "gather"),
    STRIDE_READ(1, "reads 2 apart"),
    STRIDE_READ(2, "reads 4 apart"),
    STRIDE_READ(3, "reads 8 apart"),
    STRIDE_READ(4, "reads 16 apart"),
    STRIDE_READ(5, "reads 32 apart"),
    ORDER("scattered", "reads scattered", 8 * SCATTERED, "-D GATHER=3 -D LOG_STRIDE=0", "gather"),
    ORDER("write_5", "writes 32 apart", 64 + 5, "-D GATHER=0 -D LOG_STRIDE=5", "scatter"),
    ORDER("write_scattered", "writes scattered", 64 + 8 * SCATTERED, "-D GATHER=3 -D LOG_STRIDE=0",
          "scatter"),
};

/* --- Local memory --- */

enum { KEPT = 1024, READS = 128, SHARE = 16, BANKS = 32, EACH = 8 };

static size_t expect_strides(const struct guides_device *device,
                             const struct guides_variant *variant, float *expected)
{
    const size_t count = device->pixels / SHARE;

    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t n = 0; n < READS; n++)
            sum += (double)device->input[(i % device->group * variant->number + n) % KEPT];
        expected[i] = (float)sum;
    }

    return count;
}

#define STRIDE_LOCAL(stride, name_)                                                            \
    {                                                                                          \
        .key = "stride_" #stride, .name = name_, .number = stride,                             \
        .options = "-D STRIDE=" #stride, .launches = {                                         \
            {.kernel = "local_strides", .args = "io", .local = {GUIDES_GROUP}, .share = SHARE} \
        }                                                                                      \
    }

static const struct guides_variant strides[] = {
    STRIDE_LOCAL(1, "side by side"), STRIDE_LOCAL(2, "2 apart"),   STRIDE_LOCAL(4, "4 apart"),
    STRIDE_LOCAL(8, "8 apart"),      STRIDE_LOCAL(16, "16 apart"), STRIDE_LOCAL(32, "32 apart"),
    STRIDE_LOCAL(33, "33 apart"),
};

static void keep_strides(struct guides_device *device, const struct guides_cell *cells)
{
    if (cells[0].status == GUIDES_MEASURED)
        device->local_rate = cells[0].value.median;
}

/* Neighbours that share a bank take turns. A CPU's local memory has no banks. */
static double predict_strides(const struct guides_device *device,
                              const struct guides_variant *variant)
{
    const uint32_t shared = variant->number & (~variant->number + 1);
    if (device->cpu)
        return device->local_rate;

    return device->local_rate / fmin(shared, BANKS);
}

static size_t expect_reversed(const struct guides_device *device,
                              const struct guides_variant *variant, float *expected)
{
    const size_t chunk = EACH * (size_t)device->group;
    (void)variant;
    for (size_t i = 0; i < device->pixels; i++)
        expected[i] = device->input[i / chunk * chunk + chunk - 1 - i % chunk];
    return device->pixels;
}

#define FILL(key_, name_, kernel_)                                                   \
    {                                                                                \
        .key = key_, .name = name_, .accesses = 2, .launches = {                     \
            {.kernel = kernel_, .args = "io", .local = {GUIDES_GROUP}, .each = EACH} \
        }                                                                            \
    }

static const struct guides_variant fills[] = {
    FILL("one", "one item fills it", "fill_by_one"),
    FILL("chunks", "each item fills 8 values in a row", "fill_by_chunks"),
    FILL("side_by_side", "neighbours fill side by side", "fill_side_by_side"),
    FILL("async", "async_work_group_copy", "fill_by_copy"),
    FILL("nothing", "no local memory", "fill_nothing"),
};

const struct guides_experiment guides_memory[] = {
    {.key = "transpose",
     .title = "Transposes",
     .guide = "Reading along rows means writing along columns. With a tile in local memory, "
              "both run along rows. One value of padding per row of the tile avoids bank "
              "conflicts in its columns. Predicted: the copy's rate.",
     .source = "transpose.cl",
     .expect = expect_transposed,
     GUIDES_VARIANTS(transposes)},
    {.key = "scan",
     .title = "Scans in a work-group",
     .guide = "Prefix sums of segments. By hand: each step doubles the distance of the value "
              "that it adds, with a barrier (Hillis and Steele). Sub-steps: each item first "
              "sums 4 values. Or the functions of OpenCL 2.0. Predicted: the copy's rate.",
     .source = "scan.cl",
     .unit = GUIDES_MVALUES,
     .chart_ratio = true,
     .expect = expect_scanned,
     GUIDES_VARIANTS(scans)},
    {.key = "sizes",
     .title = "Sizes of work-groups",
     .guide = "Take a multiple of the size that the kernel prefers (warp, wavefront, "
              "vector). 12 multiply-adds per pixel. Predicted: the copy's rate.",
     .source = "ceilings.cl",
     .tolerance = 1e-4,
     .expect = expect_12,
     GUIDES_VARIANTS(sizes)},
    {.key = "global_memory",
     .title = "Orders of access in global memory",
     .guide = "Neighbouring work-items should read neighbouring values, because each access "
              "loads a whole cache line. Predicted: the copy's rate divided by the factor of "
              "bytes loaded.",
     .source = "access.cl",
     .unit = GUIDES_MVALUES,
     .expect = expect_gathered,
     .predict = predict_gathered,
     GUIDES_VARIANTS(orders)},
    {.key = "local_memory",
     .title = "Bank conflicts in local memory",
     .guide = "Local memory of a GPU has 32 banks of 4 bytes. Work-items that read different "
              "values of one bank take turns. 128 reads per item, with a stride between "
              "neighbours. Predicted: the rate side by side / the number of turns; a CPU "
              "needs no turns.",
     .source = "access.cl",
     .unit = GUIDES_MREADS,
     .work = (double)READS / SHARE,
     .tolerance = 1e-4,
     .expect = expect_strides,
     .predict = predict_strides,
     .keep = keep_strides,
     GUIDES_VARIANTS(strides)},
    {.key = "local_fill",
     .title = "Filling local memory",
     .guide = "All work-items should fill it together, neighbours side by side. Each "
              "work-group reverses its values. Predicted: the copy's rate.",
     .source = "access.cl",
     .unit = GUIDES_MVALUES,
     .expect = expect_reversed,
     GUIDES_VARIANTS(fills)},
    {0},
};
