/* A run on the devices of this machine: policies and what they are held against, in turns, with disturbances, recorded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_H
#define COX_EXAMPLES_LAB_RUN_H

#include "disturb.h"
#include "kernels.h"
#include "sweep.h"

#include <stdio.h>

enum { LAB_RUN_POLICIES_MAX = 16, LAB_RUN_FRAMES_MAX = 1000000 };

/* A policy as it takes part: "adaptive", or "adaptive:no-pool", which may not hand out rows while a frame runs. */
struct lab_run_policy {
    char name[40];
    struct cox_policy policy; /* its name is `name` */
};

struct lab_run_options {
    const char *devices; /* NULL = every device */
    uint32_t policy_count;
    struct lab_run_policy policies[LAB_RUN_POLICIES_MAX];
    enum lab_kernel_kind kernel;
    uint32_t columns, rows; /* 0 = the kernel's default */
    uint32_t ratio;
    uint64_t frames;
    uint32_t in_flight;
    uint32_t rounds; /* of the references in each phase, at least */
    enum cox_objective objective;
    uint64_t deadline_ns;
    uint32_t disturbance_count;
    struct lab_disturbance disturbances[LAB_DISTURBANCES_MAX];
    double fallback_us; /* artificial delay of device 0 where a disturbance cannot be; 0 = refuse */
    double quiet_s;
    const char *output;
    const char *powercap; /* NULL = the system's */
    const char *command;  /* to be recorded */
    bool check;
};

/* False after saying why on standard error. */
bool lab_run_parse(int argc, char **argv, struct lab_run_options *options, int *exit_status);

/* Returns an exit status. */
int lab_run(const struct lab_run_options *options);

/* --- figures (figures.c) ------------------------------------------------------------------------------------ */

/* What is kept of a policy's frame. */
struct lab_run_frame {
    double ns;      /* what a stream of such frames pays for it */
    double joules;  /* negative = unknown */
    uint64_t split; /* a number for the bands the policy began with */
    bool failed;
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

struct lab_run_figures {
    uint64_t frames; /* in the figures */
    uint64_t failed, disturbed;
    struct lab_spread spread;
    double over_oracle, over_single;           /* medians */
    double mean_over_oracle, mean_over_single; /* means */
    double efficiency;                         /* of medians: (T_best / T) / (T_best * sum of 1 / T_d) */
    double changes;                            /* of the split against the frame before, per 100 frames */
    uint32_t settled;                          /* frames until it stayed within 5 % of the oracle; LAB_RUN_NEVER */
    double joules;                             /* of a frame, mean; negative = unknown */
};

/* Of frames first .. end - 1, which are those of one phase. False: out of memory. */
bool lab_run_figures_of(const struct lab_run_frame *frames, uint64_t first, uint64_t end,
                        const struct lab_run_reference *reference, struct lab_run_figures *out);

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
struct lab_run_verdict lab_run_judge(const struct lab_run_figures *figures, const struct lab_run_reference *references,
                                     const struct lab_phase *phases, uint32_t phase_count);

extern const double lab_run_bar_oracle, lab_run_bar_single;
extern const uint32_t lab_run_bar_settled;

/* --- tables (table.c) --------------------------------------------------------------------------------------- */

struct lab_run_table {
    const struct lab_run_options *options;
    uint32_t device_count, phase_count;
    const struct cox_device_info *devices;
    const struct lab_phase *phases;
    const struct lab_run_reference *references; /* of each phase */
    const struct lab_run_figures *figures;      /* [policy * phase_count + phase] */
    uint32_t rows;
};
void lab_run_print(FILE *to, const struct lab_run_table *table);

#endif
