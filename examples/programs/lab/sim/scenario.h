/* Scenarios: machines described by a few numbers, and the events that change them.
 * docs/reference/scenarios.md describes the files. scenario.c reads them, scenario_world.c makes
 * the world that simulate.c runs.
 *
 * Thread-safety: a scenario is used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SCENARIO_H
#define COX_EXAMPLES_LAB_SCENARIO_H

#include "simulate.h"

enum {
    LAB_SCENARIO_BYTES_MAX = 256 << 10,
    LAB_NAME_MAX = 48, /* bytes, with the terminating zero */
    LAB_TEXT_MAX = 200,
    LAB_CHANGES_MAX = 64,
    LAB_CONTENTIONS_MAX = 16,
    LAB_HEAVY_MAX = 8,
    LAB_SEGMENTS_MAX = 2 * LAB_HEAVY_MAX + 1,
    LAB_PICTURES_MAX = 1024,
    LAB_BARS_MAX = 16,
    LAB_BURSTS_MAX = 8,
    LAB_BURSTS_IN_RUN_MAX = 200000, /* of each kind */
    LAB_LINKS_MAX = 8,
    LAB_POWER_MAX = 8,
    LAB_HEATS_MAX = COX_DEVICES_MAX + LAB_POWER_MAX,
    LAB_TRACE_MAX = 16384, /* for all devices together */
    LAB_ROWS_MAX = 1 << 20,
    LAB_FRAMES_MAX = 20000,
    LAB_FRAMES_TIMES_DEVICES_MAX = 200000,
    LAB_FRAMES_TIMES_GRANULES_MAX = 100000000,
};

/* Log-normal times, and how often they occur. */
struct lab_scenario_tail {
    double probability;
    double median_ns, p99_ns;
};

/* How long a sleeping thread needs to wake up. */
struct lab_scenario_wake {
    double ns;
    struct lab_scenario_tail tail; /* instead of `ns` */

    /* The engine only: delays before it hands out rows of a pool, or a band of a split, while a
     * device works. */
    struct lab_scenario_tail stall, submit;

    /* Tail and stall occur only while one of these devices works; 0 = always. */
    uint32_t beside;
};

/* Devices, or the engine's thread, stop for a while. */
struct lab_scenario_burst {
    uint32_t devices; /* a bit each */
    bool engine;
    double every_ns;  /* mean time between two bursts; 0 = periodic */
    double period_ns; /* from the start of one to the next; 0 = at random times */
    struct lab_scenario_tail length;
};

struct lab_scenario_device {
    char name[LAB_NAME_MAX];
    double fixed_ns;    /* of the first band of a frame */
    double launch_ns;   /* of every further one */
    double row_ns;      /* computing a row */
    double transfer_ns; /* copying a row */
    bool overlap;       /* it copies and computes at the same time */
    double submit_ns;   /* what enqueueing a band costs the engine's thread */

    /* What it does of a launch while it works at the band before: of the fixed part, of a row. */
    double ahead_ns, ahead_row_ns;

    double jitter; /* sigma of a log-normal factor with the mean 1 */
    double jitter_tail_probability;
    double jitter_tail_times; /* in the tail sigma is this many times as large */
    double level_lag;         /* correlation of the level's logarithm in neighbouring frames */
    double level_change;      /* its standard deviation from frame to frame */
    double jump_frames;       /* mean number of frames between two jumps; 0 = none */
    double jump_sigma;
    uint32_t trace_count;                 /* 0 = none */
    uint32_t trace_first;                 /* in the scenario's traces */
    uint32_t late_count, late_first;      /* the same of `trace_late_us`, in nanoseconds */
    struct lab_scenario_tail launch_tail; /* added to a launch's fixed part */
    uint32_t link;                        /* 1 + index; 0 = none */
    double outlier_probability;
    double outlier_factor;

    double watts;
    double idle_watts;
};

/* Devices whose speed follows their mean load: one that gets hot, several that share the machine's
 * power, or one whose clock rises with work (a factor below 1). */
struct lab_scenario_heat {
    uint32_t devices; /* a bit each */
    double factor;    /* how much slower they are when hot */
    double ns;        /* time constant */

    /* They are hot from one heat until they fall to the other, and cold otherwise. `hot` 0: they get
     * slower in proportion to their heat. */
    double hot, cool;
};

/* Lasts from frame `from` up to but not including `to`. */
struct lab_scenario_change {
    enum { LAB_SLOWER, LAB_DRIFT, LAB_GONE, LAB_ROWS } kind;
    uint32_t device;
    uint64_t from, to;
    double factor; /* LAB_SLOWER, LAB_DRIFT: 1 - factor .. 1 + factor */
    double period; /* LAB_DRIFT: frames */
    double phase;  /* LAB_DRIFT: of the period */
    uint32_t rows; /* LAB_ROWS */
};

/* While two or more of `devices` work, those in `slows` are slower by `factor`. Lasts as a
 * change. */
struct lab_scenario_contention {
    uint32_t devices, slows; /* a bit each */
    uint64_t from, to;
    double factor;
};

/* Rows that cost more. Positions are shares of the frame. */
struct lab_scenario_heavy {
    double first, rows;
    double factor;
    double period; /* frames from the top to the bottom and back; 0 = the rows do not move */
};

