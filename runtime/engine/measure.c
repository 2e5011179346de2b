/* Decides what one device runs in the warm-up of a pass, and what its times show.
 *
 * The first run is a slice of few rows, because some drivers compile in it. The second slice shows
 * whether the whole pass is cheap on this device.
 *
 *   cheap  The whole pass is timed. So the time includes fixed costs, which matter then.
 *   dear   Slices are timed. They grow until their time is long enough to be exact, and until it
 *          grows with the rows. A small slice leaves some cores without work, so twice as many rows
 *          take no longer.
 *
 * Owns struct cox__measure.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"
#include "base/bounds.h"
#include "invariant.h"

/* A pass of at most this time is timed whole. The timed runs of a pass end after as much time. It
 * takes about 10 ms until the workers of a CPU device are spread over the cores. */
#define WHOLE_NS 40000000ull
/* The most timed runs of the whole pass, of which the shortest counts. */
#define WHOLE_RUNS 12
/* A slice of this time is exact enough. */
#define SLICE_NS 20000000ull
/* The first slices have this share of the rows. */
#define FIRST_SHARE 128
/* The most that slices may grow by in one step. */
#define GROWTH 4.0
/* A slice that is long enough is compared with a larger one of at most this share of the rows. */
#define SECOND_SHARE 16
/* The time of one more row, as a fraction of the mean time of a row: at least this fraction if the
 * time grows with the rows. */
#define GROWS 0.5
/* From this fraction on the difference is noise: the time is taken to be proportional. */
#define PROPORTIONAL 0.8

static void become(struct cox__measure *measure, enum cox__measure_state state)
{
    COX_INVARIANT(measure->state < state);
    measure->state = state;
}

static uint32_t round_up(double rows, uint32_t unit, uint32_t most)
{
    if (rows >= most)
        return most;

    const uint64_t units = ((uint64_t)rows + unit - 1) / unit;
    return (uint32_t)cox__min_u64(cox__max_u64(units, 1) * unit, most);
}

void cox__measure_begin(struct cox__measure *measure, uint32_t rows, uint32_t unit, uint32_t most,
                        uint64_t known_ns, bool only)
{
    *measure = (struct cox__measure){
        .rows = rows, .unit = unit, .most = most, .known_ns = known_ns, .only = only};
    measure->slice = round_up((double)rows / FIRST_SHARE, unit, most);
    if (only)
        become(measure, COX__MEASURE_WHOLE);
}

/* ---- slices ---- */

/* The time of one more row as a fraction of the mean time of a row, from two slices; 1 = there is
 * only one. */
static double growth(const struct cox__measure *measure, uint32_t rows, uint64_t ns)
{
    if (rows <= measure->last_rows || !measure->last_rows)
        return 1;

    const double more = ((double)ns - (double)measure->last_ns) / (rows - measure->last_rows);
    const double fraction = more * rows / (double)ns;
    if (fraction > PROPORTIONAL)
        return 1;
    if (fraction > 0)
        return fraction;

    return 0;
}

/* Rows of a slice that is long enough, if the time grows with the rows. */
static double next_rows(uint32_t rows, uint64_t ns)
{
    const double times = 1.5 * (double)SLICE_NS / (double)ns;
    if (times > GROWTH)
        return GROWTH * rows;
    if (times < 2)
        return 2.0 * rows;

    return times * rows;
}

/* The time of the whole pass, rather too long than too short. */
static double proportional(const struct cox__measure *measure, uint32_t rows, uint64_t ns)
{
    return (double)ns * measure->rows / rows;
}

static void learn_compilation(struct cox__measure *measure, uint32_t rows, uint64_t ns, bool blocks)
{
    double whole_ns = (double)measure->known_ns;
    if (!measure->known_ns)
        whole_ns = proportional(measure, rows, ns);

    if (whole_ns <= (double)WHOLE_NS)
        become(measure, COX__MEASURE_WHOLE);
    else if (measure->known_ns && !blocks)
        become(measure, COX__MEASURE_DONE);
    else
        become(measure, COX__MEASURE_SLICE); /* with a known time: was it the compiler? */
}

static uint64_t learn_slice(struct cox__measure *measure, uint32_t rows, uint64_t ns)
{
    const double fraction = growth(measure, rows, ns);
    const double next = next_rows(rows, ns);
    const bool first = !measure->last_rows;

    if (measure->known_ns) {
        become(measure, COX__MEASURE_DONE);
        return 0;
    }
    if (proportional(measure, rows, ns) <= (double)WHOLE_NS) {
        become(measure, COX__MEASURE_WHOLE);
        return 0;
    }

    const bool enough = ns >= SLICE_NS && fraction >= GROWS && !first;
    const bool too_dear = ns >= SLICE_NS && first && next * SECOND_SHARE > measure->rows;
    /* The end of the pass cuts a slice short. Then no later slice is longer. */
    const bool largest = rows > measure->most / 2 || rows < measure->slice;
    if (largest && fraction < GROWS) { /* no slice shows it */
        become(measure, COX__MEASURE_WHOLE);
        return 0;
    }
    if (enough || too_dear || largest) {
        become(measure, COX__MEASURE_DONE);
        return ns + (uint64_t)(fraction * (proportional(measure, rows, ns) - (double)ns));
    }

    measure->last_rows = rows;
    measure->last_ns = ns;
    measure->slice = round_up(next, measure->unit, measure->most);
    return 0;
}

/* ---- whole passes ---- */

/* The time is known from a device profile. The first run repeats it, unless the device computes
 * inside the enqueue call, or is much slower now: then a second one decides. */
static uint64_t learn_known(struct cox__measure *measure, uint64_t ns, bool blocks)
{
    const bool outdated = ns / 2 > measure->known_ns;
    if (measure->runs == 1 && (blocks || outdated))
        return 0;

    become(measure, COX__MEASURE_DONE);
    if (measure->runs > 1 && (outdated || ns < measure->known_ns))
        return ns;

    return 0;
}

static uint64_t learn_whole(struct cox__measure *measure, uint64_t ns, bool blocks)
{
    measure->runs++;

    if (measure->only) {
        become(measure, COX__MEASURE_DONE);
        return 0;
    }
    if (measure->known_ns)
        return learn_known(measure, ns, blocks);

    if (!measure->whole_ns || ns < measure->whole_ns)
        measure->whole_ns = ns;
    measure->spent_ns += ns;
    if (measure->runs == WHOLE_RUNS || measure->spent_ns >= WHOLE_NS)
        become(measure, COX__MEASURE_DONE);

    return measure->whole_ns;
}

uint64_t cox__measure_learn(struct cox__measure *measure, uint32_t rows, uint64_t ns, bool blocks)
{
    ns = cox__max_u64(ns, 1);

    switch (measure->state) {
    case COX__MEASURE_COMPILE:
        learn_compilation(measure, rows, ns, blocks);
        return 0;
    case COX__MEASURE_SLICE:
        return learn_slice(measure, rows, ns);
    case COX__MEASURE_WHOLE:
        return learn_whole(measure, ns, blocks);
    case COX__MEASURE_DONE:
        break;
    }

    return 0;
}
