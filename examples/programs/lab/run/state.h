/* The state of a run, and the steps in the files of this folder. measure.c calls the steps in
 * order. The sections below are in the order from callee to caller.
 *
 * All functions that return bool print the reason before they return false.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_STATE_H
#define COX_EXAMPLES_LAB_RUN_STATE_H

#include "common/host_machine.h"
#include "common/quiet.h"
#include "lab/store/database.h"
#include "lab/telemetry/energy.h"
#include "lab/telemetry/sampler.h"
#include "frame_figures.h"
#include "options.h"
#include "sides.h"

enum { LAB__RUN_BLOCK_MAX = LAB_RUN_BLOCK * COX_IN_FLIGHT_MAX };

/* Frames of a policy in a row. No frame is under way at the start and the end of a block. With more
 * frames in flight, a longer block keeps the share of that idle time small. */
static inline uint32_t lab__run_block(const struct lab_run_options *options)
{
    return LAB_RUN_BLOCK * options->in_flight;
}

/* One session and its frames. Reports write the fields; read them when no frame is under way. */
struct lane {
    cox_session *session;
    struct lab_session *recorded; /* the recording of the next frames; NULL = none */
    uint32_t number;              /* of its buffers */
    uint64_t submitted, last_end_ns;
    struct lab_run_frame *frames;       /* of a policy; NULL for the references */
    double turn_ns[LAB__RUN_BLOCK_MAX]; /* of the references: the frames of the turn */
    uint32_t turn_count;
    uint32_t rows[COX_DEVICES_MAX];    /* of the last frame, of all passes */
    uint64_t wall_ns[COX_DEVICES_MAX]; /* of each device's bands in the last frame */
    uint32_t compared, different;      /* blocks with compared outputs, over all repeats */
};

/* The references of one phase, over all repeats. */
struct phase_sweep {
    struct lab_sweep sweep;
    struct lab_session *recorded[LAB_CANDIDATES_MAX];
    bool taken[LAB_CANDIDATES_MAX]; /* candidates that have turns; new candidates do */
    uint32_t rounds;
};

/* The memory that both sides share. */
struct shared {
    struct lab_rows rows;
    int32_t work;                  /* chosen by the first side */
    struct lab_run_frame frames[]; /* of the first side: those of each policy */
};

/* The state of all runs of a command. */
struct command {
    const struct lab_run_options *options;
    struct machine machine;
    struct lab_user_kernel *user; /* NULL = a kernel of this program */
    struct lab_disturber *disturber;

    /* Why a disturbance is replaced by the artificial delay; "" = it is not. */
    char cannot[LAB_DISTURBANCES_MAX][240];
    struct lab_store *store;
    struct lab_energy *energy;
    struct lab_sides *sides; /* NULL = one side */
    struct shared *shared;
    enum lab_run_reserve reserve; /* of this side */
    struct factorial *factorial;  /* NULL = none, or no run was measured */
};

/* The confidence of one policy's figures in one phase. */
struct lab_run_certainty {
    struct lab_intervals of;    /* ratio: T/single, of medians */
    uint32_t blocks;            /* that the intervals come from */
    struct lab_pair over_first; /* the policy named first, in the same rounds */
    double over_off;            /* with a reserved core over without, medians; NaN = not compared */
    struct lab_interval over_off_interval;
};

/* One size and ratio. */
struct run {
    const struct lab_run_options *options;
    struct command *command;
    struct lab_size size;
    uint32_t ratio;
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct lab_kernel *kernel;
    int32_t delay_steps[LAB_DISTURBANCES_MAX];
    bool artificial[LAB_DISTURBANCES_MAX];
    char notes[LAB_DISTURBANCES_MAX][320];
    uint32_t phase_count;
    struct lab_phase phases[LAB_PHASES_MAX];
    struct lane references, policies[LAB_RUN_POLICIES_MAX];
    struct lab_run_frame *frames[LAB_RUN_POLICIES_MAX]; /* of each policy, over all repeats */
    struct phase_sweep *sweeps;                         /* of each phase */
    struct phase_sweep *at;                             /* of the phase under way */
    struct lab_run_reference *reference;                /* of each phase */
    struct lab_run_figures *figures;       /* [policy * phase_count + phase], at the end */
    struct lab_run_certainty *certainties; /* the same */
    struct baseline *baseline;             /* NULL = none */
    struct quiet quiet;
    struct lab_telemetry *telemetry;
    struct lab_sampler *sampler;
    struct lab_sampler_cost telemetry_cost; /* set when the sampler is stopped */
    uint64_t rounds;
    int64_t number;    /* in the database; 0 = nothing is recorded */
    uint32_t absences; /* devices that missed some frames, a bit each */
    bool failed;
};

