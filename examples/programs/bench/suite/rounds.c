/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"
#include "bench/device_list.h"
#include "bench/message.h"
#include "common/now.h"
#include "common/quantiles.h"
#include "direct.h"
#include "errors.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 3,      /* runs of a split, whose median counts */
    TRIES_MAX = 60, /* splits that are tried */
    EXCHANGE_FRAMES = 2,
    WARM_FRAMES = 96, /* the library learns in these, or in WARM_NS */
    WARM_RUNS = 2,
    ENTRANTS = 4,
};
#define WARM_NS 2e9

/* The search for the fastest split ends after this time. */
#define SEARCH_NS 6000000000ull

/* The entrants of a case. On one device there are the first two only. */
enum entrant { HAND_ONE, LIBRARY_ONE, HAND_ALL, LIBRARY_ALL };

struct bout {
    const struct suite_conditions *conditions;
    struct suite_figures *figures;
    struct suite_problem problem;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct suite_direct *one_hand, *all_hands;
    struct suite_library *one, *all;
    uint64_t search_end_ns;
    double times[ENTRANTS][SUITE_ROUNDS_MAX];
};

/* --- hand-written OpenCL --- */

/* The median of a few runs with the current split. */
static bool time_hands(struct suite_direct *direct, double *ms)
{
    double times[TRIES];

    for (int t = 0; t < TRIES; t++) {
        if (!suite_direct_run(direct, &times[t]))
            return false;
        times[t] *= 1e-6;
    }

    *ms = quantile_of(times, TRIES, 0.5);

    return true;
}

static bool try_split(struct suite_direct *direct, const double *shares, uint32_t count, double *ms)
{
    double whole[COX_DEVICES_MAX], sum = 0;

    for (uint32_t d = 0; d < count; d++)
        sum += shares[d];
    for (uint32_t d = 0; d < count; d++)
        whole[d] = shares[d] / sum;

    return suite_direct_split(direct, whole) && time_hands(direct, ms);
}

/* Each device alone. The first run of a device compiles and is not timed. */
static bool time_devices(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;
    double ignored;

    for (uint32_t d = 0; d < figures->device_count; d++) {
        double shares[COX_DEVICES_MAX] = {0};
        shares[d] = 1;
        if (!suite_direct_split(bout->all_hands, shares) ||
            !suite_direct_run(bout->all_hands, &ignored) ||
            !time_hands(bout->all_hands, &figures->device_ms[d]))
            return false;
        if (figures->device_ms[d] < figures->device_ms[figures->best])
            figures->best = d;
    }

    return true;
}

/* Move the share of one device while that is faster. */
static bool improve(struct bout *bout, uint32_t device, double factor, double *best_ms,
                    uint32_t *tries)
{
    struct suite_figures *figures = bout->figures;

    while (*tries < TRIES_MAX && now_ns() < bout->search_end_ns) {
        double shares[COX_DEVICES_MAX], ms;

        memcpy(shares, figures->shares, sizeof shares);
        shares[device] *= factor;
        if (!try_split(bout->all_hands, shares, figures->device_count, &ms))
            return false;
        ++*tries;
        if (ms >= *best_ms * 0.998)
            break;
        *best_ms = ms;
        memcpy(figures->shares, shares, sizeof shares);
    }

    return true;
}

static void to_sum_one(double *shares, uint32_t count)
{
    double sum = 0;

    for (uint32_t d = 0; d < count; d++)
        sum += shares[d];
    for (uint32_t d = 0; d < count; d++)
        shares[d] /= sum;
}

/* Time the found split with one way to exchange rows. */
static bool time_exchange(struct bout *bout, bool through_host, double *ms)
{
    suite_direct_through_host(bout->all_hands, through_host);

    return suite_direct_split(bout->all_hands, bout->figures->shares) &&
           time_hands(bout->all_hands, ms);
}

/* Take the found split with the faster way to exchange rows. A few frames decide: NVIDIA's driver
 * took 600 ms for a direct exchange of eight rows between two H200 (580), and 5 ms through the
 * host. */
