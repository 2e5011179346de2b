/* A run on the devices of this machine: policies and what they are held against, in turns, with disturbances, recorded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_H
#define COX_EXAMPLES_LAB_RUN_H

#include "bootstrap.h"
#include "disturb.h"
#include "kernels.h"
#include "lab/rows.h"
#include "sweep.h"

#include <stdio.h>

enum {
    LAB_RUN_POLICIES_MAX = 16,
    LAB_RUN_FRAMES_MAX = 1000000, /* of a policy, over all repeats */
    LAB_RUN_SIZES_MAX = 16,
    LAB_RUN_RATIOS_MAX = 16,
    LAB_RUN_REPEATS_MAX = 1000,
    LAB_RUN_BLOCK =
        8, /* frames of a policy in a row, times those in flight; with several, of a reference too */
    LAB_RUN_TURN =
        4 /* of a reference with one in flight; the first one finds the caches full of something else */
};

struct lab_size {
    uint32_t columns, rows;
};

/* Whether a core is reserved; LAB_RESERVE_BOTH: a side with, and a side without. */
enum lab_run_reserve { LAB_RESERVE_AUTO, LAB_RESERVE_OFF, LAB_RESERVE_ON, LAB_RESERVE_BOTH };

/* A policy as it takes part: "adaptive", or "adaptive:no-pool", which may not hand out rows while a frame runs. */
struct lab_run_policy {
    char name[40];
    struct cox_policy policy; /* its name is `name` */
    bool baseline; /* no policy of ours: another runtime, which takes its turns beside them */
};

struct lab_run_options {
    const char *devices; /* NULL = every device */
    uint32_t policy_count;
    struct lab_run_policy policies[LAB_RUN_POLICIES_MAX];
    bool baseline; /* the last policy is one */
    enum lab_kernel_kind kernel;
    const char *kernel_file, *bindings_file;  /* LAB_KERNEL_USER; bindings NULL = beside it */
    uint32_t size_count;                      /* one run of each size and each ratio */
    struct lab_size sizes[LAB_RUN_SIZES_MAX]; /* zeros = the kernel's default */
    uint32_t ratio_count;
    uint32_t ratios[LAB_RUN_RATIOS_MAX];
    uint64_t frames; /* of each policy, in each repeat */
    uint32_t repeats;
    enum lab_run_reserve reserve;
    uint32_t in_flight;
    uint32_t rounds; /* of the references in each phase, at least */
    uint32_t curve;  /* steps of the first device's share from 0 to 1, swept too; 0 = none */
    double
        soak_s; /* at first each device alone and then all of them, without a pause, for so long each; 0 = not */
    bool anonymous; /* the machine's name is not recorded */
    enum cox_objective objective;
    uint64_t deadline_ns;
    uint32_t disturbance_count;
    struct lab_disturbance disturbances[LAB_DISTURBANCES_MAX];
    double fallback_us; /* artificial delay of device 0 where a disturbance cannot be; 0 = refuse */
    double quiet_s;
    const char *output;
    const char *powercap;  /* NULL = the system's */
    uint64_t telemetry_ns; /* between two readings of the machine; 0 = none */
    const char *sysfs;     /* where that is read; NULL = /sys */
    const char *command;   /* to be recorded */
    bool check;
    enum lab_format format;
};

/* Whether this program was built with StarPU. */
extern const bool lab_run_has_starpu;

/* "auto", "off", "on", "both". */
const char *lab_run_reserve_name(enum lab_run_reserve reserve);

/* False after saying why on standard error. */
bool lab_run_parse(int argc, char **argv, struct lab_run_options *options, int *exit_status);

/* Returns an exit status. */
int lab_run(const struct lab_run_options *options);

/* --- figures (figures.c) ------------------------------------------------------------------------------------ */

/* What is kept of a policy's frame. */
struct lab_run_frame {
    double ns;     /* what a stream of such frames pays for it */
    double joules; /* negative = unknown */
    double latency_ns;
    uint64_t split; /* a number for the bands the policy began with */
    bool failed;
    bool late;      /* it missed its deadline */
    bool disturbed; /* other programs ran meanwhile: in no figure */
};

