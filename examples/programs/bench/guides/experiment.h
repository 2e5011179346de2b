/* An experiment of cox-bench guides: a table entry with its variants. Their kernels are in a .cl
 * file. The tables are in arithmetic.c, neighbours.c, memory.c and host.c. measure.c runs any
 * entry.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_EXPERIMENT_H
#define BENCH_GUIDES_EXPERIMENT_H

#include "device.h"

enum {
    GUIDES_LAUNCHES_MAX = 4,
    GUIDES_VARIANTS_MAX = 16,
    GUIDES_EXPERIMENTS_MAX = 24,
    GUIDES_ROUNDS_MAX = 15,
    GUIDES_REPEAT_MAX = 32,
    GUIDES_MEMS = 4
};

/* Fields of an experiment: its table of variants. */
#define GUIDES_VARIANTS(table) .variants = table, .count = (uint32_t)(sizeof table / sizeof *table)

/* --- Variants --- */

/* The work-items of a launch. */
enum guides_region {
    GUIDES_LINE,     /* one dimension: all pixels over `each` */
    GUIDES_PLANE,    /* two: width, height */
    GUIDES_TURNED,   /* two: height, width */
    GUIDES_ROWS,     /* one: height */
    GUIDES_COLUMNS,  /* one: width */
    GUIDES_INTERIOR, /* two: without the outermost pixels */
    GUIDES_PADDED,   /* two: with one more pixel at each side */
    GUIDES_BORDER    /* one: the outermost pixels */
};

/* Sizes that depend on the device: work-items in one direction of a work-group, or pixels per
 * work-item. 0 = the driver's choice, or 1 pixel. */
enum {
    GUIDES_TILE = -1,    /* the device's tile */
    GUIDES_GROUP = -2,   /* its large work-group */
    GUIDES_SEGMENT = -3, /* the large work-group over the variant's number */
    GUIDES_QUARTER = -4, /* a quarter of GUIDES_SEGMENT */
    GUIDES_SHAPE = -5,   /* 64 items or what the device allows, over the variant's number */
    GUIDES_ACROSS = -6,  /* the variant's number, at most 64 or what the device allows */
    GUIDES_MULTIPLE = -7 /* a quarter of the kernel's preferred multiple, times the number */
};

struct guides_launch {
    const char *kernel, *args;
    enum guides_region region;
    int local[2];
    int each, each_cpu; /* pixels per work-item; on CPUs, 0 = the same */
    uint32_t share;     /* divides the number of pixels; 0 = 1 */
};

/* What a variant requires of a device. */
enum guides_need { GUIDES_NOTHING, GUIDES_IMAGES, GUIDES_COLLECTIVE, GUIDES_SUBGROUPS };

struct guides_variant {
    const char *key, *name;
    const char *group; /* variants of one group are compared; NULL = the only group */
    const char *options, *options_cpu;
    uint32_t number;
    uint32_t more;   /* work-items per group in addition to `local` */
    double accesses; /* of global memory per pixel; 0 = no estimate */
    double adds;     /* multiply-adds per pixel, for the finding */
    double tolerance;
    enum guides_need need;
    struct guides_launch launches[GUIDES_LAUNCHES_MAX];
};

/* --- Experiments --- */

enum guides_unit {
    GUIDES_MPIXELS,
    GUIDES_MVALUES,
    GUIDES_MREADS,
    GUIDES_GBS,
    GUIDES_US,
    GUIDES_MS
};

struct guides_cell;
struct guides_run;

struct guides_experiment {
    const char *key, *title;
    const char *guide; /* what the guides say */
    const char *source;
    double work;      /* what `unit` counts, per pixel; 0 = 1 */
    double tolerance; /* relative to the larger of 1 and the expected value; 0 = the same bits */
    /* Compute the expected result and return its length; it may depend on the variant's number. */
    size_t (*expect)(const struct guides_device *device, const struct guides_variant *variant,
                     float *expected);
    /* NULL = predict from the variant's accesses. Returns NaN for no prediction. */
    double (*predict)(const struct guides_device *device, const struct guides_variant *variant);
    /* Keep rates of the device for later predictions; may be NULL. */
    void (*keep)(struct guides_device *device, const struct guides_cell *cells);
    /* Say more than which variant is fastest; may be NULL. */
    void (*finding)(const struct guides_device *device, const struct guides_experiment *experiment,
                    const struct guides_cell *cells, char *text, size_t bytes);
    /* For experiments other than kernel launches (host.c); NULL = launches. `sample` returns ns;
     * 0 = failed, and the cell says why. */
    bool (*prepare)(struct guides_run *run, uint32_t variant);
    double (*sample)(struct guides_run *run, uint32_t variant);
    bool (*check)(struct guides_run *run, uint32_t variant);
    const struct guides_variant *variants;
    uint32_t count;
    enum guides_unit unit;
    bool chart_ratio;
    bool no_contest; /* do not say which variant is fastest */
    bool in_order;   /* each round runs the variants in table order */
};

/* The tables; an entry without a key ends each. */
extern const struct guides_experiment guides_arithmetic[], guides_neighbours[], guides_memory[],
    guides_host[];

/* --- Results --- */

enum guides_status { GUIDES_MEASURED, GUIDES_WRONG, GUIDES_NOT_OFFERED, GUIDES_FAILED };

struct guides_quartiles {
    double median, low, high;
};

struct guides_cell {
    enum guides_status status;
    char why[240]; /* if the status is not GUIDES_MEASURED */
    char name[96], group[48];
    double ns[GUIDES_ROUNDS_MAX]; /* by round */
    uint32_t rounds;
    struct guides_quartiles value; /* in the experiment's unit */
    struct guides_quartiles ratio; /* speed over the group's first measured variant, by round */
    double predicted;              /* in the experiment's unit; NaN = no prediction */
    double error;                  /* the largest, as for `tolerance`; NaN = not checked */
};

struct guides_result {
    const struct guides_experiment *experiment;
    struct guides_cell cells[GUIDES_VARIANTS_MAX];
    char finding[1200];
};

/* --- An experiment in progress --- */

struct guides_run {
    struct guides_device *device;
    struct guides_result *result;
    struct guides_prepared {
        cl_program program;
        cl_kernel kernels[GUIDES_LAUNCHES_MAX];
        size_t global[GUIDES_LAUNCHES_MAX][2], local[GUIDES_LAUNCHES_MAX][2];
        cl_uint dimensions[GUIDES_LAUNCHES_MAX];
        uint32_t launches, repeat;
    } prepared[GUIDES_VARIANTS_MAX];
    /* For experiments that launch no kernels of the table. */
    cl_mem mems[GUIDES_MEMS];
    void *host[GUIDES_MEMS];
    cl_program program;
    cl_kernel kernel;
    uint64_t nonce;
};

#endif
