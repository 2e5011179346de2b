/* Two passes: the first counts the values of a picture, the second gives it all contrast that there
 * is. Between them the program makes a curve of the counts.
 *   cc histogram.c $(pkg-config --cflags --libs coxswain) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>

enum { ROWS = 1080, COLUMNS = 1920, VALUES = 256 };

static const char count[] =
    "kernel void count(global const uchar *in, global uint *histogram, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        atomic_inc(&histogram[in[y * columns + x]]);\n"
    "}\n";

static const char map[] =
    "struct curve { uchar value[256]; };\n"
    "kernel void map(global const uchar *in, global uchar *out, int columns, int rows,\n"
    "                struct curve constants)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = constants.value[in[y * columns + x]];\n"
    "}\n";

struct curve {
    uint8_t value[VALUES];
};

/* Each band counts its own rows. Add the counts of all bands. */
static void add(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)into)[i] += ((const uint32_t *)partial)[i];
}

/* The first pass is done: make the curve. The second pass gets it as its constants. */
static void equalise(void *user, void *const *buffers, void *constants)
{
    (void)user;
    const uint32_t *histogram = buffers[1]; /* as in the list of buffers */
    struct curve *curve = constants;
    uint64_t sum = 0;

    for (int i = 0; i < VALUES; i++) {
        sum += histogram[i];
        curve->value[i] = (uint8_t)(sum * (VALUES - 1) / (ROWS * COLUMNS));
    }
}

static uint8_t in[ROWS * COLUMNS], out[ROWS * COLUMNS];
static uint32_t histogram[VALUES];

static const struct cox_session_params params = {
    .columns = COLUMNS,
    .rows = ROWS,
    .passes = COX_LIST(struct cox_pass, {.source = count, .done = equalise}, {.source = map}),
    .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"},
                        {.name = "histogram", .bytes = sizeof histogram, .merge = add},
                        {.name = "out"}),
    .constants_bytes = sizeof(struct curve)};

static int brightest(const uint8_t *pixels)
{
    int most = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        most = pixels[i] > most ? pixels[i] : most;

    return most;
}

/* The values of the histogram that do not count the picture. */
static int count_wrong(void)
{
    uint32_t counts[VALUES] = {0};
    int wrong = 0;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        counts[in[i]]++;
    for (int i = 0; i < VALUES; i++)
        wrong += counts[i] != histogram[i];
    return wrong;
}

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i] = (uint8_t)(i % COLUMNS * 100 / COLUMNS); /* a dark picture */

    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_session_create(runtime, &params, &session);
    if (!status)
        status = cox_session_run(session,
                                 &(struct cox_frame){.data = COX_ARGS(in, histogram, out)});

    if (status)
        fprintf(stderr, "histogram: %s\n", cox_status_text(status));
    else
        printf("the brightest pixel was %d and is %d, %d values are wrong\n", brightest(in),
               brightest(out), count_wrong());

    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status || count_wrong() || brightest(out) != VALUES - 1;
}
