/* Two processes that alternate.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/sides.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { TURNS = 200 };

/* Memory that both share. */
struct seen {
    int count;
    int order[2 * TURNS]; /* the side that had each turn */
    pid_t second;
};

Test(lab_sides, each_has_the_turn_alone)
{
    struct lab_sides *sides = lab_sides_begin(sizeof(struct seen));
    cr_assert_not_null(sides);
    struct seen *seen = lab_sides_shared(sides);
    bool second = lab_sides_is_second(sides), good = true;
    for (int i = 0; i < TURNS && good; i++) {
        good = lab_sides_take(sides) && lab_sides_take(sides);
        seen->order[seen->count++] = second;
        lab_sides_pass(sides);
    }
    if (second)
        _exit(lab_sides_end(&sides, good ? 7 : 1));
    cr_assert(good);
    cr_assert(lab_sides_take(sides), "the second side has no turns left");
    cr_assert_eq(seen->count, 2 * TURNS);
    for (int i = 0; i < 2 * TURNS; i++)
        cr_assert_eq(seen->order[i], i % 2, "%d", i);
    cr_assert_eq(lab_sides_end(&sides, 0), 7, "the other side's exit status");
    cr_assert_null(sides);
}

Test(lab_sides, the_end_of_the_other_is_noticed)
{
    struct lab_sides *sides = lab_sides_begin(sizeof(struct seen));
    cr_assert_not_null(sides);
    if (lab_sides_is_second(sides)) {
        if (!lab_sides_take(sides))
            _exit(2);
        _exit(3); /* without passing the turn on */
    }
    lab_sides_pass(sides);
    cr_assert_not(lab_sides_take(sides));
    cr_assert_eq(lab_sides_end(&sides, 0), 3);

    sides = lab_sides_begin(sizeof(struct seen));
    if (lab_sides_is_second(sides))
        _exit(lab_sides_take(sides) ? 2 : 4);
    cr_assert_eq(lab_sides_end(&sides, 0), 4, "the first side ends without passing the turn on");
}

Test(lab_sides, a_second_side_that_is_killed_is_a_failure)
{
    struct lab_sides *sides = lab_sides_begin(sizeof(struct seen));
    struct seen *seen = lab_sides_shared(sides);
    if (lab_sides_is_second(sides)) {
        if (lab_sides_take(sides))
            seen->second = getpid();
        lab_sides_pass(sides);
        for (;;)
            pause();
    }
    lab_sides_pass(sides);
    cr_assert(lab_sides_take(sides));
    cr_assert_gt(seen->second, 0);
    cr_assert_eq(kill(seen->second, SIGKILL), 0);
    lab_sides_pass(sides);
    cr_assert_not(lab_sides_take(sides));
    cr_assert_eq(lab_sides_end(&sides, 0), EXIT_FAILURE);
}

Test(lab_sides, one_side_alone_always_has_the_turn)
{
    struct lab_sides *none = NULL;
    cr_assert(lab_sides_take(none));
    lab_sides_pass(none);
    cr_assert(lab_sides_take(none));
    cr_assert_not(lab_sides_is_second(none));
    cr_assert_eq(lab_sides_end(&none, 5), 5);
}
