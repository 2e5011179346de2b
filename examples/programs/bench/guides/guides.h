/* cox-bench guides: what the vendors' OpenCL guides tell to do, measured. An experiment is an entry of a table with
 * its variants, and kernels in a .cl file beside it; run.c measures any of them.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_H
#define BENCH_GUIDES_H

#include "bench/cl.h"

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    GUIDES_LAUNCHES_MAX = 4,
    GUIDES_VARIANTS_MAX = 16,
    GUIDES_EXPERIMENTS_MAX = 24,
    GUIDES_ROUNDS_MAX = 15,
    GUIDES_REPEAT_MAX = 32,
    GUIDES_TAIL = 64, /* values that a kernel may read beyond the last pixel; they are 0 */
    GUIDES_TAPS = 9,  /* of the Gaussian; its weights of two dimensions follow those of one */
    GUIDES_FILTER = 16
};

struct guides_experiment;

/* --- a device (device.c) ------------------------------------------------------------------------------------------ */

/* The arguments of kernels, by their letters in `struct guides_launch`. Further letters: w width, h height, n the
 * variant's number, c the pixels' binary logarithm, a all pixels. */
enum guides_buffer {
    GUIDES_IN,      /* i */
    GUIDES_OUT,     /* o */
    GUIDES_THERE,   /* t: between passes */
    GUIDES_BETWEEN, /* u: likewise */
    GUIDES_GAUSS,   /* g: weights */
    GUIDES_RATIOS,  /* r: of the recursive Gaussian */
    GUIDES_STEPS,   /* f: the taps of a filter */
    GUIDES_IMAGE,   /* I: the input as an image; NULL without images */
    GUIDES_BUFFERS
};

struct guides_device {
    struct cox_device_info info;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_mem buffers[GUIDES_BUFFERS];
    const char *no_image; /* why there is none */
    uint32_t width, height, log_pixels;
    size_t pixels;
    uint64_t copy_ns; /* of a first copy, by the host's clock */
    uint32_t tile;    /* side of a square work-group: 16, 8 or 4 */
    uint32_t group;   /* a large work-group: 256 or what the device allows */
    size_t line;      /* values in a line of the cache of global memory */
    uint32_t major;   /* version of OpenCL */
    bool collective;  /* work_group_scan_* and such */
    bool subgroups;
    bool cpu;
    bool profiled; /* its profile says how long kernels take */
    float *input, *expected, *result;
    const struct guides_experiment
        *expected_of; /* and the number of its variant: what `expected` holds */
    uint32_t expected_number;
    size_t expected_count;
    float gauss[GUIDES_TAPS * (GUIDES_TAPS + 1)], ratios[4], taps[GUIDES_FILTER];
    bool quick;
    struct quiet *quiet; /* the rounds of all devices */
    double copy_rate;    /* Mpixel/s of a copy, once measured; NaN */
    double add_rate;     /* 10^6 multiply-adds a second, likewise */
    double local_rate;   /* Mread/s of local memory, side by side, likewise */
};

/* The device that its `info` describes; `quick` and `quiet` are set, too. False after a message; the device is to be
 * closed in any case. */
bool guides_device_open(struct guides_device *device);
void guides_device_close(struct guides_device *device);

/* NULL: `why` says what the compiler says. */
cl_program guides_build(const struct guides_device *device, const char *source, const char *options,
                        char *why, size_t why_bytes);

/* "clFinish: -5 (out of resources)"; returns false if `code` is an error. */
bool guides_good(cl_int code, const char *call, char *why, size_t why_bytes);

/* The file of that name beside this one. */
const char *guides_text(const char *name);

/* --- an experiment ------------------------------------------------------------------------------------------------ */

/* Where the work-items of a launch are. */
enum guides_region {
    GUIDES_LINE,     /* one dimension: all pixels over `each` */
    GUIDES_PLANE,    /* two: the width, the height */
    GUIDES_TURNED,   /* the height, the width */
    GUIDES_ROWS,     /* one: the height */
    GUIDES_COLUMNS,  /* one: the width */
    GUIDES_INTERIOR, /* two: without the outermost pixels */
    GUIDES_PADDED,   /* two: with a pixel more at each side */
    GUIDES_BORDER    /* one: the outermost pixels */
};

/* Sizes that the device decides: of a work-group in a direction, or of pixels an item does. 0 = the driver's choice,
 * or 1 pixel. */
enum {
    GUIDES_TILE = -1,    /* the device's tile */
    GUIDES_GROUP = -2,   /* its large work-group */
    GUIDES_SEGMENT = -3, /* that over the variant's number */
    GUIDES_QUARTER = -4, /* a quarter of it */
    GUIDES_SHAPE = -5,   /* 64 items or what the device allows, over the variant's number */
    GUIDES_ACROSS = -6,  /* the variant's number, at most 64 or what the device allows */
    GUIDES_MULTIPLE = -7 /* the kernel's preferred multiple times the variant's number, over 4 */
};

struct guides_launch {
    const char *kernel, *args;
    enum guides_region region;
    int local[2];
    int each, each_cpu; /* pixels an item; on CPUs, 0 = the same */
    uint32_t share;     /* only so many pixels divided by it; 0 = 1 */
};

/* What a variant needs of a device. */
enum guides_need { GUIDES_NOTHING, GUIDES_IMAGES, GUIDES_COLLECTIVE, GUIDES_SUBGROUPS };

