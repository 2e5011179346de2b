/* A film on many machines, described by a few numbers: `struct cluster`. The page
 * docs/reference/clusters.md describes its files.
 *
 *   json_read.c, json_write.c   read and write these files
 *   model.c                     computes the film's time by a formula
 *   simulated_film.c            simulates the film
 *   times.c                     fits a cluster to the times of real runs
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_CLUSTER_DESCRIPTION_H
#define COX_EXAMPLES_LAB_CLUSTER_DESCRIPTION_H

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
    uint64_t count;            /* machines in each round */
    double begin_s;            /* cost of a range without its frames */
    double fps[CLUSTER_STEPS]; /* frames per second; analyse: 0 = the film is not analysed */
};

struct cluster {
    char name[CLUSTER_NAME_MAX], text[CLUSTER_TEXT_MAX];
    uint64_t frames;
    double read_bytes, written_bytes; /* of a frame */
    uint32_t kind_count;
    struct cluster_kind kinds[CLUSTER_KINDS_MAX];
    double spread;     /* of a range's time: standard deviation over mean */
    double slow_part;  /* the part of the machines that is slow for the whole film */
    double slow_times; /* how many times slower */

    double deaths_per_day;           /* of each machine */
    double again_s;                  /* from a death until the work goes on */
    double storage_bytes_per_s;      /* for all machines together; 0 = no limit */
    double machine_bytes_per_s;      /* for each machine; 0 = no limit */
    double begin_s, begin_machine_s; /* before the first step: once, and for each machine */
    double steer_fps, join_fps;      /* of the serial steps; 0 = they take no time */
};

/* How machines get ranges of frames. */
enum cluster_engine {
    CLUSTER_MPI,   /* from common/range_scheduler.h; after a death all begin again */
    CLUSTER_QUEUE, /* equal pieces, in order, each a job; a death ends one piece */
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
    double deaths; /* their number */
};

const char *cluster_engine_name(enum cluster_engine engine);
const char *cluster_step_name(enum cluster_step step);

/* Read a file. False with the reason, which begins with the path. */
bool cluster_read(struct cluster *out, const char *path, char *why, size_t why_bytes);

/* The text of a file, which the caller frees. NULL if out of memory. */
char *cluster_write(const struct cluster *cluster);

/* The kind of machine number `machine`, from 0. The kinds come in order, each `count` times, and
 * then again. */
const struct cluster_kind *cluster_kind_of(const struct cluster *cluster, uint64_t machine);

/* Bytes per frame that a step moves to or from storage. */
double cluster_step_bytes(const struct cluster *cluster, enum cluster_step step);

/* Deaths per second of this many machines. */
double cluster_death_rate(const struct cluster *cluster, double machines);

/* The least time possible: all machines work all the time, and nothing else happens. */
double cluster_ideal_s(const struct cluster *cluster, uint64_t machines);

/* The times of the serial steps; the others are 0. */
struct cluster_times cluster_serial_times(const struct cluster *cluster, uint64_t machines);

/* --- model.c --- */

/* Where the time beyond the ideal goes, in seconds. */
struct cluster_losses {
    double serial;  /* begin, steer, join */
    double storage; /* waiting for storage and the link to it */
    double ranges;  /* beginning ranges */
    double end;     /* waiting for the last machine of a step */
    double faults;  /* slow machines and deaths */
};

/* By the formula of docs/reference/clusters.md. `losses` may be NULL. */
void cluster_model(const struct cluster *cluster, const struct cluster_way *way,
                   struct cluster_times *out, struct cluster_losses *losses);

/* --- simulated_film.c --- */

/* Simulate one run. The same seed gives the same run everywhere. False if out of memory, or if
 * machines die faster than they work. */
bool cluster_simulate(const struct cluster *cluster, const struct cluster_way *way, uint64_t seed,
                      struct cluster_times *out);

#endif
