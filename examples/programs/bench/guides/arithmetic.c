/* Experiments on arithmetic: a device's ceilings, vectors, loops, functions and pointers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"
#include "words.h"

#include <math.h>

/* --- Ceilings --- */

static size_t expect_ceiling(const struct guides_device *device,
                             const struct guides_variant *variant, float *expected)
{
    return guides_expect_adds(device, expected, variant->number);
}

#define CEILING(adds, key_, name_)                                                                 \
    {                                                                                              \
        .key = key_, .name = name_, .number = adds, .options = "-D VEC=4 -D CHAINS=2 -D N=" #adds, \
        .options_cpu = "-D VEC=16 -D CHAINS=4 -D N=" #adds,                                        \
        .launches =                                                                                \
        { {.kernel = "ceiling", .args = "io", .local = {GUIDES_GROUP}, .each = 8, .each_cpu = 64}  \
        }                                                                                          \
    }

static const struct guides_variant ceilings[] = {
    CEILING(0, "copy", "copy"),
    CEILING(3, "add_3", "3 multiply-adds"),
    CEILING(6, "add_6", "6 multiply-adds"),
    CEILING(12, "add_12", "12 multiply-adds"),
    CEILING(18, "add_18", "18 multiply-adds"),
    CEILING(24, "add_24", "24 multiply-adds"),
    CEILING(192, "add_192", "192 multiply-adds"),
};

static void keep_ceilings(struct guides_device *device, const struct guides_cell *cells)
{
    if (cells[0].status == GUIDES_MEASURED)
        device->copy_rate = cells[0].value.median;
    for (uint32_t v = 1; v < sizeof ceilings / sizeof *ceilings; v++)
        if (cells[v].status == GUIDES_MEASURED) /* fmax ignores the NaN of an unknown rate */
            device->add_rate = fmax(device->add_rate, cells[v].value.median * ceilings[v].number);
}

/* The lower of both ceilings. */
static double predict_ceiling(const struct guides_device *device,
                              const struct guides_variant *variant)
{
    if (variant->number == 0)
        return device->copy_rate;

    return fmin(device->copy_rate, device->add_rate / variant->number);
}

static void say_ceilings(const struct guides_device *device,
                         const struct guides_experiment *experiment,
                         const struct guides_cell *cells, char *text, size_t bytes)
{
    uint32_t free_adds = 0;
    char copy[32];

    if (!(device->copy_rate > 0 && device->add_rate > 0))
        return;

    /* As fast as the copy, apart from noise. */
    for (uint32_t v = 1;
         v < experiment->count && cells[v].ratio.high >= 0.97 && cells[v].ratio.median >= 0.9; v++)
        free_adds = ceilings[v].number;

    guides_say(text, bytes,
               "A copy reaches %s Mpixel/s (%.1f GB/s); the peak is %.1f × 10⁹ multiply-adds "
               "per second. ",
               guides_number(device->copy_rate, copy, sizeof copy), device->copy_rate * 8e-3,
               device->add_rate * 1e-3);
    if (free_adds)
        guides_say(text, bytes, "Up to %u multiply-adds per pixel cost nothing beyond the noise. ",
                   free_adds);
    else
        guides_say(text, bytes, "Even %u multiply-adds per pixel cost time. ", ceilings[1].number);

    guides_say(text, bytes, "Both ceilings meet at %.1f. ", device->add_rate / device->copy_rate);
}

/* --- Vectors --- */

static size_t expect_24(const struct guides_device *device, const struct guides_variant *variant,
                        float *expected)
{
    (void)variant;
    return guides_expect_adds(device, expected, 24);
}

#define VECTOR(key_, name_, options_, kernel_, each_)                                 \
    {                                                                                 \
        .key = key_, .name = name_, .options = options_ " -D N=24", .launches = {     \
            {.kernel = kernel_, .args = "io", .local = {GUIDES_GROUP}, .each = each_} \
        }                                                                             \
    }

