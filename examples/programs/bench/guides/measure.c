/* Prepares and checks the variants of an experiment, measures them in rounds of one sample each,
 * and checks them again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"
#include "bench/message.h"
#include "common/now.h"
#include "finding.h"
#include "launch.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A sample repeats its launches until it takes `sample_ns`. The rounds of an experiment take about
 * `rounds_ns`, but there are at least ROUNDS_LEAST. */
static const double sample_ns = 2e6, rounds_ns = 6e9;
enum { ROUNDS_LEAST = 5 };

static bool prepare(struct guides_run *run, uint32_t v)
{
    const struct guides_experiment *experiment = run->result->experiment;

    if (experiment->prepare)
        return experiment->prepare(run, v);

    return guides_prepare(run, v);
}

static bool check(struct guides_run *run, uint32_t v)
{
    const struct guides_experiment *experiment = run->result->experiment;

    if (experiment->check)
        return experiment->check(run, v);

    return guides_check(run, v);
}

static double sample(struct guides_run *run, uint32_t v)
{
    const struct guides_experiment *experiment = run->result->experiment;
    const uint32_t repeat = run->prepared[v].repeat;
    if (experiment->sample)
        return experiment->sample(run, v);
    return guides_launch(run, v, repeat, false) / repeat;
}

/* Take two samples, since the first one includes one-time work, and find how often a sample repeats
 * its launches. Returns the time of a sample. */
static double calibrate(struct guides_run *run, uint32_t v)
{
    struct guides_prepared *prepared = &run->prepared[v];

    prepared->repeat = 1;
    double ns = sample(run, v);
    if (run->result->experiment->sample || run->device->quick || ns <= 0)
        return ns;
    ns = sample(run, v);
    if (ns > 0)
        prepared->repeat = (uint32_t)fmin(fmax(ceil(sample_ns / ns), 1), GUIDES_REPEAT_MAX);

    return ns * prepared->repeat;
}

/* A round takes one sample of each variant. Each round begins with another variant, because the one
 * before changes what is in the caches. */
static void run_rounds(struct guides_run *run, uint32_t rounds)
{
    struct guides_result *result = run->result;
    const struct guides_experiment *experiment = result->experiment;

    for (uint32_t round = 0; round < rounds;) {
        quiet_begin(run->device->quiet);
        for (uint32_t i = 0; i < experiment->count; i++) {
            const uint32_t first = experiment->in_order ? 0 : round;
            const uint32_t v = (first + i) % experiment->count;
            struct guides_cell *cell = &result->cells[v];

            if (cell->status != GUIDES_MEASURED)
                continue;
            cell->ns[round] = sample(run, v);
            cell->rounds = round + 1;
        }
        round += quiet_keep(run->device->quiet);
    }
}

/* --- Figures --- */

static double value_of(const struct guides_run *run, double ns)
{
    const struct guides_experiment *experiment = run->result->experiment;
    double work = (double)run->device->pixels;

    if (experiment->work > 0)
        work *= experiment->work;
    switch (experiment->unit) {
    case GUIDES_US:
        return ns * 1e-3;
    case GUIDES_MS:
        return ns * 1e-6;
    case GUIDES_GBS:
        return work / ns;
    default:
        return work / ns * 1e3;
    }
}

static bool same_group(const struct guides_variant *a, const struct guides_variant *b)
{
    return !a->group || strcmp(a->group, b->group) == 0;
}

static void find_figures(struct guides_run *run, uint32_t v)
{
    struct guides_result *result = run->result;
    const struct guides_experiment *experiment = result->experiment;
    struct guides_cell *cell = &result->cells[v];
    uint32_t first = 0;
    double values[GUIDES_ROUNDS_MAX];

    if (cell->status != GUIDES_MEASURED)
        return;

    while (first < v && (result->cells[first].status != GUIDES_MEASURED ||
                         !same_group(&experiment->variants[first], &experiment->variants[v])))
        first++;

    for (uint32_t r = 0; r < cell->rounds; r++)
        values[r] = value_of(run, cell->ns[r]);

    cell->value = guides_quartiles_of(values, cell->rounds);
    for (uint32_t r = 0; r < cell->rounds; r++)
        values[r] = result->cells[first].ns[r] / cell->ns[r];

    cell->ratio = guides_quartiles_of(values, cell->rounds);
}

static void find_prediction(struct guides_run *run, uint32_t v)
{
    const struct guides_device *device = run->device;
    const struct guides_experiment *experiment = run->result->experiment;
    const struct guides_variant *variant = &experiment->variants[v];

    if (experiment->predict)
        run->result->cells[v].predicted = experiment->predict(device, variant);
    else if (variant->accesses > 0)
        run->result->cells[v].predicted = device->copy_rate * 2 / variant->accesses;
}

static void name_cell(const struct guides_run *run, const struct guides_variant *variant,
                      struct guides_cell *cell)
{
    cell->error = cell->predicted = NAN;
    snprintf(cell->name, sizeof cell->name, "%s", variant->name);
    cell->group[0] = '\0';
    if (!variant->group)
        return;

    if (*variant->group == '/') /* the length depends on the device */
        snprintf(cell->group, sizeof cell->group, "segments of %u",
                 run->device->group / variant->number);
    else
        snprintf(cell->group, sizeof cell->group, "%s", variant->group);
}

/* Release what experiments other than launches created. */
static void release(struct guides_run *run)
{
    for (int i = 0; i < GUIDES_MEMS; i++)
        if (run->host[i])
            clEnqueueUnmapMemObject(run->device->queue, run->mems[i], run->host[i], 0, NULL, NULL);
    clFinish(run->device->queue);

    for (int i = 0; i < GUIDES_MEMS; i++)
        BENCH_CL_RELEASE(MemObject, run->mems[i]);

    BENCH_CL_RELEASE(Kernel, run->kernel);
    BENCH_CL_RELEASE(Program, run->program);
}

bool guides_measure(struct guides_device *device, struct guides_result *result)
{
    const struct guides_experiment *experiment = result->experiment;
    struct guides_run run = {.device = device, .result = result, .nonce = now_ns()};
    double round_ns = 1;

    if (experiment->count > GUIDES_VARIANTS_MAX)
        return bench_fail("%s: too many variants", experiment->key);

    for (uint32_t v = 0; v < experiment->count; v++) {
        name_cell(&run, &experiment->variants[v], &result->cells[v]);
        if (prepare(&run, v) && check(&run, v))
            round_ns += calibrate(&run, v);
    }

    uint32_t rounds = ROUNDS_LEAST;
    if (!device->quick)
        rounds = (uint32_t)fmin(fmax(rounds_ns / round_ns, ROUNDS_LEAST), GUIDES_ROUNDS_MAX);
    run_rounds(&run, rounds);

    for (uint32_t v = 0; v < experiment->count; v++) {
        if (result->cells[v].status == GUIDES_MEASURED)
            check(&run, v);
        find_figures(&run, v);
    }
    if (experiment->keep)
        experiment->keep(device, result->cells);
    for (uint32_t v = 0; v < experiment->count; v++) {
        find_prediction(&run, v);
        guides_release(&run.prepared[v]);
    }

    guides_find(device, result);
    release(&run);

    return true;
}
