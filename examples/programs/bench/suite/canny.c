/* CHAI's CEDD: Canny edge detection of a video, by four fused passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>

enum { TILE = 16 }; /* as in the passes' options */

enum { IN_EVEN, IN_ODD, EDGES_EVEN, EDGES_ODD };
enum { ACROSS, RISING, UPRIGHT, FALLING }; /* as in canny.cl */

struct constants {
    int32_t width, height, low, high;
};

struct picture {
    const uint8_t *pixels;
    int32_t width, height;
};

static int32_t clamp(int32_t value, int32_t end)
{
    if (value < 0)
        return 0;
    if (value >= end)
        return end - 1;
    return value;
}

static int32_t pixel(const struct picture *in, int32_t x, int32_t y)
{
    return in->pixels[(size_t)clamp(y, in->height) * in->width + clamp(x, in->width)];
}

/* The sum of three pixels in a line, with the middle one twice. */
static int32_t line(const struct picture *in, int32_t x, int32_t y, int32_t dx, int32_t dy)
{
    return pixel(in, x - dx, y - dy) + 2 * pixel(in, x, y) + pixel(in, x + dx, y + dy);
}

static uint8_t gauss(const struct picture *in, int32_t x, int32_t y)
{
    return (uint8_t)((line(in, x, y - 1, 1, 0) + 2 * line(in, x, y, 1, 0) +
                      line(in, x, y + 1, 1, 0) + 8) /
                     16);
}

static uint8_t sobel(const struct picture *smooth, int32_t x, int32_t y, uint8_t *direction)
{
    const int32_t gx = line(smooth, x + 1, y, 0, 1) - line(smooth, x - 1, y, 0, 1);
    const int32_t gy = line(smooth, x, y + 1, 1, 0) - line(smooth, x, y - 1, 1, 0);
    const int32_t ax = abs(gx), ay = abs(gy);

    if (ay * 32768 < ax * 13573)
        *direction = ACROSS;
    else if (ay * 32768 > ax * 79109)
        *direction = UPRIGHT;
    else if ((gx > 0) == (gy > 0))
        *direction = FALLING;
    else
        *direction = RISING;

    if (ax + ay > 255)
        return 255;
    return (uint8_t)(ax + ay);
}

static uint8_t thin(const struct picture *gradient, uint8_t direction, int32_t x, int32_t y)
{
    static const int32_t steps[][2] = {{1, 0}, {1, -1}, {0, 1}, {1, 1}};
    const int32_t dx = steps[direction][0], dy = steps[direction][1];
    const int32_t own = pixel(gradient, x, y);

    if (own > pixel(gradient, x - dx, y - dy) && own >= pixel(gradient, x + dx, y + dy))
        return (uint8_t)own;
    return 0;
}

static uint8_t hysteresis(const struct picture *in, const struct constants *constants, int32_t x,
                          int32_t y)
{
    const int32_t own = pixel(in, x, y);
    bool edge = own >= constants->high;

    if (own >= constants->low)
        for (int32_t dy = -1; dy <= 1; dy++)
            for (int32_t dx = -1; dx <= 1; dx++)
                edge = edge || pixel(in, x + dx, y + dy) >= constants->high;

    if (edge)
        return 255;
    return 0;
}

/* `room` has three planes: smooth and later thin, gradient, direction. */
static void detect(const struct constants *constants, const uint8_t *in, uint8_t *edges,
                   uint8_t *room)
{
    const int32_t width = constants->width, height = constants->height;
    const size_t plane = (size_t)width * height;
    uint8_t *gradient = room + plane, *direction = gradient + plane;
    const struct picture in_picture = {in, width, height};
    const struct picture room_picture = {room, width, height};
    const struct picture gradient_picture = {gradient, width, height};

    size_t i = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++)
            room[i++] = gauss(&in_picture, x, y);

    i = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++, i++)
            gradient[i] = sobel(&room_picture, x, y, &direction[i]);

    i = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++, i++)
            room[i] = thin(&gradient_picture, direction[i], x, y);

    i = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++)
            edges[i++] = hysteresis(&room_picture, constants, x, y);
}

