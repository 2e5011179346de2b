/* The scheduler thread's loop when the process has few file descriptors left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/loop.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

static uint64_t sleep_on(void *ctx)
{
    (void)ctx;
    return UINT64_MAX;
}

static void start_nothing(void *ctx)
{
    (void)ctx;
}

Test(loop, is_refused_without_enough_descriptors)
{
    const struct cox__loop_handler handler = {.start = start_nothing, .step = sleep_on};
    struct rlimit limit;
    rlim_t made_with = 0;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t most = 3; most < 64; most++) {
        struct cox__loop *loop;
        limit.rlim_cur = most;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);

        const cox_status status = cox__loop_create(&loop, &handler);
        cr_assert_eq(status == COX_OK, loop != NULL);
        if (status != COX_OK)
            cr_expect_eq(status, COX_E_SYSTEM);
        else if (!made_with)
            made_with = most;
        cox__loop_destroy(&loop);
    }
    cr_expect(made_with > 3 && made_with < 64, "made with %lu descriptors", (unsigned long)made_with);
}
