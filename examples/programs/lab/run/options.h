/* The options of `cox-lab run`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_OPTIONS_H
#define COX_EXAMPLES_LAB_RUN_OPTIONS_H

#include "disturb.h"
#include "kernels.h"
#include "lab/rows.h"
#include "lab/statistics/bootstrap.h"

#include <coxswain/sched.h>

enum {
    LAB_RUN_POLICIES_MAX = 16,
    LAB_RUN_FRAMES_MAX = 1000000, /* of a policy, over all repeats */
    LAB_RUN_SIZES_MAX = 16,
    LAB_RUN_RATIOS_MAX = 16,
    LAB_RUN_REPEATS_MAX = 1000,

    /* Frames of a policy in a row, for each frame in flight. With several in flight also those of a
     * reference. */
    LAB_RUN_BLOCK = LAB_BLOCK_FRAMES,

    /* Frames of a reference in a row with one in flight. The first one is dropped: the caches are
     * full of other data. */
    LAB_RUN_TURN = 4
};

struct lab_size {
    uint32_t columns, rows;
};

/* Whether a core is reserved. LAB_RESERVE_BOTH: one side with a reserved core and one without. */
enum lab_run_reserve { LAB_RESERVE_AUTO, LAB_RESERVE_OFF, LAB_RESERVE_ON, LAB_RESERVE_BOTH };

/* A contestant: "adaptive", or "adaptive:no-pool", which does not hand out rows during a frame. */
struct lab_run_policy {
    char name[40];
    struct cox_policy policy; /* its name is `name` */
    bool baseline;            /* another runtime instead of a policy */
};

struct lab_run_options {
    const char *devices; /* NULL = every device */
    uint32_t policy_count;
    struct lab_run_policy policies[LAB_RUN_POLICIES_MAX];
    bool baseline; /* the last policy is the baseline */
    enum lab_kernel_kind kernel;
    const char *kernel_file, *bindings_file;  /* LAB_KERNEL_USER; bindings NULL = next to it */
    uint32_t size_count;                      /* one run of each size and each ratio */
    struct lab_size sizes[LAB_RUN_SIZES_MAX]; /* zeros = the kernel's default */
    uint32_t ratio_count;
    uint32_t ratios[LAB_RUN_RATIOS_MAX];
    uint64_t frames; /* of each policy, in each repeat */
    uint32_t repeats;
    enum lab_run_reserve reserve;
    uint32_t in_flight;
    uint32_t rounds; /* minimum rounds of the references in each phase */
    uint32_t curve; /* also sweep the first device's share from 0 to 1 in this many steps; 0 = no */
    double soak_s;  /* first run each device alone and then all, this long each; 0 = no */
    bool anonymous; /* do not record the machine's name */
    enum cox_objective objective;
    uint64_t deadline_ns;
    uint32_t disturbance_count;
    struct lab_disturbance disturbances[LAB_DISTURBANCES_MAX];
    double fallback_us; /* delay of device 0 instead of an impossible disturbance; 0 = refuse */
    double quiet_s;
    const char *output;
    const char *powercap;  /* NULL = the system's */
    uint64_t telemetry_ns; /* time between two readings of the machine; 0 = no telemetry */
    const char *sysfs;     /* folder of the telemetry; NULL = /sys */
    const char *command;   /* to be recorded */
    bool check;
    bool anova;
    bool check_kernels; /* run a frame in check mode first */
    enum lab_format format;
};

/* Whether this program was built with StarPU. */
extern const bool lab_run_has_starpu;

/* "auto", "off", "on", "both". */
const char *lab_run_reserve_name(enum lab_run_reserve reserve);

/* On false `*exit_status` is set and the reason is on standard error. */
bool lab_run_parse(int argc, char **argv, struct lab_run_options *options, int *exit_status);

#endif
