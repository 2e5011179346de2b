/* Shared by tests of recorded sessions: a scenario that is recorded in the test's own database, and read back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAB_RECORDED_H
#define COX_TESTS_LAB_RECORDED_H

#include "common/policies/registry.h"
#include "lab/sim/record_simulation.h"
#include "lab/replay/world.h"
#include "unit/programs/lab_asked.h"
#include "unit/programs/lab_support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOME = 4 };

static struct lab_replay_data *data; /* NULL: not read since it was recorded */

static inline void make_path(void)
{
    snprintf(path, sizeof path, "/tmp/cox-recorded-XXXXXX");
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
}

static inline void remove_path(void)
{
    lab_replay_free(&data);
    remove(path);
}

/* Record a scenario with these keys and policies. */
static inline void record(const char *keys, const char *const *names, uint32_t count, uint32_t in_flight)
{
    const char *json = lab_object(keys);
    struct lab_scenario *scenario = lab_scenario_parse(json, strlen(json), "test.json", why, sizeof why);
    cr_assert_not_null(scenario, "%s", why);
    const struct cox_policy *policies[16];
    for (uint32_t i = 0; i < count; i++) {
        policies[i] = program_policy_find(names[i]);
        cr_assert_not_null(policies[i]);
    }
    struct lab_store *store = open_store();
    const struct lab_sim_options options = {.in_flight = in_flight};
    cr_assert(lab_record_scenario(store, scenario, policies, count, &options, 7, why, sizeof why), "%s", why);
    close_store(store);
    lab_scenario_free(&scenario);
    lab_replay_free(&data);
}

static inline void load(void)
{
    sqlite3 *db = open_db();
    lab_replay_free(&data);
    cr_assert(lab_replay_read(db, 0, &data, why, sizeof why), "%s", why);
    sqlite3_close(db);
}

static inline void near(double value, double expected, double part, const char *what)
{
    cr_assert(fabs(value / expected - 1) <= part, "%s: %g, expected %g", what, value, expected);
}

#endif