static bool choose_exchange(struct bout *bout)
{
    const uint32_t frames = bout->problem.frames;
    double direct_ms = 0, through_ms = 0;
    bool good = true;

    if (suite_direct_through_host(bout->all_hands, false)) {
        if (frames > EXCHANGE_FRAMES)
            bout->problem.frames = EXCHANGE_FRAMES;
        good = time_exchange(bout, false, &direct_ms) && time_exchange(bout, true, &through_ms);
        bout->problem.frames = frames;
    }
    suite_direct_through_host(bout->all_hands, through_ms < direct_ms);

    return good && suite_direct_split(bout->all_hands, bout->figures->shares);
}

/* A first split that takes this many times as long as the best device alone is not improved. */
static const double HOPELESS = 1.5;

/* Find the fastest split: from the devices' speeds in smaller and smaller steps. The best device
 * alone is a split, too. */
static bool find_split(struct bout *bout)
{
    static const double steps[] = {1.25, 1.1, 1.04};
    struct suite_figures *figures = bout->figures;
    double best_ms;
    uint32_t tries = 0;
    bout->search_end_ns = now_ns() + SEARCH_NS;

    for (uint32_t d = 0; d < figures->device_count; d++)
        figures->shares[d] = 1 / figures->device_ms[d];
    if (!try_split(bout->all_hands, figures->shares, figures->device_count, &best_ms))
        return false;

    const bool hopeless = best_ms > HOPELESS * figures->device_ms[figures->best];
    for (size_t s = 0; s < sizeof steps / sizeof *steps && !hopeless; s++)
        for (uint32_t d = 0; d < figures->device_count; d++)
            if (!improve(bout, d, steps[s], &best_ms, &tries) ||
                !improve(bout, d, 1 / steps[s], &best_ms, &tries))
                return false;

    to_sum_one(figures->shares, figures->device_count);
    if (figures->device_ms[figures->best] < best_ms) {
        memset(figures->shares, 0, sizeof figures->shares);
        figures->shares[figures->best] = 1;
    }

    return choose_exchange(bout);
}

static bool prepare_hands(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;
    const double alone = 1;
    double ignored;

    if (bout->conditions->rounds == 0)
        for (uint32_t d = 0; d < figures->device_count; d++)
            figures->shares[d] = 1.0 / figures->device_count;

    bout->all_hands = suite_direct_create(&bout->problem, bout->devices, figures->device_count);
    if (!bout->all_hands)
        return false;
    suite_direct_through_host(bout->all_hands, true);
    if (bout->conditions->rounds == 0) {
        if (!suite_direct_split(bout->all_hands, figures->shares))
            return false;
    } else if (!time_devices(bout) || !find_split(bout)) {
        return false;
    }

    bout->one_hand = suite_direct_create(&bout->problem, &bout->devices[figures->best], 1);

    return bout->one_hand && suite_direct_split(bout->one_hand, &alone) &&
           suite_direct_run(bout->one_hand, &ignored);
}

/* --- the library --- */

/* Run until the library has learned the devices' speeds. */
static bool warm(const struct bout *bout, struct suite_library *library)
{
    const uint64_t start = now_ns();
    uint32_t runs = 0;
    double ignored;

    if (bout->conditions->rounds == 0)
        return true;
    while (runs < WARM_RUNS ||
           (runs * bout->problem.frames < WARM_FRAMES && (double)(now_ns() - start) < WARM_NS)) {
        if (!suite_library_run(library, &ignored))
            return false;
        runs++;
    }

    return true;
}

static bool prepare_library(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;
    uint32_t indices[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < figures->device_count; d++)
        indices[d] = d;
    const struct bench_device_list one = bench_device_list(&indices[figures->best], 1);
    const struct bench_device_list all = bench_device_list(indices, figures->device_count);

    /* Without rounds every device must get rows. */
    const char *policy = bout->conditions->rounds ? NULL : "static";

    bout->one = suite_library_create(&bout->problem, bout->conditions->runtime, one.text, NULL,
                                     false);
    bout->all = suite_library_create(&bout->problem, bout->conditions->runtime, all.text, policy,
                                     false);

    return bout->one && bout->all && warm(bout, bout->one) && warm(bout, bout->all);
}

