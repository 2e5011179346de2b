/* How long a process was not scheduled: threads that share one processor.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "base/clock.h"
#include "host/starvation.h"
#include "engine/failure/watchdog.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

TestSuite(host_starvation, .timeout = 300);

enum { BUSY = 3 };
#define MOST_NS 60000000000u /* for which a test waits */

static atomic_bool stop;

static void *be_busy(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        continue;
    return NULL;
}

/* Start threads that all compete for the same processor. */
static void start_busy(pthread_t *threads)
{
    cpu_set_t may, one;
    int cpu = 0;
    CPU_ZERO(&one);
    cr_assert_eq(sched_getaffinity(0, sizeof may, &may), 0);
    while (!CPU_ISSET(cpu, &may))
        cpu++;
    CPU_SET(cpu, &one);
    for (int i = 0; i < BUSY; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
        cr_assert_eq(pthread_setaffinity_np(threads[i], sizeof one, &one), 0);
    }
}

static void end_busy(pthread_t *threads)
{
    atomic_store(&stop, true);
    for (int i = 0; i < BUSY; i++)
        pthread_join(threads[i], NULL);
}

static void need_schedstat(void)
{
    if (access("/proc/self/schedstat", R_OK) != 0)
        cr_skip_test("skipped, because this system does not say how long threads wait");
}

Test(host_starvation, is_what_the_thread_has_waited_that_waited_most)
{
    pthread_t threads[BUSY];
    struct cox__starvation *starvation = cox__starvation_create();
    uint64_t waited, passed;
    need_schedstat();
    cr_assert_not_null(starvation);
    start_busy(threads);
    cr_assert_eq(cox__starvation_look(starvation), 0, "the first look has nothing to compare with");
    const uint64_t begin = cox__clock_ns();
    /* Each of three threads on one processor waits for two thirds of the time. Other processes may compete too. */
    do {
        const uint64_t since = cox__clock_ns();
        usleep(300000);
        waited = cox__starvation_look(starvation);
        passed = cox__clock_ns() - since;
    } while (waited <= passed / 3 && cox__clock_ns() - begin < MOST_NS);
    end_busy(threads);
    cr_assert_gt(waited, passed / 3, "of %" PRIu64 " ns, in every look during a minute", passed);
    cox__starvation_destroy(starvation);
}

static void ignore_revocation(void *ctx, void *session, void *instance, int role, struct cox__stuck_thread *stuck)
{
    (void)ctx, (void)session, (void)instance, (void)role, (void)stuck;
}

static void ignore_after(void *ctx)
{
    (void)ctx;
}

Test(host_starvation, is_counted_while_it_is_asked_for)
{
    pthread_t threads[BUSY];
    const struct cox__watchdog_handler handler = {.revoked = ignore_revocation, .after = ignore_after};
    struct cox__watchdog *watchdog;
    need_schedstat();
    cr_assert_eq(cox__watchdog_create(&watchdog, &handler), COX_OK);
    cr_assert_eq(cox__watchdog_starved_ns(watchdog), 0);
    cr_assert_eq(cox__watchdog_start(watchdog), COX_OK);
    start_busy(threads);
    const uint64_t begin = cox__clock_ns();
    cox__watchdog_count_starvation(watchdog, begin + MOST_NS);
    uint64_t starved = 0;
    while (starved < 100000000 && cox__clock_ns() - begin < MOST_NS) {
        usleep(20000);
        starved = cox__watchdog_starved_ns(watchdog);
    }
    cr_assert_geq(starved, 100000000u, "less than 0.1 s in a minute");
    cr_assert_leq(starved, cox__clock_ns() - begin, "more than the time that has passed");
    end_busy(threads);
    cr_assert(cox__watchdog_stop(watchdog));
    cox__watchdog_destroy(&watchdog);
}