struct lab_scenario_pass {
    char name[LAB_NAME_MAX]; /* "" = none */
    uint32_t rows, row_alignment;
    double before_ns;    /* pause between the pass before and this one */
    double moved_row_ns; /* extra time of a row that another device did in the pass before */
    struct lab_scenario_device devices[COX_DEVICES_MAX]; /* with the costs of this pass */
};

/* Figures of a policy in a scenario: key in JSON, heading of the table's column. Smaller is always
 * better. */
#define LAB_FIGURE_MAP(X)                                   \
    X(LAB_FIGURE_MEAN, "mean", "mean")                      \
    X(LAB_FIGURE_P99, "p99", "p99")                         \
    X(LAB_FIGURE_P995, "p99_5", "p99.5")                    \
    X(LAB_FIGURE_P999, "p99_9", "p99.9")                    \
    X(LAB_FIGURE_STATIC, "best_static", "/static")          \
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

extern const char *const lab_figure_keys[LAB_FIGURE_COUNT];

/* Limits for a policy's figures. */
struct lab_scenario_bars {
    char policy[LAB_NAME_MAX];
    double most[LAB_FIGURE_COUNT]; /* negative = no limit */
    char p99_of[LAB_NAME_MAX];     /* a policy whose p99 is a limit; "" = none */
};

struct lab_scenario {
    char name[LAB_NAME_MAX];
    char text[LAB_TEXT_MAX];
    uint32_t rows;
    uint32_t row_alignment;
    uint64_t frames;
    uint32_t device_count;
    struct lab_scenario_device devices[COX_DEVICES_MAX];
    uint32_t pass_count; /* 0 = one pass with the rows and devices of the scenario */
    struct lab_scenario_pass passes[COX_PASSES_MAX];
    uint32_t change_count;
    struct lab_scenario_change changes[LAB_CHANGES_MAX];
    uint32_t contention_count;
    struct lab_scenario_contention contentions[LAB_CONTENTIONS_MAX];
    uint32_t heat_count;
    struct lab_scenario_heat heats[LAB_HEATS_MAX];
    uint32_t heavy_count;
    struct lab_scenario_heavy heavy[LAB_HEAVY_MAX];
    uint64_t scene_frames; /* 0 = no scenes */
    uint32_t scene_segments;
    double scene_share;
    double scene_factor;
    /* Recorded costs of the frame's segments, picture after picture, in `traces`; 0 = none. */
    uint32_t content_segments, content_pictures, content_first;
    uint64_t content_frames; /* how long a picture stays */

    enum cox_objective objective;
    uint64_t deadline_ns; /* 0 = none */
    double base_watts;
    struct lab_scenario_wake engine;
    double engine_busy_ns; /* of each action of its thread */
    bool host_clock;       /* measurements end when the engine notices the band's end */

    struct lab_scenario_wake application; /* from a delivery to the next frame */
    double hand_over_idle_ns;             /* the most while a device is idle; 0 = no limit */
    double submit_period_ns; /* frames arrive at this pace; 0 = as soon as there is room */
    uint64_t pause_frames;   /* period of its waits for all deliveries, in frames; 0 = never */

    uint32_t burst_count;
    struct lab_scenario_burst bursts[LAB_BURSTS_MAX];

    /* Factors of the devices' times, frame by frame, for all devices; NULL = none. They begin at a
     * random place, or with frame 0 if `traces_begin` is set, which no file can do. */
    double *traces;
    uint32_t traced; /* numbers in `traces` */
    bool traces_begin;

    uint32_t bars_count;
    struct lab_scenario_bars bars[LAB_BARS_MAX];
};

/* Read a scenario from text. `file` is its name in messages, and, without folder and ".json", the
 * name of a scenario that gives none. NULL with the reason, one line. Free it with
 * lab_scenario_free. */
struct lab_scenario *lab_scenario_parse(const char *text, size_t bytes, const char *file, char *why,
                                        size_t why_bytes);

/* The same from a regular file. A name without '/' and ".json" is that of a built-in scenario. */
struct lab_scenario *lab_scenario_load(const char *name, char *why, size_t why_bytes);

/* Whether this is the name of a built-in scenario, or of a file, even one that does not exist. */
bool lab_scenario_is_name(const char *name);

void lab_scenario_free(struct lab_scenario **scenario);

/* Write the name of built-in scenario `index`, in alphabetical order, to `name` and return it. NULL
 * past the end. */
const char *lab_scenario_name(uint32_t index, char *name, size_t bytes);

/* The world of a scenario, for one run at a time. NULL if out of memory. */
struct lab_scenario_world;
struct lab_scenario_world *lab_scenario_world_create(const struct lab_scenario *scenario,
                                                     struct lab_world *world);
void lab_scenario_world_destroy(struct lab_scenario_world **world);

/* Joules of a frame; negative if the scenario has no watts. `scenario` is a struct lab_scenario. */
double lab_scenario_joules(const void *scenario, const double *busy_ns, double wall_ns);

/* Whether speeds, contention or size change abruptly at the start of the frame. */
bool lab_scenario_is_step(const struct lab_scenario *scenario, uint64_t frame);

/* Whether the device answers. */
bool lab_scenario_is_alive(const struct lab_scenario *scenario, uint32_t device, uint64_t frame);

#endif