static const struct guides_variant vectors[] = {
    VECTOR("scalar", "float, vectorised by the compiler", "-D VEC=1 -D CHAINS=1", "ceiling", 1),
    VECTOR("hint_8", "float, hint at float8", "-D VEC=1 -D CHAINS=1 -D HINT=float8", "ceiling", 1),
    VECTOR("loop", "float, 16 pixels in a loop", "-D VEC=1 -D CHAINS=1", "ceiling_loop", 16),
    VECTOR("float2", "float2", "-D VEC=2 -D CHAINS=1", "ceiling", 2),
    VECTOR("float4", "float4", "-D VEC=4 -D CHAINS=1", "ceiling", 4),
    VECTOR("float8", "float8", "-D VEC=8 -D CHAINS=1", "ceiling", 8),
    VECTOR("float16", "float16", "-D VEC=16 -D CHAINS=1", "ceiling", 16),
    VECTOR("float16x4", "float16, four at once", "-D VEC=16 -D CHAINS=4", "ceiling", 64),
};

static double predict_24(const struct guides_device *device, const struct guides_variant *variant)
{
    (void)variant;
    return fmin(device->copy_rate, device->add_rate / 24);
}

/* --- Loops --- */

static size_t expect_filter(const struct guides_device *device,
                            const struct guides_variant *variant, float *expected)
{
    (void)variant;
    for (size_t i = 0; i < device->pixels; i++) {
        double sum = 0;
        for (int k = 0; k < GUIDES_FILTER; k++)
            sum += (double)device->taps[k] * (double)device->input[i + (size_t)k];
        expected[i] = (float)sum;
    }

    return device->pixels;
}

#define FILTER(key_, name_, kernel_)                                                      \
    {                                                                                     \
        .key = key_, .name = name_, .number = GUIDES_FILTER, .accesses = 2, .launches = { \
            {.kernel = kernel_, .args = "iofn", .local = {GUIDES_GROUP}}                  \
        }                                                                                 \
    }

static const struct guides_variant loops[] = {
    FILTER("argument", "count as an argument", "filter_argument"),
    FILTER("kept", "count known, #pragma unroll 1", "filter_kept"),
    FILTER("define", "count known (-D)", "filter_define"),
    FILTER("pragma", "count known, #pragma unroll", "filter_pragma"),
    FILTER("hand_4", "by hand, four per iteration, count as an argument", "filter_hand_4"),
    FILTER("hand", "by hand, all 16", "filter_hand"),
};

/* --- Functions --- */

static size_t expect_functions(const struct guides_device *device,
                               const struct guides_variant *variant, float *expected)
{
    (void)variant;
    for (size_t i = 0; i < device->pixels; i++) {
        double v = (double)device->input[i];
        expected[i] = (float)((exp(-v) + log(1 + v)) / (1 + sqrt(v)));
    }

    return device->pixels;
}

#define FUNCTIONS(key_, name_, options_, tolerance_)                                             \
    {                                                                                            \
        .key = key_, .name = name_, .options = options_, .tolerance = tolerance_, .accesses = 2, \
        .launches = {                                                                            \
            {.kernel = "functions", .args = "io", .local = {GUIDES_GROUP}}                       \
        }                                                                                        \
    }

/* The error of native functions depends on the device; half functions may be off by 8192 ulp. */
static const struct guides_variant functions[] = {
    FUNCTIONS("library", "library functions", NULL, 1e-5),
    FUNCTIONS("mad", "library functions, -cl-mad-enable", "-cl-mad-enable", 1e-5),
    FUNCTIONS("relaxed", "library functions, -cl-fast-relaxed-math", "-cl-fast-relaxed-math", 1e-2),
    FUNCTIONS("half", "half_exp, half_log, half_sqrt, half_divide",
              "-D EXP=half_exp -D LOG=half_log -D SQRT=half_sqrt -D OVER=half_divide", 1e-2),
    FUNCTIONS("native", "native_exp, native_log, native_sqrt, native_divide",
              "-D EXP=native_exp -D LOG=native_log -D SQRT=native_sqrt -D OVER=native_divide",
              1e-2),
    FUNCTIONS("native_relaxed", "native_*, -cl-fast-relaxed-math",
              "-D EXP=native_exp -D LOG=native_log -D SQRT=native_sqrt -D OVER=native_divide "
              "-cl-fast-relaxed-math",
              1e-2),
};

