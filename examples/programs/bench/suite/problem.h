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

enum { SUITE_MEMORIES_MAX = 12 };

/* How large a problem is. */
enum suite_size {
    SUITE_TINY,  /* for tests: milliseconds on one core */
    SUITE_SMALL, /* for processors: 0.1 to 1 s on two cores */
    SUITE_LARGE, /* for GPUs: at least 5 ms on one GPU, except the copies */
};

/* Memory that frames use. */
struct suite_memory {
    size_t bytes;
    bool result;     /* compared after a run */
    bool floats;     /* float elements, else bytes */
    void *data;      /* filled by make(); the initial content, which runs copy */
};

struct suite_problem {
    /* Shape, passes, buffers, fields. Every pass is absolute: row r of a buffer is frame row r. */
    struct cox_session_params params;
    const void *constants; /* of all frames; NULL = none */

    struct suite_memory memories[SUITE_MEMORIES_MAX];
    uint32_t memory_count;

    /* One run is this many frames. */
    uint32_t frames;

    /* The memory of each buffer of params.buffers (without scratch), in even and odd frames. */
    uint8_t use[2][COX_BUFFERS_MAX];

    /* After each frame on the host, for example to move k-means' centres. NULL = nothing to do.
     * `memories` has the run's data. Set changed[i] if memory i was written. */
    void (*after_frame)(const struct suite_problem *problem, uint32_t frame, void *const *memories,
                        bool *changed);
    bool reads[SUITE_MEMORIES_MAX]; /* memories that after_frame reads */

    /* The same run in plain C, on one thread. */
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

void suite_problem_free(struct suite_problem *problem);

#endif