/* What a phase is held against. */
struct lab_run_reference {
    uint32_t device_count;
    struct lab_spread solo[COX_DEVICES_MAX];
    uint32_t best_solo; /* by median */
    struct lab_swept oracle;
    uint32_t oracle_rows[COX_DEVICES_MAX];
};

/* From a sweep that is over. False: it has no samples. */
bool lab_run_reference_of(const struct lab_sweep *sweep, struct lab_run_reference *out);

enum { LAB_RUN_NEVER = UINT32_MAX };

/* Frames first .. end - 1 of each repeat; a repeat's begin `stride` after those of the one before. */
struct lab_run_range {
    uint64_t first, end;
    uint32_t repeats;
    uint64_t stride;
};

struct lab_run_figures {
    uint64_t frames; /* in the figures */
    uint64_t failed, disturbed;
    struct lab_spread spread;
    double over_oracle, over_single;           /* medians */
    double mean_over_oracle, mean_over_single; /* means */
    double efficiency;         /* of medians: (T_best / T) / (T_best * sum of 1 / T_d) */
    double changes;            /* of the split against the frame before, per 100 frames */
    uint32_t settled;          /* frames until it stayed within 5 % of the oracle; LAB_RUN_NEVER */
    double joules;             /* of a frame, mean; negative = unknown */
    struct lab_spread latency; /* from submission to delivery */
    double late;               /* share of the frames that missed their deadlines */
};

/* Of frames that are those of one phase. `settled` is the median of the repeats. False: out of memory. */
bool lab_run_figures_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                        const struct lab_run_reference *reference, struct lab_run_figures *out);

/* Times of the frames that count, in nanoseconds, in blocks of `block` that were run in a row. */
void lab_run_blocks_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                       uint32_t block, struct lab_blocks *out);

/* Of a device alone or a swept split: the frames of a turn are a block. */
void lab_run_blocks_of_turns(const struct lab_candidate *candidate, uint32_t turn,
                             struct lab_blocks *out);

/* Frames after which frame times stay near the oracle's, see lab/settle.h. */
uint32_t lab_run_settled(const struct lab_run_frame *frames, uint64_t first, uint64_t end,
                         const struct lab_spread *oracle);

/* The bars of one policy over all phases; `worst` names the first that is missed, for people. */
struct lab_run_verdict {
    bool met;
    double over_oracle; /* the greatest of the phases */
    double over_single; /* of the whole run's time, against the best single device of each phase */
    uint32_t settled;   /* the greatest of the phases after the first */
};
struct lab_run_verdict lab_run_judge(const struct lab_run_figures *figures,
                                     const struct lab_run_reference *references,
                                     const struct lab_phase *phases, uint32_t phase_count);

extern const double lab_run_bar_oracle, lab_run_bar_single;
extern const uint32_t lab_run_bar_settled;

/* --- tables (table.c) --------------------------------------------------------------------------------------- */

/* What is said of one policy in one phase beside its figures. */
struct lab_run_certainty {
    struct lab_intervals of; /* ratio: T/single, of medians */
    double over_off;         /* with a reserved core over without, medians; NaN = not compared */
    struct lab_interval over_off_interval;
};

struct lab_run_table {
    const struct lab_run_options *options;
    int64_t run; /* in the database */
    const char *kernel, *reserve;
    struct lab_size size;
    uint32_t ratio; /* 0 = of another kernel than `work` */
    uint32_t device_count, phase_count;
    const struct cox_device_info *devices;
    const struct lab_phase *phases;
    const struct lab_run_reference *references; /* of each phase */
    const struct lab_run_figures *figures;      /* [policy * phase_count + phase], as the next */
    const struct lab_run_certainty *certainties;
    double foreign_load; /* negative = unknown */
    /* Blocks of each policy whose outputs were compared, and so many were wrong. */
    uint32_t compared[LAB_RUN_POLICIES_MAX], different[LAB_RUN_POLICIES_MAX];
};
void lab_run_print(FILE *to, const struct lab_run_table *table);

/* The same as rows. */
void lab_run_rows(struct lab_rows *rows, const struct lab_run_table *table);

#endif