/* --- Pointers --- */

static size_t expect_pointers(const struct guides_device *device,
                              const struct guides_variant *variant, float *expected)
{
    const float *taps = device->taps;
    (void)variant;
    for (size_t i = 0; i < device->pixels; i++)
        expected[i] = device->input[i] * taps[0] + taps[1] * taps[2] + taps[3];
    return device->pixels;
}

#define POINTERS(key_, name_, kernel_)                                             \
    {                                                                              \
        .key = key_, .name = name_, .accesses = 2, .launches = {                   \
            {.kernel = kernel_, .args = "iof", .local = {GUIDES_GROUP}, .each = 4} \
        }                                                                          \
    }

static const struct guides_variant pointers[] = {
    POINTERS("plain", "global float *", "pointers_plain"),
    POINTERS("const", "global const float *", "pointers_const"),
    POINTERS("restrict", "global const float *restrict", "pointers_restrict"),
    POINTERS("constant", "restrict, weights in constant memory", "pointers_constant"),
};

const struct guides_experiment guides_arithmetic[] = {
    {.key = "ceilings",
     .title = "Ceilings",
     .guide = "First find out what limits a kernel: memory or arithmetic. This kernel does n "
              "multiply-adds on each pixel it copies (4 bytes in, 4 out). Predicted: the "
              "lower of the copy's rate and the rate that the peak of multiply-adds allows.",
     .source = "ceilings.cl",
     .no_contest = true,
     .tolerance = 1e-4,
     .expect = expect_ceiling,
     .predict = predict_ceiling,
     .keep = keep_ceilings,
     .finding = say_ceilings,
     GUIDES_VARIANTS(ceilings)},
    {.key = "vectors",
     .title = "Vectors: explicit and implicit",
     .guide = "Guides for CPUs and older GPUs recommend float4 to float16. Newer ones "
              "recommend scalars, which the compiler vectorises over work-items. 24 "
              "multiply-adds per pixel. Predicted: the ceiling.",
     .source = "ceilings.cl",
     .tolerance = 1e-4,
     .expect = expect_24,
     .predict = predict_24,
     GUIDES_VARIANTS(vectors)},
    {.key = "unroll",
     .title = "Loops unrolled",
     .guide = "Unroll short loops: by hand, with a pragma, or with a constant count. A filter "
              "of 16 taps. Predicted: the copy's rate, as if only memory mattered.",
     .source = "loops.cl",
     .tolerance = 1e-5,
     .expect = expect_filter,
     GUIDES_VARIANTS(loops)},
    {.key = "functions",
     .title = "Functions: native, half, relaxed",
     .guide = "Use native_* and half_* if their accuracy is sufficient, or "
              "-cl-fast-relaxed-math. (exp(−v) + log(1 + v)) / (1 + sqrt(v)) for each pixel. "
              "Predicted: the copy's rate, as if only memory mattered.",
     .source = "loops.cl",
     .tolerance = 1e-5,
     .expect = expect_functions,
     GUIDES_VARIANTS(functions)},
    {.key = "pointers",
     .title = "Pointers: const, restrict, constant",
     .guide = "Tell the compiler that buffers do not overlap, and put small tables into "
              "constant memory. Otherwise every write may change values that were read. Four "
              "pixels per item, four weights. Predicted: the copy's rate.",
     .source = "loops.cl",
     .tolerance = 1e-5,
     .expect = expect_pointers,
     GUIDES_VARIANTS(pointers)},
    {0},
};
