/* Rows that need their neighbours: each pixel is mixed with the mean of three rows. A session runs
 * many frames, and splits each one better than the one before.
 *   cc blur.c $(pkg-config --cflags --libs coxswain) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>

enum { ROWS = 1080, COLUMNS = 1920, FRAMES = 20, LINES = 10 };

/* A band is a part of the frame. `in` points to the band's first halo row, `out` to its first row.
 * The frame's first row has no row above it, and the last row has none below. */
static const char blur[] =
    "kernel void blur(global const float *in, int in_first_row, global float *out, int columns,\n"
    "                 int rows, int first_row, int frame_rows, float strength)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows)\n"
    "        return;\n"
    "\n"
    "    int row = first_row + y;\n"
    "    float above = in[(max(row - 1, 0) - in_first_row) * columns + x];\n"
    "    float here = in[(row - in_first_row) * columns + x];\n"
    "    float below = in[(min(row + 1, frame_rows - 1) - in_first_row) * columns + x];\n"
    "    out[y * columns + x] = mix(here, (above + here + below) / 3, strength);\n"
    "}\n";

struct settings {
    float strength;
};

static const struct cox_session_params params = {
    .columns = COLUMNS,
    .rows = ROWS,
    .passes = COX_LIST(struct cox_pass, {.source = blur,
                                         .arguments = COX_LIST(struct cox_argument,
                                                               {.name = "in", .halo_rows = 1})}),
    .fields = COX_LIST(struct cox_field, COX_FIELD(struct settings, strength)),
    .constants_bytes = sizeof(struct settings)};

/* The picture has a bright line every LINES rows. */
static void draw(float *pixels)
{
    for (int row = 0; row < ROWS; row++)
        for (int x = 0; x < COLUMNS; x++)
            pixels[row * COLUMNS + x] = row % LINES == LINES / 2 ? 3 : 0;
}

/* With strength 0.5 a line keeps 2 of its 3, and its neighbours get 0.5 each. */
static int count_wrong(const float *pixels)
{
    static const float blurred[LINES] = {
        [LINES / 2 - 1] = 0.5f, [LINES / 2] = 2, [LINES / 2 + 1] = 0.5f};
    int wrong = 0;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += !(pixels[i] >= blurred[i / COLUMNS % LINES] - 1e-5f &&
                   pixels[i] <= blurred[i / COLUMNS % LINES] + 1e-5f);
    return wrong;
}

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_buffer *in = NULL, *out = NULL;
    int wrong = 0;

    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_session_create(runtime, &params, &session);
    if (!status)
        status = cox_buffer_create(runtime, sizeof(float) * ROWS * COLUMNS, &in);
    if (!status)
        status = cox_buffer_create(runtime, sizeof(float) * ROWS * COLUMNS, &out);
    if (!status)
        draw(cox_buffer_data(in));

    for (int frame = 0; frame < FRAMES && !status; frame++) {
        const struct settings settings = {.strength = 0.5f};
        status = cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(in, out),
                                                              .constants = &settings});
        if (!status)
            wrong += count_wrong(cox_buffer_data(out));
    }

    if (status)
        fprintf(stderr, "blur: %s\n", cox_status_text(status));
    else
        printf("%d frames on %u devices, %d values are wrong\n", FRAMES,
               cox_runtime_device_count(runtime), wrong);

    cox_buffer_destroy(&in);
    cox_buffer_destroy(&out);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status || wrong;
}
