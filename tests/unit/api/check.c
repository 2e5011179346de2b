/* Check mode finds mistakes of kernels, and says nothing about their twins without the mistake.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check_mistakes.h"
#include "support/captured_log.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static cox_runtime *runtime;
static cox_session *session;

enum { MEMORY = 1 << 20, BUFFERS_GIVEN = 3 };
static void *memory[BUFFERS_GIVEN];

static void setup(void)
{
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu:2x1",
                                                                                    .log = on_log,
                                                                                    .log_level = COX_LOG_ERROR},
                                                 &runtime);
    if (status)
        cr_skip_test("skipped, because there is no CPU device with two cores: %s", cox_status_text(status));
    for (int i = 0; i < BUFFERS_GIVEN; i++)
        cr_assert_not_null(memory[i] = malloc(MEMORY));
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cr_assert_null(runtime, "something was not released: %s", logged);
    for (int i = 0; i < BUFFERS_GIVEN; i++)
        free(memory[i]);
}

TestSuite(check, .init = setup, .fini = teardown, .timeout = 1200);

static void fill_memory(enum content content)
{
    uint32_t state = 12345;
    for (int i = 0; i < BUFFERS_GIVEN; i++)
        for (uint32_t e = 0; e < MEMORY / 4; e++) {
            state = state * 1664525u + 1013904223u;
            if (content == CONTENT_FLOATS)
                ((float *)memory[i])[e] = (float)(state >> 8) / 16777216;
            else
                ((uint32_t *)memory[i])[e] = state ^ state >> 15;
        }
}

/* How many buffers a frame of the case has. */
static int buffers_of(const struct mistake *mistake)
{
    int count = 2;
    if (mistake->buffers)
        for (count = 0; mistake->buffers[count].name;)
            count++;
    else if (mistake->passes && mistake->passes[0].arguments && mistake->passes[0].arguments[0].in_place)
        count = 1;
    return count - mistake->scratch;
}

/* Run one frame with one of the case's sources. */
static cox_status run_case(const struct mistake *mistake, const char *source)
{
    struct cox_pass passes[4] = {{0}};
    for (int p = 0; mistake->passes && (p == 0 || mistake->passes[p].kernel); p++)
        passes[p] = mistake->passes[p];
    passes[0].source = source;

    const struct cox_session_params params = {.columns = COLUMNS,
                                              .rows = mistake->rows ? mistake->rows : ROWS,
                                              .passes = passes,
                                              .buffers = mistake->buffers,
                                              .warmup = COX_WARMUP_NONE,
                                              .no_profile = true,
                                              .check = true};
    const void *data[BUFFERS_GIVEN + 1] = {NULL};
    for (int i = 0; i < buffers_of(mistake); i++)
        data[i] = memory[i];

    logged[0] = '\0';
    fill_memory(mistake->content);
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s: %s", mistake->name, logged);
    const cox_status status = cox_session_run(session, &(const struct cox_frame){.data = data});
    cox_session_destroy(&session);
    return status;
}

/* How many rows the row that a line names lies beyond those that it allows; negative = before them. */
static int beyond(const char *line)
{
    int row, first, last;
    const char *named = strstr(line, "s row "), *allowed = strstr(line, "only ");
    if (!named || !allowed || sscanf(named, "s row %d", &row) != 1 ||
        sscanf(allowed, "only %*s rows %d to %d", &first, &last) != 2)
        return 0;
    if (row < first)
        return row - first;
    return row > last ? row - last : 0;
}

/* Whether a line of the log says what is expected. */
static bool says(const char *finding, const char *buffer, int rows_beyond)
{
    static char text[sizeof logged];
    char named[80];
    strcpy(text, logged);
    snprintf(named, sizeof named, "buffer %s", buffer ? buffer : "");
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, finding) && (!buffer || strstr(line, named)) && (!rows_beyond || beyond(line) == rows_beyond))
            return true;
    return false;
}

Test(check, finds_each_mistake)
{
    const size_t count = sizeof mistakes / sizeof *mistakes;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct mistake *mistake = &mistakes[i];
        const cox_status status = run_case(mistake, mistake->wrong);
        const bool good = status == COX_E_MISMATCH && says(mistake->finding, mistake->buffer, mistake->beyond);
        found += good;
        cr_expect(good, "%s: %s: expected \"%s\", log:\n%s", mistake->name, cox_status_name(status), mistake->finding,
                  logged);
    }
    cr_assert_geq(count, 40);
    cr_assert_eq(found, count, "%zu of %zu found", found, count);
}

