/* Experiments on kernels that read neighbouring pixels: blurs, edges, shapes of work-groups,
 * images.
 * SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"
#include "words.h"

#include <string.h>

static size_t clamped(int64_t at, size_t count)
{
    if (at < 0)
        return 0;
    if (at >= (int64_t)count)
        return count - 1;

    return (size_t)at;
}

/* A launch over all pixels in square work-groups. */
#define TILED .local = {GUIDES_TILE, GUIDES_TILE}
#define TILES(kernel_, args_)                                           \
    {                                                                   \
        .kernel = kernel_, .args = args_, .region = GUIDES_PLANE, TILED \
    }

/* --- Blurs --- */

enum { LINE_MAX = 8192, GAUSSIAN = 0, RECURSIVE = 1 };

/* Both work on a line in place. */
static void blur_line(const struct guides_device *device, double *line, size_t count)
{
    double before[LINE_MAX] = {0};

    memcpy(before, line, count * sizeof *before);
    for (size_t i = 0; i < count; i++) {
        line[i] = 0;
        for (int k = 0; k < GUIDES_TAPS; k++)
            line[i] += (double)device->gauss[k] *
                       before[clamped((int64_t)i + k - GUIDES_TAPS / 2, count)];
    }
}

static void recursive_line(const struct guides_device *device, double *line, size_t count)
{
    const double b = (double)device->ratios[0], b1 = (double)device->ratios[1],
                 b2 = (double)device->ratios[2], b3 = (double)device->ratios[3];

    for (int back = 0; back < 2; back++) {
        double v1 = line[back ? count - 1 : 0], v2 = v1, v3 = v1;

        for (size_t i = 0; i < count; i++) {
            double *at = &line[back ? count - 1 - i : i];
            *at = b * *at + b1 * v1 + b2 * v2 + b3 * v3;
            v3 = v2;
            v2 = v1;
            v1 = *at;
        }
    }
}

/* Rows, then columns. */
static size_t expect_blur(const struct guides_device *device, const struct guides_variant *variant,
                          float *expected)
{
    const size_t width = device->width, height = device->height;

    void (*blur)(const struct guides_device *, double *, size_t) = blur_line;
    double line[LINE_MAX] = {0};
    if (variant->number == RECURSIVE)
        blur = recursive_line;

    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++)
            line[x] = (double)device->input[y * width + x];
        blur(device, line, width);
        for (size_t x = 0; x < width; x++)
            expected[y * width + x] = (float)line[x];
    }

    for (size_t x = 0; x < width; x++) {
        for (size_t y = 0; y < height; y++)
            line[y] = (double)expected[y * width + x];
        blur(device, line, height);
        for (size_t y = 0; y < height; y++)
            expected[y * width + x] = (float)line[y];
    }

    return device->pixels;
}

static const struct guides_variant blurs[] = {
    {.key = "2d",
     .name = "2-D, 81 taps",
     .number = GAUSSIAN,
     .accesses = 82,
     .adds = 81,
     .launches = {TILES("blur_2d", "iogwh")}},
    {.key = "separable",
     .name = "separable, 9 and 9 taps",
     .number = GAUSSIAN,
     .accesses = 20,
     .adds = 18,
     .launches = {TILES("blur_rows", "itgwh"), TILES("blur_columns", "togwh")}},
    {.key = "recursive",
     .name = "recursive, one line per item",
     .number = RECURSIVE,
     .accesses = 8,
     .adds = 16,
     .launches = {{.kernel = "recursive_rows", .args = "iturwh", .region = GUIDES_ROWS},
                  {.kernel = "recursive_columns", .args = "utorwh", .region = GUIDES_COLUMNS}}},
};

/* Express the time as a number of accesses at the rate of a copy. */
static void say_blurs(const struct guides_device *device,
                      const struct guides_experiment *experiment, const struct guides_cell *cells,
                      char *text, size_t bytes)
{
    if (!(device->copy_rate > 0 && device->add_rate > 0))
        return;

    for (uint32_t v = 0; v < experiment->count; v++) {
        const struct guides_variant *variant = &experiment->variants[v];
        const double took = 2 * device->copy_rate / cells[v].value.median;
        const double share = cells[v].value.median * variant->adds / device->add_rate;
        if (cells[v].status != GUIDES_MEASURED)
            continue;
        guides_say(text, bytes, "“%s” takes as long as %.1f accesses of a copy; estimated: %.0f",
                   cells[v].name, took, variant->accesses);
        if (took < variant->accesses / 1.5)
            guides_say(text, bytes, ": caches serve the others. ");
        else if (took < variant->accesses * 1.5)
            guides_say(text, bytes, ". ");
        else if (share > 0.4)
            guides_say(text, bytes,
                       ": arithmetic is the limit, at %.2f of the peak of "
                       "multiply-adds. ",
                       share);
        else
            guides_say(text, bytes,
                       ": neither memory nor arithmetic is the limit, at %.2f of the "
                       "peak of multiply-adds. ",
                       share);
    }
}

/* --- Edges --- */

static size_t expect_mean(const struct guides_device *device, const struct guides_variant *variant,
                          float *expected)
{
    static const double weights[3] = {0.25, 0.5, 0.25};
    const size_t width = device->width, height = device->height;

    (void)variant;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            double sum = 0;
            for (int j = 0; j < 3; j++)
                for (int i = 0; i < 3; i++)
                    sum += weights[j] * weights[i] *
                           (double)device->input[clamped((int64_t)y + j - 1, height) * width +
                                                 clamped((int64_t)x + i - 1, width)];
            expected[y * width + x] = (float)sum;
        }

    return device->pixels;
}

