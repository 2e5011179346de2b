/* The commands of hand-written OpenCL in cox-bench suite: what devices copy, and what each command waits for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/suite/plan.h"
#include "bench/message.h"
#include "bench/suite/ranges.h"
#include "bench/suite/view.h"

#include <criterion/criterion.h>

TestSuite(suite_plan, .timeout = 300);

enum { ROWS = 64, DEVICES = 2 };

static const double halves[DEVICES] = {0.5, 0.5};
static const struct suite_device_kind processors[DEVICES] = {{.on_host = true}, {.on_host = true}};
static const struct suite_device_kind gpus[DEVICES] = {{.on_host = false}, {.on_host = false}};
static const struct suite_device_kind strangers[DEVICES] = {{.peers = 0}, {.context = 1, .peers = 1}};

static const struct cox_buffer_layout layouts[2] = {{.name = "a", .stays = true}, {.name = "b", .stays = true}};
static const struct cox_pass pass;

/* Two passes, a to b and back, that read one row above and below. */
static void describe(struct suite_problem *problem, struct suite_view *view)
{
    *problem = (struct suite_problem){.memory_count = 2, .frames = 1, .use = {{0, 1}, {0, 1}}};
    problem->memories[0] = problem->memories[1] = (struct suite_memory){.bytes = ROWS, .result = true};

    *view = (struct suite_view){.problem = problem, .step_count = 2, .buffer_count = 2, .store_count = 2};
    for (uint32_t i = 0; i < 2; i++) {
        view->buffers[i] = (struct suite_buffer){
            .layout = &layouts[i], .ordinal = i, .pitch_bytes = 1, .rows = ROWS, .bytes = ROWS};
        view->steps[i] = (struct suite_step){
            .pass = &pass, .rows = ROWS, .row_multiple = 1, .access_count = 2, .group_end = i + 1};
        view->steps[i].accesses[0] = (struct suite_access){.buffer = i, .above = 1, .below = 1, .divisor = 1};
        view->steps[i].accesses[1] = (struct suite_access){.buffer = 1 - i, .writes = true, .divisor = 1};
    }
}

static struct suite_plan *plan_of(const struct suite_device_kind *kinds, const double *shares)
{
    static struct suite_problem problem;
    static struct suite_view view;

    describe(&problem, &view);
    struct suite_plan *plan = suite_plan_create(&view, kinds, shares, DEVICES);
    cr_assert(plan);

    return plan;
}

static uint32_t count_of(const struct suite_plan *plan, enum suite_command_kind kind, uint32_t *rows)
{
    uint32_t count = 0;

    *rows = 0;
    for (uint32_t c = 0; c < plan->count; c++)
        if (plan->commands[c].kind == kind) {
            *rows += plan->commands[c].rows.end - plan->commands[c].rows.first;
            count++;
        }

    return count;
}

/* Whether command `later` waits for `earlier`, directly. */
static bool waits(const struct suite_plan *plan, uint32_t later, uint32_t earlier)
{
    const struct suite_command *command = &plan->commands[later];

    for (uint32_t n = 0; n < command->need_count; n++)
        if (plan->needs[command->first_need + n] == earlier)
            return true;

    return false;
}

Test(suite_plan, processors_copy_nothing_and_wait_for_each_other)
{
    struct suite_plan *plan = plan_of(processors, halves);

    /* Kernels of the first pass, then of the second, on device 0 and 1. */
    cr_assert_eq(plan->count, 4);
    for (uint32_t c = 0; c < plan->count; c++)
        cr_assert_eq(plan->commands[c].kind, SUITE_KERNEL);
    cr_assert(!waits(plan, 1, 0));
    cr_assert(waits(plan, 2, 1) && waits(plan, 3, 0));
    cr_assert(plan->commands[0].awaited && plan->commands[1].awaited);
    suite_plan_destroy(&plan);
}

Test(suite_plan, devices_of_one_context_exchange_only_halo_rows)
{
    uint32_t rows;
    struct suite_plan *plan = plan_of(gpus, halves);

    cr_assert_eq(count_of(plan, SUITE_WRITE, &rows), 2);
    cr_assert_eq(rows, ROWS + 2); /* the input, and a halo row for each */
    cr_assert_eq(count_of(plan, SUITE_COPY, &rows), 2);
    cr_assert_eq(rows, 2);
    cr_assert_eq(count_of(plan, SUITE_READ, &rows), 4); /* both buffers are results */
    cr_assert_eq(rows, 2 * ROWS);
    suite_plan_destroy(&plan);
}

Test(suite_plan, devices_of_different_contexts_exchange_rows_through_the_host)
{
    uint32_t rows;
    struct suite_plan *plan = plan_of(strangers, halves);

    cr_assert_eq(count_of(plan, SUITE_COPY, &rows), 0);
    cr_assert_eq(count_of(plan, SUITE_WRITE, &rows), 4);
    cr_assert_eq(rows, ROWS + 4);
    suite_plan_destroy(&plan);
}

Test(suite_plan, a_device_without_a_share_gets_no_command)
{
    static const double one[DEVICES] = {0, 1};
    struct suite_plan *plan = plan_of(gpus, one);

    for (uint32_t c = 0; c < plan->count; c++)
        cr_assert_eq(plan->commands[c].device, 1);
    suite_plan_destroy(&plan);
}

Test(suite_plan, fused_steps_compute_the_halo_rows_of_later_ones)
{
    struct suite_problem problem;
    struct suite_view view;
    struct suite_range rows[2];

    describe(&problem, &view);
    view.steps[0].group_end = view.steps[1].group_end = 2;
    view.buffers[1].place = SUITE_PRIVATE;
    suite_view_group(&view, 0, (struct suite_range){10, 20}, rows);
    cr_assert(rows[0].first == 9 && rows[0].end == 21);
    cr_assert(rows[1].first == 10 && rows[1].end == 20);

    /* At the frame's edge there are fewer. */
    suite_view_group(&view, 0, (struct suite_range){0, ROWS}, rows);
    cr_assert(rows[0].first == 0 && rows[0].end == ROWS);
}

Test(suite_plan, halo_rows_reach_into_the_border)
{
    struct suite_problem problem;
    struct suite_view view;

    describe(&problem, &view);
    view.buffers[0].border_above = 2;
    view.buffers[0].rows = ROWS + 3;
    const struct suite_range rows = suite_view_rows(&view, &view.steps[0].accesses[0], (struct suite_range){0, ROWS});
    cr_assert(rows.first == 1 && rows.end == ROWS + 3);
}

Test(suite_plan, sets_of_rows_merge_neighbours_and_split)
{
    struct suite_ranges set = {0};

    suite_ranges_add(&set, (struct suite_range){10, 20});
    suite_ranges_add(&set, (struct suite_range){30, 40});
    suite_ranges_add(&set, (struct suite_range){20, 30});
    cr_assert(set.count == 1 && set.at[0].first == 10 && set.at[0].end == 40);

    suite_ranges_remove(&set, (struct suite_range){15, 18});
    cr_assert(set.count == 2 && set.at[0].end == 15 && set.at[1].first == 18);

    const struct suite_ranges missing = suite_ranges_missing(&set, (struct suite_range){0, 50});
    cr_assert(missing.count == 3 && missing.at[1].first == 15 && missing.at[1].end == 18);
    const struct suite_ranges common = suite_ranges_common(&set, (struct suite_range){12, 16});
    cr_assert(common.count == 1 && common.at[0].first == 12 && common.at[0].end == 15);
}