Test(check, says_nothing_about_their_twins)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const cox_status status = run_case(&mistakes[i], mistakes[i].right);
        cr_expect_eq(status, COX_OK, "%s: %s", mistakes[i].name, cox_status_name(status));
        cr_expect_str_empty(logged, "%s: %s", mistakes[i].name, logged);
    }
}

/* ---- functions of the host ---- */

static const char scale[] =
    "kernel void scale(global const uint *in, global uint *out, int columns, int rows, uint factor) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n" GUARD
    "    out[y * columns + x] = in[y * columns + x] * factor;\n}\n";

/* Run a frame of two passes with a merged buffer. */
static cox_status run_host(cox_merge_fn *merge, cox_pass_done_fn *done)
{
    const struct cox_session_params params = {
        .columns = COLUMNS,
        .rows = ROWS,
        .passes = COX_LIST(struct cox_pass, {.source = COUNT_BINS, .done = done}, {.source = scale}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "in"},
                            {.name = "bins", .bytes = 4 * BINS, .merge = merge}, {.name = "out"}),
        .fields = COX_LIST(struct cox_field, COX_FIELD(struct gain, factor)),
        .constants_bytes = sizeof(struct gain),
        .warmup = COX_WARMUP_NONE,
        .no_profile = true,
        .check = true};
    logged[0] = '\0';
    fill_memory(CONTENT_WORDS);
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
    const cox_status status =
        cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(memory[0], memory[1], memory[2])});
    cox_session_destroy(&session);
    return status;
}

Test(check, finds_mistakes_of_host_functions)
{
    for (size_t i = 0; i < sizeof host_mistakes / sizeof *host_mistakes; i++) {
        const struct host_mistake *mistake = &host_mistakes[i];
        cr_expect_eq(run_host(mistake->merge, mistake->done), COX_E_MISMATCH, "%s", mistake->name);
        cr_expect(says(mistake->finding, NULL, 0), "%s: %s", mistake->name, logged);
    }
}

Test(check, says_nothing_about_right_host_functions)
{
    cr_expect_eq(run_host(add_words, make_factor), COX_OK);
    cr_expect_str_empty(logged, "%s", logged);
}

/* ---- frames ---- */

/* Create buffers of a frame and a session of one kernel. */
static void open_frames(const char *source, cox_buffer *buffers[2])
{
    fill_memory(CONTENT_WORDS);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(cox_buffer_create(runtime, 4 * COLUMNS * ROWS, &buffers[i]), COX_OK);
        memcpy(cox_buffer_data(buffers[i]), memory[i], 4 * COLUMNS * ROWS);
    }
    const struct cox_session_params params = {
        .columns = COLUMNS, .rows = ROWS, .passes = COX_LIST(struct cox_pass, {.source = source}), .check = true};
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
}

static void close_frames(cox_buffer *buffers[2])
{
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
}

Test(check, a_frame_with_a_mistake_does_not_run)
{
    cox_buffer *buffers[2];
    open_frames(POINT("    if (y < rows - 1) out[y * columns + x] = in[y * columns + x];\n"), buffers);
    const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[0], buffers[1])};
    cr_expect_eq(cox_session_run(session, &frame), COX_E_MISMATCH);
    cr_expect_eq(cox_session_submit(session, &frame, NULL, NULL), COX_E_MISMATCH);
    cr_expect_arr_eq(cox_buffer_data(buffers[1]), memory[1], 4 * COLUMNS * ROWS);

    struct cox_session_info info;
    cox_session_info(session, &info);
    cr_expect_eq(info.frames_done, 0);
    close_frames(buffers);
}

/* Submits a second frame. */
static void submit_again(void *user, uint64_t index, cox_status status)
{
    cox_buffer **buffers = user;
    cr_expect_eq(status, COX_OK);
    if (index == 0)
        cr_expect_eq(cox_session_submit(session,
                                        &(const struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])},
                                        submit_again, user),
                     COX_OK);
}

Test(check, frames_without_mistakes_run_from_callbacks_too)
{
    cox_buffer *buffers[2];
    open_frames(POINT(COPY), buffers);
    cr_expect_eq(cox_session_submit(session, &(const struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])},
                                    submit_again, buffers),
                 COX_OK);
    cr_expect_eq(cox_session_wait(session), COX_OK);
    cr_expect_str_empty(logged, "%s", logged);

    struct cox_session_info info;
    cox_session_info(session, &info);
    cr_expect_eq(info.frames_done, 2);
    const uint32_t *in = cox_buffer_data(buffers[0]), *out = cox_buffer_data(buffers[1]);
    for (int e = 0; e < COLUMNS * ROWS; e++)
        cr_assert_eq(out[e], in[e] ^ 7);
    close_frames(buffers);
}