/* The video has two pictures, so each needs its edges once. */
static void reference(const struct suite_problem *problem, void *const *memories)
{
    detect(problem->constants, memories[IN_EVEN], memories[EDGES_EVEN], problem->own);
    detect(problem->constants, memories[IN_ODD], memories[EDGES_ODD], problem->own);
}

/* Discs of different brightness on a slope, with noise. */
static void draw(uint8_t *pixels, int32_t width, int32_t height, int32_t shift, uint32_t seed)
{
    const int32_t cell = height / 4, radius = cell / 3;

    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            const int32_t dx = (x + shift) % cell - cell / 2, dy = y % cell - cell / 2;
            int32_t value = 64 * x / width + (int32_t)(suite_random(&seed) % 16);
            if (dx * dx + dy * dy < radius * radius)
                value += 40 + 40 * ((x + shift) / cell + y / cell) % 120;

            pixels[(size_t)y * width + x] = (uint8_t)value;
        }
}

static const struct cox_argument halos[][2] = {{{.name = "in", .halo_rows = 1}},
                                               {{.name = "smooth", .halo_rows = 1}},
                                               {{.name = "gradient", .halo_rows = 1}},
                                               {{.name = "thin", .halo_rows = 1}}};

static void list_passes(struct cox_pass *passes)
{
    static const char *const kernels[] = {"canny_gauss", "canny_sobel", "canny_thin",
                                          "canny_hysteresis"};

    for (int p = 0; p < 4; p++)
        passes[p] = (struct cox_pass){.source = bench_text("canny.cl"),
                                      .kernel = kernels[p],
                                      .options = "-D TILE=16",
                                      .absolute = true,
                                      .fused = p > 0,
                                      .arguments = halos[p]};

    for (int p = 0; p < 2; p++)
        passes[p].local_columns = passes[p].local_rows = TILE;
}

/* Buffers of bytes. All but the first and the last are scratch. */
static void list_buffers(struct cox_buffer_layout *buffers)
{
    static const char *const names[] = {"in", "smooth", "gradient", "direction", "thin", "edges"};
    enum { COUNT = sizeof names / sizeof *names };

    for (int b = 0; b < COUNT; b++) {
        buffers[b].name = names[b];
        buffers[b].scratch = b > 0 && b < COUNT - 1;
    }
}

bool suite_make_canny(enum suite_size size, struct suite_problem *problem)
{
    static const struct {
        struct constants constants;
        uint32_t frames;
    } shapes[] = {{{200, 150, 40, 90}, 4}, {{1920, 1080, 40, 90}, 6}, {{7680, 4320, 40, 90}, 16}};
    static const struct cox_field fields[] = {COX_FIELD(struct constants, width),
                                              COX_FIELD(struct constants, height),
                                              COX_FIELD(struct constants, low),
                                              COX_FIELD(struct constants, high),
                                              {0}};

    const int32_t width = shapes[size].constants.width, height = shapes[size].constants.height;
    const size_t bytes = (size_t)width * height;
    uint8_t *in_even = suite_memory_add(problem, bytes, false, false);
    uint8_t *in_odd = suite_memory_add(problem, bytes, false, false);
    problem->own = malloc(3 * bytes);
    if (!in_even || !in_odd || !problem->own || !suite_memory_add(problem, bytes, false, true) ||
        !suite_memory_add(problem, bytes, false, true))
        return false;

    draw(in_even, width, height, 0, 1);
    draw(in_odd, width, height, 5, 2);

    list_passes(problem->passes);
    list_buffers(problem->buffers);
    suite_set_shape(problem, (uint32_t)width, (uint32_t)height);
    suite_set_fields(problem, fields, &shapes[size].constants, sizeof(struct constants));

    problem->frames = shapes[size].frames;
    problem->reference = reference;
    for (int odd = 0; odd < 2; odd++) {
        problem->use[odd][0] = (uint8_t)(IN_EVEN + odd);
        problem->use[odd][1] = (uint8_t)(EDGES_EVEN + odd);
    }

    return true;
}
