/* PolyBench's 2-D convolution, over a series of images.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

enum { IN, OUT };

static const struct cox_argument arguments[] = {{.name = "in", .halo_rows = 1}, {0}};

static void convolve(const float *in, float *out, size_t n)
{
    for (size_t y = 1; y + 1 < n; y++)
        for (size_t x = 1; x + 1 < n; x++) {
            const float *up = in + (y - 1) * n + x, *here = up + n, *down = here + n;

            out[y * n + x] = 0.2f * up[-1] - 0.3f * up[0] + 0.4f * up[1] + 0.5f * here[-1] +
                             0.6f * here[0] + 0.7f * here[1] - 0.8f * down[-1] - 0.9f * down[0] +
                             0.1f * down[1];
        }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    for (uint32_t parity = 0; parity < 2; parity++)
        convolve(memories[problem->use[parity][IN]], memories[problem->use[parity][OUT]],
                 problem->params.columns);
}

bool suite_make_conv2d(enum suite_size size, struct suite_problem *problem)
{
    static const uint32_t sizes[] = {96, 2048, 8192}, frames[] = {3, 12, 8};
    const uint32_t n = sizes[size];
    const size_t pitch = n * sizeof(float);

    suite_set_shape(problem, n, n);
    problem->passes[0] = (struct cox_pass){
        .source = bench_text("conv2d.cl"), .absolute = true, .arguments = arguments};
    problem->buffers[IN] = (struct cox_buffer_layout){.name = "in", .pitch_bytes = pitch};
    problem->buffers[OUT] = (struct cox_buffer_layout){.name = "out", .pitch_bytes = pitch};

    problem->frames = frames[size];
    problem->tolerance = 1e-5;
    problem->reference = reference;

    /* Two pairs of images, so that a frame need not wait for the frame before. */
    for (uint8_t m = 0; m < 4; m++) {
        float *data = suite_memory_add(problem, pitch * n, true, m % 2 == OUT);
        if (!data)
            return false;
        if (m % 2 == IN)
            suite_fill_floats(data, (size_t)n * n, 0, 1, m + 1u);
        problem->use[m / 2][m % 2] = m;
    }

    return true;
}