struct guides_variant {
    const char *key, *name;
    const char *group; /* variants of one group are compared; NULL = the only one */
    const char *options, *options_cpu;
    uint32_t number;
    uint32_t more;   /* items in a work-group besides what `local` says */
    double accesses; /* of global memory, for each pixel; 0 = no estimate */
    double adds;     /* multiply-adds for each pixel, where a sentence wants them */
    double tolerance;
    enum guides_need need;
    struct guides_launch launches[GUIDES_LAUNCHES_MAX];
};

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
    double work;      /* what `unit` counts, for each pixel; 0 = 1 */
    double tolerance; /* of the largest of 1 and the value expected; 0 = the same bits */
    /* The result, `count` values long; by the variant's number where that matters. */
    size_t (*expect)(const struct guides_device *device, const struct guides_variant *variant,
                     float *expected);
    /* NULL: by the variant's accesses. NaN = none. */
    double (*predict)(const struct guides_device *device, const struct guides_variant *variant);
    /* Keeps rates of the device that later predictions rest on; may be NULL. */
    void (*keep)(struct guides_device *device, const struct guides_cell *cells);
    /* What the numbers say beyond which is fastest; may be NULL. */
    void (*finding)(const struct guides_device *device, const struct guides_experiment *experiment,
                    const struct guides_cell *cells, char *text, size_t bytes);
    /* For what is no launch of kernels (host.c): NULL = launches. A sample in ns; 0 = failed, the cell says why. */
    bool (*prepare)(struct guides_run *run, uint32_t variant);
    double (*sample)(struct guides_run *run, uint32_t variant);
    bool (*check)(struct guides_run *run, uint32_t variant);
    const struct guides_variant *variants;
    uint32_t count;
    enum guides_unit unit;
    bool chart_ratio;
    bool no_contest; /* which way is fastest teaches nothing */
    bool in_order;   /* a round does the variants in the order of the table */
};

extern const struct guides_experiment guides_arithmetic[], guides_neighbours[], guides_memory[],
    guides_host[];
/* All of them in the order of the page; NULL beyond the last one. */
const struct guides_experiment *guides_experiment_at(uint32_t index);

/* --- results ------------------------------------------------------------------------------------------------------ */

enum guides_status { GUIDES_MEASURED, GUIDES_WRONG, GUIDES_NOT_OFFERED, GUIDES_FAILED };

struct guides_quartiles {
    double median, low, high;
};

struct guides_cell {
    enum guides_status status;
    char why[240]; /* there is no figure, or a wrong one */
    char name[96], group[48];
    double ns[GUIDES_ROUNDS_MAX]; /* by round */
    uint32_t rounds;
    struct guides_quartiles value; /* in what the experiment counts */
    struct guides_quartiles
        ratio;        /* speed over that of the group's first measured variant, round by round */
    double predicted; /* in what the experiment counts; NaN = none */
    double error;     /* the largest, as `tolerance` counts; NaN = not checked */
};

struct guides_result {
    const struct guides_experiment *experiment;
    struct guides_cell cells[GUIDES_VARIANTS_MAX];
    char finding[1200];
};

/* What is measured of one device. */
struct guides_sheet {
    struct guides_device device;
    uint32_t count;
    struct guides_result *results;
};

/* An experiment under way. */
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
    /* of experiments that launch no kernels of the table */
    cl_mem mems[4];
    void *host[4];
    cl_program program;
    cl_kernel kernel;
    uint64_t nonce;
};

/* --- launches (launch.c) ------------------------------------------------------------------------------------------ */

/* Program, kernels, arguments and sizes. False: the cell says why. */
bool guides_prepare(struct guides_run *run, uint32_t variant);
void guides_release(struct guides_prepared *prepared);
/* Nanoseconds of `repeat` times all launches, GUIDES_REPEAT_MAX at most where there is a profile; 0 after a failure,
 * which the cell says. `wall`: by the host's clock even where there is a profile. */
double guides_launch(struct guides_run *run, uint32_t variant, uint32_t repeat, bool wall);
/* Whether the output is what is expected; the cell says what is not. */
bool guides_check(struct guides_run *run, uint32_t variant);
/* Has the cell say that something failed; returns false. */
bool guides_cell_fail(struct guides_cell *cell, enum guides_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- measuring and what it says (run.c, finding.c) ---------------------------------------------------------------- */

/* False if it could not be done; a variant that fails or computes wrong values is in its cell. */
bool guides_measure(struct guides_device *device, struct guides_result *result);

const char *guides_unit_name(enum guides_unit unit);
/* Whether more of it is better. */
bool guides_unit_rate(enum guides_unit unit);
/* Three digits or so, with the decimals that they need. */
const char *guides_number(double value, char *text, size_t bytes);
const char *guides_status_name(enum guides_status status);
/* Which is fastest, by how much, what there is no difference from. */
void guides_find(const struct guides_device *device, struct guides_result *result);
/* Adds to a text. */
void guides_say(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fastest variant of a group, by its median; -1 = none was measured. NULL = of all. */
int guides_best(const struct guides_result *result, const char *group);

/* --- output (page.c, results.c) ----------------------------------------------------------------------------------- */

struct guides_report {
    bool quick;
    struct machine machine;
    char date[32];
    double seconds;
    struct quiet quiet;
    uint32_t count;
    struct guides_sheet *sheets;
};

struct html;
/* False if out of memory. */
bool guides_page(const struct guides_report *report, struct html *out);
void guides_chart(const struct guides_result *result, struct html *out);
void guides_json(const struct guides_report *report, FILE *to);

struct guides_options {
    const char *devices, *page, *json, *only;
    double quiet_s;
    bool quick;
};
/* Returns -1 to go on, else the exit status, after saying why on standard error. */
int guides_options_parse(int argc, char **argv, struct guides_options *options);
/* Whether an experiment is in the list `only`; NULL = all. */
bool guides_wanted(const char *only, const char *key);

#endif
