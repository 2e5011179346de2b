/* Rodinia's srad: diffusion that removes the speckle of an image. A frame is one iteration. The host
 * makes the noise of the whole image from the sums of the rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGE, SUMS, DIFFERENCES, FACTORS, GROUP = 32 };

struct constants {
    int32_t width, height;
    float noise, rate;
};

static const struct cox_field fields[] = {COX_FIELD(struct constants, width),
                                          COX_FIELD(struct constants, noise),
                                          COX_FIELD(struct constants, rate),
                                          {0}};

static const struct cox_argument factors_arguments[] = {{.name = "image", .halo_rows = 1}, {0}};
static const struct cox_argument update_arguments[] = {
    {.name = "factors", .halo_below = 1}, {.name = "image", .in_place = true}, {0}};

static float noise_of(double sum, double squares, double count)
{
    const double mean = sum / count, variance = squares / count - mean * mean;

    return (float)(variance / (mean * mean));
}

/* After srad_sums. */
static void find_noise(void *user, void *const *buffers, void *constants)
{
    struct constants *k = constants;
    const float *sums = buffers[SUMS];
    double sum = 0, squares = 0;
    (void)user;

    for (int32_t y = 0; y < k->height; y++) {
        sum += sums[2 * y];
        squares += sums[2 * y + 1];
    }

    k->noise = noise_of(sum, squares, (double)k->width * k->height);
}

static float factor(const float *image, size_t x, size_t y, size_t n, float noise, float by[4])
{
    const float *at = image + y * n + x;

    by[0] = (y > 0 ? at[-(ptrdiff_t)n] : *at) - *at;
    by[1] = (y < n - 1 ? at[n] : *at) - *at;
    by[2] = (x > 0 ? at[-1] : *at) - *at;
    by[3] = (x < n - 1 ? at[1] : *at) - *at;

    const float gradient = (by[0] * by[0] + by[1] * by[1] + by[2] * by[2] + by[3] * by[3]) /
                           (*at * *at);
    const float laplacian = (by[0] + by[1] + by[2] + by[3]) / *at;
    const float weight = 1 / (1 + 0.25f * laplacian);
    const float speckle = (0.5f * gradient - 0.0625f * laplacian * laplacian) * weight * weight;
    const float factor = 1 / (1 + (speckle - noise) / (noise * (1 + noise)));

    if (factor < 0)
        return 0;

    return factor > 1 ? 1 : factor;
}

static void iterate(const struct constants *k, float *image, float *factors, float (*by)[4])
{
    const size_t n = (size_t)k->width;
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n * n; i++) {
        sum += image[i];
        squares += (double)image[i] * image[i];
    }

    const float noise = noise_of(sum, squares, (double)n * n);
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++)
            factors[y * n + x] = factor(image, x, y, n, noise, by[y * n + x]);

    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++) {
            const size_t at = y * n + x;
            const float below = y < n - 1 ? factors[at + n] : factors[at];
            const float beside = x < n - 1 ? factors[at + 1] : factors[at];

            image[at] += k->rate * (factors[at] * by[at][0] + below * by[at][1] +
                                    factors[at] * by[at][2] + beside * by[at][3]);
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    const size_t count = (size_t)problem->params.columns * problem->params.rows;
    float *factors = malloc(count * sizeof *factors);
    float(*by)[4] = malloc(count * sizeof *by);

    for (uint32_t frame = 0; frame < problem->frames && factors && by; frame++)
        iterate(problem->constants, memories[IMAGE], factors, by);
    free(factors);
    free(by);
}

bool suite_make_srad(enum suite_size size, struct suite_problem *problem)
{
    static const struct constants constants[] = {
        {96, 96, 0, 0.125f}, {768, 768, 0, 0.125f}, {4096, 4096, 0, 0.125f}};
    static const uint32_t frames[] = {3, 20, 100};
    const uint32_t n = (uint32_t)constants[size].width;
    const size_t pitch = n * sizeof(float);

    suite_set_shape(problem, n, n);
    suite_set_fields(problem, fields, &constants[size], sizeof *constants);
    problem->passes[0] = (struct cox_pass){.source = bench_text("srad.cl"),
                                           .kernel = "srad_sums",
                                           .absolute = true,
                                           .columns = GROUP,
                                           .local_columns = GROUP,
                                           .local_rows = 1,
                                           .done = find_noise};
    problem->passes[1] = (struct cox_pass){
        .kernel = "srad_factors", .absolute = true, .arguments = factors_arguments};
    problem->passes[2] = (struct cox_pass){
        .kernel = "srad_update", .absolute = true, .arguments = update_arguments};

    problem->buffers[IMAGE] = (struct cox_buffer_layout){
        .name = "image", .pitch_bytes = pitch, .stays = true};
    problem->buffers[SUMS] = (struct cox_buffer_layout){
        .name = "sums", .pitch_bytes = 2 * sizeof(float), .scratch = true};
    problem->buffers[DIFFERENCES] = (struct cox_buffer_layout){
        .name = "differences", .pitch_bytes = 4 * pitch, .scratch = true};
    problem->buffers[FACTORS] = (struct cox_buffer_layout){
        .name = "factors", .pitch_bytes = pitch, .scratch = true};

    problem->frames = frames[size];
    problem->tolerance = 1e-4;
    problem->reference = reference;
    suite_use_in_order(problem);

    float *image = suite_memory_add(problem, pitch * n, true, true);
    if (!image)
        return false;
    suite_fill_floats(image, (size_t)n * n, 1, 2.7f, 3);

    return true;
}
