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
    LAB_BURSTS_MAX = 8,
    LAB_BURSTS_IN_RUN_MAX = 200000, /* of each; no more come after these */
    LAB_LINKS_MAX = 8,
    LAB_TRACE_MAX = 8192, /* of all devices together */
    LAB_ROWS_MAX = 1 << 20,
    LAB_FRAMES_MAX = 20000,
    LAB_FRAMES_TIMES_DEVICES_MAX = 200000,
    LAB_FRAMES_TIMES_GRANULES_MAX = 100000000,
};

/* Log-normal times, and how often they come. */
struct lab_scenario_tail {
    double probability;
    double median_ns, p99_ns;
};

/* How late a thread that sleeps comes to what it waits for. */
struct lab_scenario_wake {
    double ns;
    struct lab_scenario_tail tail; /* instead of it */
    /* Of the engine: held up before it hands out rows of a pool, or gives a device a band of a split, while a device
     * works. */
    struct lab_scenario_tail stall, submit;
    uint32_t
        beside; /* tail and stall are there while one of these devices works; 0 = whichever works, or none */
};

/* Devices, and the engine's thread, stop for a while. */
struct lab_scenario_burst {
    uint32_t devices; /* a bit each */
    bool engine;
    double every_ns; /* mean time between two */
    struct lab_scenario_tail length;
};

struct lab_scenario_device {
    char name[LAB_NAME_MAX];
    double fixed_ns;  /* of the first band of a frame */
    double launch_ns; /* of every further one */
    double row_ns;
    double transfer_ns;             /* per row */
    bool overlap;                   /* of copying and computing: the longer of the two counts */
    double jitter;                  /* sigma of the log-normal factor, whose mean is 1 */
    double jitter_tail_probability; /* so many launches have a sigma so many times as large */
    double jitter_tail_times;
    double level_lag;    /* correlation of the level's logarithm in neighbouring frames */
    double level_change; /* its standard deviation from frame to frame */
    double jump_frames;  /* mean number between two jumps of the level; 0 = none */
    double jump_sigma;
    uint32_t trace_count; /* 0 = none */
    /* In the scenario's traces: factors of what the device takes, frame by frame, from one that chance chooses on. */
    uint32_t trace_first;
    struct lab_scenario_tail launch_tail; /* added to a launch's fixed part */
    uint32_t link;                        /* 1 + index; 0 = it shares none */
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

struct lab_scenario_pass {
    char name[LAB_NAME_MAX]; /* "" = none */
    uint32_t rows, granule;
    double before_ns;    /* from the end of the pass before to its beginning */
    double moved_row_ns; /* more for each row that another device did in the pass before */
    struct lab_scenario_device
        devices[COX_DEVICES_MAX]; /* with other costs, where the pass has them */
};

/* Figures of a policy in a scenario: key in JSON, heading of the table's column. All are better when smaller. */
#define LAB_FIGURE_MAP(X)                                   \
    X(LAB_FIGURE_MEAN, "mean", "mean")                      \
    X(LAB_FIGURE_P99, "p99", "p99")                         \
    X(LAB_FIGURE_P995, "p99_5", "p99.5")                    \
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
    uint32_t pass_count; /* 0 = one, as the scenario and its devices say */
    struct lab_scenario_pass passes[COX_PASSES_MAX];
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
    struct lab_scenario_wake engine;
    double
        hand_over_idle_ns; /* the application: at most so long after a device has nothing to do; 0 = as it is */
    uint64_t
        pause_frames; /* before every so many the application waits until all are delivered; 0 = it does not */
    double engine_busy_ns;                /* that each deed of its thread takes */
    struct lab_scenario_wake application; /* from a delivery to the next frame */
    uint32_t burst_count;
    uint32_t traced; /* numbers in `traces` */
    struct lab_scenario_burst bursts[LAB_BURSTS_MAX];
    double *traces; /* of all devices; NULL = none */
    uint32_t bars_count;
    bool host_clock;   /* a band ends when the engine's thread notices, as far as measurements go */
    bool traces_begin; /* with frame 0; no file can say that */
    struct lab_scenario_bars bars[LAB_BARS_MAX];
};

/* Read a scenario from text; `file` names it in messages, and, without folder and ".json", the scenario if it has no
 * name. NULL if it is none, with one line that says where and why. lab_scenario_free it. */
struct lab_scenario *lab_scenario_parse(const char *text, size_t bytes, const char *file, char *why,
                                        size_t why_bytes);

/* The same from a regular file; a name without '/' and ".json" is that of a built-in scenario. */
struct lab_scenario *lab_scenario_load(const char *name, char *why, size_t why_bytes);

/* Whether it is a file's name, be it there or not, or that of a built-in scenario. */
bool lab_scenario_is_name(const char *name);

void lab_scenario_free(struct lab_scenario **scenario);

/* The built-in scenarios' names, in the order of the alphabet; NULL past the end. Valid until the next call. */
const char *lab_scenario_name(uint32_t index, char *name, size_t bytes);

/* The world in which a scenario takes place. One run at a time. */
struct lab_scenario_world;
struct lab_scenario_world *lab_scenario_world_create(const struct lab_scenario *scenario,
                                                     struct lab_world *world);
void lab_scenario_world_destroy(struct lab_scenario_world **world);

/* Joules of a frame; negative if the scenario knows nothing of energy. `scenario` is a struct lab_scenario. */
double lab_scenario_joules(const void *scenario, const double *busy_ns, double wall_ns);

/* Whether something changes at once for the worse or the better at the start of the frame: speeds, contention, size. */
bool lab_scenario_is_step(const struct lab_scenario *scenario, uint64_t frame);

/* Whether the device answers. */
bool lab_scenario_is_alive(const struct lab_scenario *scenario, uint32_t device, uint64_t frame);

#endif
