/* A film over many machines, as a few numbers; how long that takes, by a formula and by simulation.
 * docs/reference/clusters.md describes the files.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_CLUSTER_CLUSTER_H
#define COX_EXAMPLES_LAB_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLUSTER_BYTES_MAX = 64 << 10, /* of a file */
    CLUSTER_KINDS_MAX = 64,
    CLUSTER_MACHINES_MAX = 4096,
    CLUSTER_FRAMES_MAX = 10000000,
    CLUSTER_NAME_MAX = 48,
    CLUSTER_TEXT_MAX = 200
};

/* The steps that machines share. */
enum cluster_step { CLUSTER_ANALYSE = 0, CLUSTER_MAP, CLUSTER_STEPS };

struct cluster_kind {
    char name[CLUSTER_NAME_MAX];
    uint64_t count;            /* of each round of machines */
    double begin_s;            /* what a range costs beside its frames */
    double fps[CLUSTER_STEPS]; /* frames per second; analyse: 0 = nothing is analysed */
};

struct cluster {
    char name[CLUSTER_NAME_MAX], text[CLUSTER_TEXT_MAX];
    uint64_t frames;
    double read_bytes, written_bytes; /* of a frame */
    uint32_t kind_count;
    struct cluster_kind kinds[CLUSTER_KINDS_MAX];
    double spread; /* a range's time: standard deviation over mean */
    double slow_part,
        slow_times; /* so many machines are so many times slower, for the whole film */
    double deaths_per_day, again_s;  /* of each machine; until what it ended goes on */
    double storage_bytes_per_s;      /* for all machines together; 0 = no limit */
    double machine_bytes_per_s;      /* for each; 0 = no limit */
    double begin_s, begin_machine_s; /* before the first step: once, and for each machine */
    double steer_fps, join_fps;      /* of the serial steps; 0 = they take no time */
};

/* How ranges of frames get to machines. */
enum cluster_engine {
    CLUSTER_MPI,   /* dealt out by common/deal.h; a death ends all, which begin again */
    CLUSTER_QUEUE, /* equal pieces, each a job of its own, in order; a death ends one piece */
    CLUSTER_ENGINES
};

struct cluster_way {
    enum cluster_engine engine;
    uint64_t machines;
    uint64_t pieces; /* of a queue */
};

/* In seconds. */
struct cluster_times {
    double begin, shared[CLUSTER_STEPS], steer, join;
    double total;
    double deaths; /* how many there were */
};

const char *cluster_engine_name(enum cluster_engine engine);
const char *cluster_step_name(enum cluster_step step);

/* From a file. False with the reason, which begins with the path. */
bool cluster_read(struct cluster *out, const char *path, char *why, size_t why_bytes);

/* As a file's text, which the caller frees; NULL = out of memory. */
char *cluster_write(const struct cluster *cluster);

/* The kind of machine number `machine`, from 0: the kinds in order, each `count` times, and again. */
const struct cluster_kind *cluster_kind_of(const struct cluster *cluster, uint64_t machine);

/* Bytes of a frame that a step moves to or from storage. */
double cluster_step_bytes(const struct cluster *cluster, enum cluster_step step);

/* Deaths a second of so many machines. */
double cluster_death_rate(const struct cluster *cluster, double machines);

/* The least there can be: all machines at work all the time, as fast as they are, nothing else. */
double cluster_ideal_s(const struct cluster *cluster, uint64_t machines);

/* --- model.c ------------------------------------------------------------------------------------------------------ */

/* What the time beyond the ideal is spent on, in seconds. */
struct cluster_losses {
    double serial;  /* begin, steer, join */
    double storage; /* waiting for it, and for the link to it */
    double ranges;  /* beginning ranges */
    double end;     /* machines that wait for the last one of a step */
    double faults;  /* slow machines and deaths */
};

/* By the formula of docs/reference/clusters.md. `losses` may be NULL. */
void cluster_model(const struct cluster *cluster, const struct cluster_way *way,
                   struct cluster_times *out, struct cluster_losses *losses);

/* --- simulate.c --------------------------------------------------------------------------------------------------- */

/* One run. The same seed gives the same run everywhere. False: out of memory, or machines die faster than they work. */
bool cluster_simulate(const struct cluster *cluster, const struct cluster_way *way, uint64_t seed,
                      struct cluster_times *out);

#endif