/* The shares of rows in the library's last run. False: it ran nothing. */
static bool shares_of_library(const struct bout *bout, double shares[COX_DEVICES_MAX])
{
    struct suite_device_cost costs[COX_DEVICES_MAX];
    const uint32_t count = suite_library_costs(bout->all, costs);
    uint64_t rows = 0;

    for (uint32_t d = 0; d < count; d++)
        rows += costs[d].rows;
    for (uint32_t d = 0; d < count && rows; d++)
        shares[d] = (double)costs[d].rows / (double)rows;

    return rows > 0;
}

/* The search may miss the fastest split, so try the library's by hand, too. */
static bool try_library_split(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;
    double shares[COX_DEVICES_MAX] = {0}, found_ms, library_ms;

    if (bout->conditions->rounds == 0 || !shares_of_library(bout, shares))
        return true;
    if (!time_hands(bout->all_hands, &found_ms) || !suite_direct_split(bout->all_hands, shares) ||
        !time_hands(bout->all_hands, &library_ms))
        return false;

    if (library_ms < found_ms)
        memcpy(figures->shares, shares, sizeof shares);

    return suite_direct_split(bout->all_hands, figures->shares);
}

/* --- rounds --- */

static bool run_entrant(struct bout *bout, enum entrant entrant, double *ns)
{
    switch (entrant) {
    case HAND_ONE:
        return suite_direct_run(bout->one_hand, ns);
    case HAND_ALL:
        return suite_direct_run(bout->all_hands, ns);
    case LIBRARY_ONE:
        return suite_library_run(bout->one, ns);
    default:
        return suite_library_run(bout->all, ns);
    }
}

static bool run_rounds(struct bout *bout)
{
    const uint32_t rounds = bout->conditions->rounds ? bout->conditions->rounds : 1;

    for (uint32_t round = 0; round < rounds;) {
        quiet_begin(bout->conditions->quiet);
        for (uint32_t e = 0; e < ENTRANTS; e++) {
            const uint32_t entrant = (e + round) % ENTRANTS;
            if (!run_entrant(bout, entrant, &bout->times[entrant][round]))
                return false;
        }
        round += quiet_keep(bout->conditions->quiet);
    }

    struct suite_figures *figures = bout->figures;
    figures->hand_one_ms = quantile_of(bout->times[HAND_ONE], rounds, 0.5) * 1e-6;
    figures->hand_all_ms = quantile_of(bout->times[HAND_ALL], rounds, 0.5) * 1e-6;
    figures->library_one_ms = quantile_of(bout->times[LIBRARY_ONE], rounds, 0.5) * 1e-6;
    figures->library_all_ms = quantile_of(bout->times[LIBRARY_ALL], rounds, 0.5) * 1e-6;

    return true;
}

/* The shares of the library's last run on all devices. */
static void read_shares(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;

    suite_library_costs(bout->all, figures->costs);
    figures->turns = suite_library_turns(bout->all);
    (void)shares_of_library(bout, figures->library_shares);
}

/* Timing kernels and copies of staged devices makes frames slower, so a separate session does it. */
static bool read_costs(struct bout *bout)
{
    struct suite_figures *figures = bout->figures;
    bool staged = false;
    double ignored;

    read_shares(bout);
    for (uint32_t d = 0; d < figures->device_count; d++)
        staged |= bout->devices[d].mode == COX_MODE_STAGED;
    if (!staged || bout->conditions->rounds == 0)
        return true;

    struct suite_library *profiled = suite_library_create(&bout->problem, bout->conditions->runtime,
                                                          NULL, NULL, true);
    const bool good = profiled && warm(bout, profiled) && suite_library_run(profiled, &ignored);
    if (good) {
        suite_library_costs(profiled, figures->costs);
        figures->turns = suite_library_turns(profiled);
    }
    suite_library_destroy(&profiled);

    return good;
}

