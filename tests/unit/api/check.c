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
    const cox_status status = cox_runtime_create(
        &(const struct cox_runtime_params){.devices = "cpu:2x1", .log = on_log, .log_level = COX_LOG_ERROR}, &runtime);
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

/* Whether a line of the log has both texts. */
static bool says(const char *finding, const char *buffer)
{
    char text[sizeof logged];
    strcpy(text, logged);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strstr(line, finding) && (!buffer || strstr(line, buffer)))
            return true;
    return false;
}

Test(check, finds_each_mistake)
{
    const size_t count = sizeof mistakes / sizeof *mistakes;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct mistake *mistake = &mistakes[i];
        char buffer[80] = "";
        if (mistake->buffer)
            snprintf(buffer, sizeof buffer, "buffer %s", mistake->buffer);
        const cox_status status = run_case(mistake, mistake->wrong);
        const bool good = status == COX_E_MISMATCH && says(mistake->finding, buffer);
        found += good;
        if (!good || getenv("COX_TEST_SHOW"))
            printf("%s: %s: expected \"%s\", log:\n%s\n", mistake->name, cox_status_name(status), mistake->finding,
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
        cr_expect_str_empty(logged, "%s", logged);
    }
}
