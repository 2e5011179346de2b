/* Scenarios: machines that are a few numbers, and what happens to them. docs/reference/scenarios.md describes the
 * files.
 *
 * Thread-safety: a scenario is used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SCENARIO_H
#define COX_EXAMPLES_LAB_SCENARIO_H

#include "simulate.h"

enum {
    LAB_SCENARIO_BYTES_MAX = 256 << 10,
    LAB_NAME_MAX = 48, /* bytes with the terminating zero */
    LAB_TEXT_MAX = 200,
    LAB_CHANGES_MAX = 64,
    LAB_CONTENTIONS_MAX = 16,
    LAB_HEAVY_MAX = 8,
    LAB_SEGMENTS_MAX = 2 * LAB_HEAVY_MAX + 1,
    LAB_BARS_MAX = 16,
    LAB_ROWS_MAX = 1 << 20,
    LAB_FRAMES_MAX = 20000,
    LAB_FRAMES_TIMES_DEVICES_MAX = 200000,
    LAB_FRAMES_TIMES_GRANULES_MAX = 100000000,
};

struct lab_scenario_device {
    char name[LAB_NAME_MAX];
    double fixed_ns;  /* of the first band of a frame */
    double launch_ns; /* of every further one */
    double row_ns;
    double transfer_ns; /* per row */
    bool overlap;       /* of copying and computing: the longer of the two counts */
    double jitter;      /* sigma of the log-normal factor, whose mean is 1 */
    double outlier_probability;
    double outlier_factor;
    double thermal_factor; /* hot, it is slower by this; 1 = never */
    double thermal_ns;     /* time constant */
    double watts;
    double idle_watts;
};

/* From frame `from` up to but not including `to`. */
struct lab_scenario_change {
    enum { LAB_SLOWER, LAB_DRIFT, LAB_GONE, LAB_ROWS } kind;
    uint32_t device;
    uint64_t from, to;
    double factor; /* LAB_SLOWER, LAB_DRIFT: 1 - factor .. 1 + factor */
    double period; /* LAB_DRIFT: frames */
    double phase;  /* LAB_DRIFT: of the period */
    uint32_t rows; /* LAB_ROWS */
};

/* While two or more of `devices` work, each of them is slower by `factor`. */
struct lab_scenario_contention {
    uint32_t devices; /* a bit each */
    uint64_t from, to;
    double factor;
};

/* Rows that cost more. Shares of the frame. */
struct lab_scenario_heavy {
    double first, rows;
    double factor;
    double period; /* frames from the top to the bottom and back; 0 = they stay */
};

/* Figures of a policy in a scenario: key in JSON, heading of the table's column. All are better when smaller. */
#define LAB_FIGURE_MAP(X)                                   \
    X(LAB_FIGURE_MEAN, "mean", "mean")                      \
    X(LAB_FIGURE_P99, "p99", "p99")                         \
    X(LAB_FIGURE_P995, "p99_5", "p99.5")                    \
    X(LAB_FIGURE_SINGLE, "best_single", "/single")          \
    X(LAB_FIGURE_CHANGES, "split_changes", "moves")         \
    X(LAB_FIGURE_RECONVERGED, "reconverged", "reconv")      \
    X(LAB_FIGURE_AFTER_DEATH, "after_death", "after death") \
    X(LAB_FIGURE_BACK, "back_in_use", "back")               \
    X(LAB_FIGURE_ENERGY, "energy", "energy")                \
    X(LAB_FIGURE_LATE, "over_deadline", "late")             \
    X(LAB_FIGURE_BEATEN, "beaten", "beaten")

enum lab_figure {
#define LAB_FIGURE_ENUM(name, key, heading) name,
    LAB_FIGURE_MAP(LAB_FIGURE_ENUM)
#undef LAB_FIGURE_ENUM
        LAB_FIGURE_COUNT
};

/* What a policy must reach. */
struct lab_scenario_bars {
    char policy[LAB_NAME_MAX];
    double most[LAB_FIGURE_COUNT]; /* negative = anything */
    char p99_of[LAB_NAME_MAX];     /* its p99 must not be above that of this policy; "" = of none */
};

struct lab_scenario {
    char name[LAB_NAME_MAX];
    char text[LAB_TEXT_MAX];
    uint32_t rows;
    uint32_t granule;
    uint64_t frames;
    uint32_t device_count;
    struct lab_scenario_device devices[COX_DEVICES_MAX];
    uint32_t change_count;
    struct lab_scenario_change changes[LAB_CHANGES_MAX];
    uint32_t contention_count;
    struct lab_scenario_contention contentions[LAB_CONTENTIONS_MAX];
    uint32_t heavy_count;
    struct lab_scenario_heavy heavy[LAB_HEAVY_MAX];
    uint64_t scene_frames; /* 0 = no scenes */
    uint32_t scene_segments;
    double scene_share;
    double scene_factor;
    enum cox_objective objective;
    uint64_t deadline_ns; /* 0 = none */
    double base_watts;
    uint32_t bars_count;
    struct lab_scenario_bars bars[LAB_BARS_MAX];
};

/* Read a scenario from text; `file` names it in messages, and, without folder and ".json", the scenario if it has no
 * name. NULL if it is none, with one line that says where and why. lab_scenario_free it. */
struct lab_scenario *lab_scenario_parse(const char *text, size_t bytes, const char *file, char *why, size_t why_bytes);

/* The same from a regular file; a name without '/' and ".json" is that of a built-in scenario. */
struct lab_scenario *lab_scenario_load(const char *name, char *why, size_t why_bytes);

/* Whether it is a file's name, be it there or not, or that of a built-in scenario. */
bool lab_scenario_is_name(const char *name);

void lab_scenario_free(struct lab_scenario **scenario);

/* The built-in scenarios' names, in the order of the alphabet; NULL past the end. Valid until the next call. */
const char *lab_scenario_name(uint32_t index, char *name, size_t bytes);

/* The world in which a scenario takes place. One run at a time. */
struct lab_scenario_world;
struct lab_scenario_world *lab_scenario_world_create(const struct lab_scenario *scenario, struct lab_world *world);
void lab_scenario_world_destroy(struct lab_scenario_world **world);

/* Joules of a frame; negative if the scenario knows nothing of energy. `scenario` is a struct lab_scenario. */
double lab_scenario_joules(const void *scenario, const double *busy_ns, double wall_ns);

/* Whether something changes at once for the worse or the better at the start of the frame: speeds, contention, size. */
bool lab_scenario_is_step(const struct lab_scenario *scenario, uint64_t frame);

/* Whether the device answers. */
bool lab_scenario_is_alive(const struct lab_scenario *scenario, uint32_t device, uint64_t frame);

#endif