/* --- results --- */

static void compare_bits(struct bout *bout)
{
    bout->figures->equal_bits = true;

    for (uint32_t m = 0; m < bout->problem.memory_count; m++) {
        const struct suite_memory *memory = &bout->problem.memories[m];
        if (memory->result && memcmp(suite_library_data(bout->one, m),
                                     suite_library_data(bout->all, m), memory->bytes) != 0)
            bout->figures->equal_bits = false;
    }
}

static void note_error(struct suite_figures *figures, const struct suite_memory *memory,
                       const void *result, const void *right)
{
    const double error = suite_error(memory, result, right);

    if (error > figures->error)
        figures->error = error;
}

static bool compare_reference(struct bout *bout)
{
    const struct suite_problem *problem = &bout->problem;
    struct suite_figures *figures = bout->figures;
    void *right[SUITE_MEMORIES_MAX] = {NULL};
    bool good = true;

    for (uint32_t m = 0; m < problem->memory_count; m++) {
        right[m] = malloc(problem->memories[m].bytes);
        good = good && right[m];
        if (right[m])
            memcpy(right[m], problem->memories[m].data, problem->memories[m].bytes);
    }

    if (good)
        problem->reference(problem, right);
    for (uint32_t m = 0; m < problem->memory_count; m++) {
        const struct suite_memory *memory = &problem->memories[m];
        if (good && memory->result) {
            note_error(figures, memory, suite_direct_data(bout->one_hand, m), right[m]);
            note_error(figures, memory, suite_direct_data(bout->all_hands, m), right[m]);
            note_error(figures, memory, suite_library_data(bout->one, m), right[m]);
            note_error(figures, memory, suite_library_data(bout->all, m), right[m]);
        }
        free(right[m]);
    }
    figures->right = figures->error <= problem->tolerance;

    return good || bench_fail("out of memory");
}

/* --- the case --- */

static bool play(struct bout *bout)
{
    if (!bout->figures->of->make(bout->conditions->size, &bout->problem))
        return bench_fail("suite: %s was not made", bout->figures->of->name);
    if (!prepare_hands(bout) || !prepare_library(bout) || !try_library_split(bout) ||
        !run_rounds(bout) || !read_costs(bout))
        return false;

    compare_bits(bout);

    return bout->conditions->size == SUITE_LARGE || compare_reference(bout);
}

static bool measure(const struct suite_case *of, const struct suite_conditions *conditions,
                    struct suite_figures *figures)
{
    struct bout *bout = calloc(1, sizeof *bout);

    if (!bout)
        return bench_fail("out of memory");
    *figures = (struct suite_figures){
        .of = of, .device_count = cox_runtime_device_count(conditions->runtime)};
    bout->conditions = conditions;
    bout->figures = figures;
    for (uint32_t d = 0; d < figures->device_count; d++)
        cox_runtime_device_info(conditions->runtime, d, &bout->devices[d]);

    const bool good = play(bout);

    suite_library_destroy(&bout->all);
    suite_library_destroy(&bout->one);
    suite_direct_destroy(&bout->all_hands);
    suite_direct_destroy(&bout->one_hand);
    suite_problem_free(&bout->problem);
    free(bout);

    return good;
}

bool suite_measure(const struct suite_case *of, const struct suite_conditions *conditions,
                   struct suite_figures *figures)
{
    struct suite_conditions smaller = *conditions;
    struct suite_figures checked;

    if (!measure(of, conditions, figures))
        return false;
    if (conditions->size != SUITE_LARGE)
        return true;

    /* A large problem takes minutes in plain C, so a small one is compared. */
    smaller.size = SUITE_SMALL;
    smaller.rounds = 0;
    if (!measure(of, &smaller, &checked))
        return false;
    figures->error = checked.error;
    figures->right = checked.right;
    figures->equal_bits &= checked.equal_bits;

    return true;
}
