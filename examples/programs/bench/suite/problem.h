/* A problem of `cox-bench suite`: an algorithm that benchmark suites use, with its data.
 *
 * The kernels are written as the suites write them, for one device and the whole frame. A problem
 * describes them by the library's own parameters. Both sides read this description:
 *
 *   library.c   makes sessions from it
 *   direct.c    runs it by OpenCL's own functions, on one device and on several
 *
 * So both run the same kernels over the same data. Results are compared with reference(), and the
 * library's results on all devices with those on one device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_PROBLEM_H
#define BENCH_SUITE_PROBLEM_H

#include <coxswain/coxswain.h>
#include <stdbool.h>
#include <stdint.h>

enum { SUITE_MEMORIES_MAX = 12, SUITE_PASSES_MAX = 16 };

/* How large a problem is. */
enum suite_size {
    SUITE_TINY,  /* for tests of the results: milliseconds on one core */
    SUITE_SMALL, /* for processors: 0.1 to 1 s on two cores */
    SUITE_LARGE, /* for GPUs: at least 5 ms on one GPU, except the copies */
};

/* Memory that frames use. */
struct suite_memory {
    size_t bytes;
    bool result; /* compared after a run */
    bool floats; /* float elements, else bytes */
    void *data;  /* filled by make(); the initial content, which runs copy */
};

struct suite_problem {
    /* Shape, passes, buffers, fields. In an absolute pass, row r of a buffer is frame row r.
     *
     * In other passes, every kernel takes NAME_first_row of the buffers that it uses by rows.
     * Scratch between fused passes is private to each device. */
    struct cox_session_params params;
    const void *constants; /* of all frames; NULL = none */

    /* Room for the lists of `params`. They end with zeros. */
    struct cox_pass passes[SUITE_PASSES_MAX + 1];
    struct cox_buffer_layout buffers[COX_BUFFERS_MAX + 1];

    struct suite_memory memories[SUITE_MEMORIES_MAX];
    uint32_t memory_count;

    /* One run is this many frames. */
    uint32_t frames;

    /* The memory of each buffer of params.buffers (without scratch), in even and odd frames. */
    uint8_t use[2][COX_BUFFERS_MAX];

    /* Change the constants of one frame, which begin as a copy of `constants`. NULL = no change. */
    void (*set_constants)(const struct suite_problem *problem, uint32_t frame, void *constants);

    /* After each frame on the host, for example to move k-means' centres. NULL = nothing to do.
     * `memories` has the run's data, in the order of `memories` above. */
    void (*after_frame)(const struct suite_problem *problem, uint32_t frame, void *const *memories);
    bool reads[SUITE_MEMORIES_MAX];  /* memories that after_frame reads */
    bool writes[SUITE_MEMORIES_MAX]; /* memories that after_frame writes */

    /* The same run in plain C, on one thread. `memories` begins as a copy of the content. */
    void (*reference)(const struct suite_problem *problem, void *const *memories);

    /* Largest difference from the reference, relative to the largest value. 0 = equal bits. */
    double tolerance;

    void *own; /* the problem's own data; freed by suite_problem_free with the memories */
};

struct suite_case {
    const char *name;  /* "gemm" */
    const char *suite; /* "PolyBench" */
    const char *what;  /* one line */

    /* Fill `*problem`, which is all zeros. Returns false after a message. */
    bool (*make)(enum suite_size size, struct suite_problem *problem);
};

/* All cases, in the order of the table. The list ends with a NULL name. */
extern const struct suite_case suite_cases[];

/* Add a memory of zeros. Returns its data, which make() fills, or NULL after a message. */
void *suite_memory_add(struct suite_problem *problem, size_t bytes, bool floats, bool result);

/* Fill floats with pseudo-random values from `low` to `high`, the same on every machine. */
void suite_fill_floats(float *data, size_t count, float low, float high, uint32_t seed);

/* The next pseudo-random number. `*seed` must not be zero. */
uint32_t suite_random(uint32_t *seed);

/* Add 32-bit counters: a cox_merge_fn. */
void suite_add_counters(void *into, const void *partial, size_t bytes, void *user);

/* Set the shape in `params`, and its lists. */
void suite_set_shape(struct suite_problem *problem, uint32_t columns, uint32_t rows);

/* Set the fields of the constants, and the constants of all frames (NULL = none), of `bytes`. */
void suite_set_fields(struct suite_problem *problem, const struct cox_field *fields,
                      const void *constants, size_t bytes);

/* Fill in the constants of a frame. */
void suite_frame_constants(const struct suite_problem *problem, uint32_t frame,
                           struct cox_constants *constants);

/* Make a frame eight fused passes of one kernel, which reads a buffer `from` with one row of halo
 * and writes a buffer `to`. Describes the first SUITE_CHAIN_BUFFERS buffers. Memories 0 and 1 are
 * input and output of even frames, and of odd frames the other way round. */
enum { SUITE_CHAIN_STEPS = 8, SUITE_CHAIN_BUFFERS = 1 + SUITE_CHAIN_STEPS };
void suite_add_chain(struct suite_problem *problem, const char *source, bool absolute,
                     size_t pitch_bytes);

/* One step of such a chain in plain C. */
typedef void suite_step_fn(const struct suite_problem *problem, void *const *memories,
                           const float *from, float *to);

/* Run the chain of all frames on memories 0 and 1: for `reference`. */
void suite_run_chain(const struct suite_problem *problem, void *const *memories,
                     suite_step_fn *step);

/* Set `use`: buffer i uses memory i in all frames. */
void suite_use_in_order(struct suite_problem *problem);

void suite_problem_free(struct suite_problem *problem);

#endif