/* --- lane.c ----------------------------------------------------------------------------------- */

/* Whether the run has failed or was interrupted. */
bool lab__run_is_over(const struct run *run);

bool lab__run_open_lane(struct run *run, struct lane *lane, const struct cox_policy *policy);

/* Run frames of one session. False once the run is over. */
bool lab__run_frames(struct run *run, struct lane *lane, uint64_t count);

/* As lab__run_frames, and compare the outputs of a user's own kernel. `name` is the
 * contestant's. */
bool lab__run_checked(struct run *run, struct lane *lane, uint64_t count, const char *name);

/* Note and print which devices failed in the session. What is measured then is not their own. */
void lab__run_note_absences(struct run *run, const struct lane *lane);

/* A cox_report_fn whose `user` is the lane. */
void lab__run_report(void *lane, const struct cox_frame_report *report);

/* --- references.c ----------------------------------------------------------------------------- */

/* Run frames with a static split. Their times are in references.turn_ns. */
bool lab__run_split(struct run *run, const uint32_t *rows, uint64_t count);

/* Measure one device alone. The frames are in no figure. `*ns` is their quantile `share`: 0.5 is
 * the median; 0 is the minimum, which other programs affect least. */
bool lab__run_measure_alone(struct run *run, uint32_t device, double share, double *ns);

/* Run one turn of every reference of this phase that still matters. */
bool lab__run_sweep_round(struct run *run, uint32_t phase);

/* Compute and record the phase's references from all samples so far. */
bool lab__run_refer(struct run *run, uint32_t phase);

/* --- baseline.c, or baseline_none.c ----------------------------------------------------------- */

/* Open another runtime as a contestant: calibrate its models, find the best number of blocks, print
 * and record the measured times. Call this after lab__run_print_head. */
bool lab__run_open_baseline(struct run *run);
void lab__run_close_baseline(struct run *run);

/* Run frames of its lane in a row and compare the output of the last one with that of device 0. */
bool lab__run_baseline_frames(struct run *run, struct lane *lane, uint64_t count);

/* --- soak.c ----------------------------------------------------------------------------------- */

/* The first step with --soak. Recorded as sessions of policy "soak". */
bool lab__run_soak(struct run *run);

/* --- prepare.c -------------------------------------------------------------------------------- */

/* Kernel `work`: choose the work so that a balanced frame is long enough to be measured. */
bool lab__run_choose_work(struct run *run);

/* With --check-kernels: run a frame in check mode. False: the log has the kernels' mistakes. */
bool lab__run_check_kernels(struct run *run);

/* A user's own kernel: keep what device 0 alone writes as the right output, and compare that of
 * each other device alone. */
bool lab__run_know_outputs(struct run *run);

/* Refuse impossible disturbances before a device is opened. */
bool lab__run_can_disturb(const struct lab_run_options *options);
bool lab__run_prepare_disturbances(struct run *run);

/* The device that artificial delays are for. All delays must be for the same device. */
bool lab__run_delayed_device(const struct lab_run_options *options, bool *delayed,
                             uint32_t *device);

/* --- head.c ----------------------------------------------------------------------------------- */

/* Call both after the kernel, the references' session and the disturbances are ready. */
void lab__run_begin_recording(struct run *run);
void lab__run_print_head(const struct run *run);

/* --- monitoring.c ----------------------------------------------------------------------------- */

/* Start the sampler of the machine's telemetry. The table of the first side lists what it can and
 * cannot read. Call this after lab__run_print_head and before the first policy's session. */
void lab__run_start_telemetry(struct run *run);
void lab__run_stop_telemetry(struct run *run);

/* Print the sampler's cost, after it was stopped. */
void lab__run_print_telemetry(const struct run *run);

/* --- outcome.c -------------------------------------------------------------------------------- */

/* Compute the figures and certainties. False if out of memory; it prints no reason. */
bool lab__run_compute_figures(struct run *run);

/* Whether any compared output differs from that of device 0 alone. */
bool lab__run_has_differences(const struct run *run);

/* --- factorial.c ------------------------------------------------------------------------------ */

/* With --anova: note the times of a run that has its figures, and analyse those of all runs. */
bool lab__run_note_times(const struct run *run);
bool lab__run_print_anova(const struct command *command);

/* --- table.c ---------------------------------------------------------------------------------- */

/* Print the results as tables or as rows. */
void lab__run_print(const struct run *run);

#endif
