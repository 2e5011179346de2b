/* Fuzz target: fault plans. Parsing must not crash. A plan is refused with one line, or it is consistent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "faults/plan.h"

enum { CALLS_TRIED = 40 };

static bool takes_code(enum fault_kind kind)
{
    return kind == FAULT_KIND_ERROR || kind == FAULT_KIND_STATUS || kind == FAULT_KIND_STATUS_AFTER ||
           kind == FAULT_KIND_STATUS_QUERY;
}

/* Checks that the line strikes as often as it may, and never too early. */
static void check_strikes(const struct fault_line *line)
{
    uint64_t chosen = 0;
    for (uint64_t matched = 1; matched <= CALLS_TRIED; matched++) {
        bool strikes = fault_line_strikes(line, matched, chosen);
        CHECK(!strikes || (matched >= line->from && chosen < line->count));
        CHECK(strikes || line->chance < 1 || matched < line->from || chosen >= line->count ||
              (matched - line->from) % line->every != 0);
        chosen += strikes;
    }
}

static void check_line(const struct fault_line *line)
{
    int named = 0;
    CHECK(line->kind >= 0 && line->kind < FAULT_KINDS && line->number >= 1);
    CHECK(line->text[0] && memchr(line->text, 0, sizeof line->text) && !strchr(line->text, '\n'));
    CHECK(memchr(line->device_name, 0, sizeof line->device_name));
    CHECK((line->device_kind == FAULT_DEVICE_NAME) == (line->device_name[0] != 0));
    CHECK(line->call >= -1 && line->call < FAULT_CALL_COUNT && (line->call >= 0) == (line->classes == 0));
    CHECK(line->from >= 1 && line->every >= 1 && line->count >= 1 && line->chance > 0 && line->chance <= 1);
    CHECK(!takes_code(line->kind) || line->code < 0);
    CHECK(line->kind != FAULT_KIND_CORRUPT || line->bits >= 1);
    CHECK(line->kind != FAULT_KIND_SLOW || (line->factor >= 1 && line->factor <= 1e6));
    CHECK((line->kind == FAULT_KIND_CALLBACK) == (line->callback != FAULT_CALLBACK_RIGHT));
    CHECK((line->kind == FAULT_KIND_PROFILE) == (line->profile != FAULT_PROFILE_RIGHT));
    for (int call = 0; call < FAULT_CALL_COUNT; call++) {
        bool names = fault_line_names(line, call, true);
        CHECK(names || !fault_line_names(line, call, false));
        named += names;
        /* Faults of commands affect no other calls. */
        CHECK(!names || line->kind == FAULT_KIND_ERROR || line->kind == FAULT_KIND_HANG ||
              line->kind == FAULT_KIND_VANISH || fault_call_classes(call) & FAULT_COMMAND);
    }
    CHECK(named >= 1 && (line->call < 0 || named == 1));
    check_strikes(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[200];
    /* The memory ends with the text, so that a sanitizer detects reads beyond it. */
    char *text = malloc(size > 0 ? size : 1);
    CHECK(text);
    if (size > 0)
        memcpy(text, data, size);
    struct fault_plan *plan = fault_plan_parse(text, size, "input", why, sizeof why);
    free(text);
    if (!plan) {
        fuzz_complaint(why, sizeof why);
        return 0;
    }
    CHECK(!why[0] && plan->line_count <= FAULT_LINES_MAX);
    for (uint32_t i = 0; i < plan->line_count; i++) {
        check_line(&plan->lines[i]);
        CHECK(i == 0 || plan->lines[i].number >= plan->lines[i - 1].number);
    }
    fault_plan_free(&plan);
    return 0;
}
