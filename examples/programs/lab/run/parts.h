/* What the files of a run share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_PARTS_H
#define COX_EXAMPLES_LAB_RUN_PARTS_H

#include "common/host_machine.h"
#include "common/quiet.h"
#include "lab/store/database.h"
#include "lab/telemetry/sampler.h"
#include "energy.h"
#include "measure.h"
#include "sides.h"

enum { LAB__RUN_BLOCK_MAX = LAB_RUN_BLOCK * COX_IN_FLIGHT_MAX };

/* Frames of a policy in a row. A block begins and ends with nothing under way, so the more frames overlap, the longer
 * it has to be until that is a small part of it. */
static inline uint32_t lab__run_block(const struct lab_run_options *options)
{
    return LAB_RUN_BLOCK * options->in_flight;
}

/* One session and its frames. What reports write is read when no frame is under way. */
struct lane {
    cox_session *session;
    struct lab_session *recorded; /* where its next frames are recorded; NULL = nowhere */
    uint32_t number;              /* of its buffers */
    uint64_t submitted, last_end_ns;
    struct lab_run_frame *frames;       /* of a policy; NULL for the references */
    double turn_ns[LAB__RUN_BLOCK_MAX]; /* of the references: the frames of the turn */
    uint32_t turn_count;
    uint32_t rows[COX_DEVICES_MAX];    /* of the last frame, of all passes */
    uint64_t wall_ns[COX_DEVICES_MAX]; /* of each device's bands in the last frame */
    uint32_t compared, different;      /* blocks whose outputs were compared, over all repeats */
};

/* The references of one phase, over all repeats. */
struct phase_sweep {
    struct lab_sweep sweep;
    struct lab_session *recorded[LAB_CANDIDATES_MAX];
    bool taken[LAB_CANDIDATES_MAX]; /* which of its candidates have turns; new ones do */
    uint32_t rounds;
};

/* What two sides share. */
struct shared {
    struct lab_rows rows;
    int32_t work;                  /* as the first side chose it */
    struct lab_run_frame frames[]; /* of the first side: those of each policy */
};

/* What all runs of a command have in common. */
struct command {
    const struct lab_run_options *options;
    struct machine machine;
    struct lab_user_kernel *user; /* NULL = a kernel of this program */
    struct lab_disturber *disturber;
    char cannot[LAB_DISTURBANCES_MAX]
               [240]; /* why a disturbance is replaced by the artificial delay; "" = it is not */
    struct lab_store *store;
    struct lab_energy *energy;
    struct lab_sides *sides; /* NULL = there is one */
    struct shared *shared;
    enum lab_run_reserve reserve; /* of this side */
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
    struct lab_run_frame *frames[LAB_RUN_POLICIES_MAX]; /* of each policy: those of all repeats */
    struct phase_sweep *sweeps;                         /* of each phase */
    struct phase_sweep *at;                             /* of the phase under way */
    struct lab_run_reference *reference;                /* of each phase */
    struct baseline *baseline;                          /* NULL = there is none */
    struct quiet quiet;
    struct lab_telemetry *telemetry;
    struct lab_sampler *sampler;
    struct lab_sampler_cost telemetry_cost; /* once it is stopped */
    uint64_t rounds;
    int64_t number; /* in the database; 0 = nothing is recorded */
    bool failed;
};

/* --- frames.c --------------------------------------------------------------------------------------------------- */

/* SIGINT and SIGTERM end the run; a second one ends it at once. */
void lab__run_catch_signals(void);
bool lab__run_interrupted(void);

bool lab__run_is_over(const struct run *run);

/* False after saying why, as all below that return bool. */
bool lab__run_open_lane(struct run *run, struct lane *lane, const struct cox_policy *policy);

/* Frames of one session; false once the run is over. */
bool lab__run_frames(struct run *run, struct lane *lane, uint64_t count);

/* As the one above, and of a kernel of the user's own what they wrote is compared. `name`: of the contestant. */
bool lab__run_checked(struct run *run, struct lane *lane, uint64_t count, const char *name);

/* A cox_report_fn whose `user` is the lane. */
void lab__run_report(void *lane, const struct cox_frame_report *report);

/* --- baseline.c, or baseline_none.c ----------------------------------------------------------------------------- */

/* Another runtime as a contestant: its models calibrated, and the number of blocks found that suits it best; the table
 * of what they took is printed and recorded. Once the run's head is printed. */
bool lab__run_open_baseline(struct run *run);
void lab__run_close_baseline(struct run *run);

/* Frames of its lane in a row; what the last one wrote is compared with what device 0 alone writes. */
bool lab__run_baseline_frames(struct run *run, struct lane *lane, uint64_t count);

/* --- references.c ----------------------------------------------------------------------------------------------- */

/* Frames of one static split, in references.turn_ns. */
bool lab__run_split(struct run *run, const uint32_t *rows, uint64_t count);

/* One turn of every reference of the phase under way that still matters. */
bool lab__run_sweep_round(struct run *run, uint32_t phase);

/* What the phase is held against, from all that was measured until now. */
bool lab__run_refer(struct run *run, uint32_t phase);

/* --- soak.c ------------------------------------------------------------------------------------------------------ */

/* What comes before everything else with --soak: recorded as sessions of policy "soak". */
bool lab__run_soak(struct run *run);

/* --- prepare.c -------------------------------------------------------------------------------------------------- */

/* Time of one device alone, in frames that count for nothing: their median (`share` 0.5), or their least (0), which
 * other programs change least. */
bool lab__run_measure_alone(struct run *run, uint32_t device, double share, double *ns);

/* Kernel `work`: choose the work so that a balanced frame takes long enough to be measured. */
bool lab__run_choose_work(struct run *run);

/* A kernel of the user's own: what the first device alone writes is right; whether the others alone write the same. */
bool lab__run_know_outputs(struct run *run);

bool lab__run_can_disturb(const struct lab_run_options *options);
bool lab__run_prepare_disturbances(struct run *run);

/* The device that artificial delays are for; all of them must mean the same. */
bool lab__run_delayed_device(const struct lab_run_options *options, bool *delayed,
                             uint32_t *device);

/* --- record.c ---------------------------------------------------------------------------------------------------- */

/* Once the kernel, the references' session and the disturbances are there. */
void lab__run_begin_recording(struct run *run);
void lab__run_print_head(const struct run *run);

/* --- telemetry.c ------------------------------------------------------------------------------------------------- */

/* What can be read of the machine is, until lab__run_stop_telemetry, and not while the sampler is paused; the first
 * side's table says what cannot. After the run's head and before its first policy's session. */
void lab__run_start_telemetry(struct run *run);
void lab__run_stop_telemetry(struct run *run);

/* What it cost, once it is stopped. */
void lab__run_print_telemetry(const struct run *run);

/* --- results.c --------------------------------------------------------------------------------------------------- */

/* Of each policy in each phase: [policy * phase_count + phase]. False: out of memory. */
bool lab__run_figures(const struct run *run, struct lab_run_figures *figures,
                      struct lab_run_certainty *certainties);

/* Whether what devices wrote differs somewhere from what device 0 alone writes. */
bool lab__run_has_differences(const struct run *run);

/* As tables or as rows. */
void lab__run_print(struct run *run, const struct lab_run_figures *figures,
                    const struct lab_run_certainty *certainties);

#endif