static const struct guides_variant edges[] = {
    {.key = "each",
     .name = "test in each item",
     .accesses = 2,
     .launches = {TILES("edges_each", "iowh")}},
    {.key = "padded",
     .name = "padded input",
     .accesses = 2,
     .launches = {TILES("edges_padded", "towh")}},
    {.key = "pad_and",
     .name = "padded input, including the padding",
     .accesses = 4,
     .launches = {{.kernel = "edges_pad", .args = "itwh", .region = GUIDES_PADDED, TILED},
                  TILES("edges_padded", "towh")}},
    {.key = "halo",
     .name = "tile and halo in local memory",
     .accesses = 2,
     .launches = {TILES("edges_halo", "iowh")}},
    {.key = "interior",
     .name = "separate kernels for interior and border",
     .accesses = 2,
     .launches = {{.kernel = "edges_interior", .args = "iowh", .region = GUIDES_INTERIOR, TILED},
                  {.kernel = "edges_border", .args = "iowh", .region = GUIDES_BORDER}}},
};

/* A variant that reads a padded input needs the padding kernel to run first. */
static bool prepare_edges(struct guides_run *run, uint32_t v)
{
    enum { PAD_AND = 2 };
    if (!guides_prepare(run, v))
        return false;
    if (run->result->experiment->variants[v].launches[0].args[0] != 't')
        return true;

    struct guides_run padding = {.device = run->device, .result = run->result};
    if (!guides_prepare(&padding, PAD_AND))
        return false;

    bool good = guides_launch(&padding, PAD_AND, 1, true) > 0;
    guides_release(&padding.prepared[PAD_AND]);

    return good;
}

/* --- Shapes of work-groups --- */

#define SHAPE(across, key_, name_)                                                 \
    {                                                                              \
        .key = key_, .name = name_, .number = across, .accesses = 2, .launches = { \
            {.kernel = "edges_each",                                               \
             .args = "iowh",                                                       \
             .region = GUIDES_PLANE,                                               \
             .local = {GUIDES_ACROSS, GUIDES_SHAPE}}                               \
        }                                                                          \
    }

static const struct guides_variant shapes[] = {
    SHAPE(64, "row", "row"),
    SHAPE(16, "wide", "wide"),
    SHAPE(8, "square", "square"),
    SHAPE(4, "tall", "tall"),
    SHAPE(1, "column", "column"),
    {.key = "driver",
     .name = "left to the driver",
     .accesses = 2,
     .launches = {{.kernel = "edges_each", .args = "iowh", .region = GUIDES_PLANE}}},
};

/* --- Images --- */

static size_t expect_images(const struct guides_device *device,
                            const struct guides_variant *variant, float *expected)
{
    if (variant->number)
        return expect_mean(device, variant, expected);
    memcpy(expected, device->input, device->pixels * sizeof *expected);
    return device->pixels;
}

#define IMAGES(key_, name_, group_, number_, need_, kernel_, args_)                    \
    {                                                                                  \
        .key = key_, .name = name_, .group = group_, .number = number_, .accesses = 2, \
        .need = need_, .launches = {                                                   \
            TILES(kernel_, args_)                                                      \
        }                                                                              \
    }
#define COPY(key_, name_, need_, args_) IMAGES(key_, name_, "copy", 0, need_, key_, args_)
#define MEAN(key_, name_, need_, kernel_, args_) \
    IMAGES(key_, name_, "3 × 3 pixels", 1, need_, kernel_, args_)

static const struct guides_variant images[] = {
    COPY("buffer_copy", "buffer", GUIDES_NOTHING, "iowh"),
    COPY("image_copy", "image", GUIDES_IMAGES, "Iowh"),
    MEAN("buffer_mean", "buffer, edges tested", GUIDES_NOTHING, "edges_each", "iowh"),
    MEAN("image_mean", "image, the sampler clamps", GUIDES_IMAGES, "image_mean", "Iowh"),
    MEAN("image_linear", "image, 4 reads between pixels", GUIDES_IMAGES, "image_mean_linear",
         "Iowh"),
};

const struct guides_experiment guides_neighbours[] = {
    {.key = "blur",
     .title = "A Gaussian blur, estimated and measured",
     .guide = "Before writing the kernel, count its accesses per pixel. A copy has 2, so n "
              "accesses give 2/n of the copy's rate, unless a cache serves them. Radius 4: 81 "
              "reads and one write; twice 9 reads and one write; or 8 accesses of a recursion "
              "along rows and columns in both directions.",
     .source = "blur.cl",
     .tolerance = 1e-4,
     .expect = expect_blur,
     .finding = say_blurs,
     GUIDES_VARIANTS(blurs)},
    {.key = "edges",
     .title = "Edges, four ways",
     .guide = "A test for the edge slows every work-item. Pad the input, load a tile with its "
              "halo into local memory, or use a separate kernel for the border. A mean of 3 × "
              "3 pixels. Predicted: the copy's rate, with every pixel read and written once.",
     .source = "edges.cl",
     .tolerance = 1e-5,
     .expect = expect_mean,
     .prepare = prepare_edges,
     GUIDES_VARIANTS(edges)},
    {.key = "shapes",
     .title = "Shapes of work-groups",
     .guide = "Use rows for accesses side by side, squares for neighbourhoods, and never "
              "columns. The same mean of 3 × 3 pixels. Predicted: the copy's rate.",
     .source = "edges.cl",
     .tolerance = 1e-5,
     .expect = expect_mean,
     GUIDES_VARIANTS(shapes)},
    {.key = "images",
     .title = "Images against buffers",
     .guide = "Images use caches for two-dimensional access, and their samplers handle edges "
              "and interpolation at no cost. Predicted: the copy's rate.",
     .source = "edges.cl",
     .tolerance = 1e-5,
     .expect = expect_images,
     GUIDES_VARIANTS(images)},
    {0},
};
