/* Figures of frames: of one policy in one phase, compared with the phase's references.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_RUN_FRAME_FIGURES_H
#define COX_EXAMPLES_LAB_RUN_FRAME_FIGURES_H

#include "disturb.h"
#include "lab/statistics/bootstrap.h"
#include "sweep.h"

/* One frame of a policy. */
struct lab_run_frame {
    double ns;     /* time per frame in a stream of such frames */
    double joules; /* negative = unknown */
    double latency_ns;
    uint64_t split; /* hash of the bands at the start of the frame */
    bool failed;
    bool late;      /* it missed its deadline */
    bool disturbed; /* other programs ran meanwhile; excluded from the figures */
};

/* The references of a phase. */
struct lab_run_reference {
    uint32_t device_count;
    struct lab_spread solo[COX_DEVICES_MAX];
    uint32_t best_solo; /* by median */
    struct lab_swept oracle;
    uint32_t oracle_rows[COX_DEVICES_MAX];
};

/* From a finished sweep. False if it has no samples. */
bool lab_run_reference_of(const struct lab_sweep *sweep, struct lab_run_reference *out);

enum { LAB_RUN_NEVER = UINT32_MAX };

/* Frames first .. end - 1 of each repeat; the frames of a repeat start `stride` after those of the
 * previous repeat. */
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
    double changes;            /* of the split between two frames, per 100 frames */
    uint32_t settled;          /* frames until it stayed within 5 % of the oracle; LAB_RUN_NEVER */
    double joules;             /* of a frame, mean; negative = unknown */
    struct lab_spread latency; /* from submission to delivery */
    double late;               /* share of the frames that missed their deadlines */
};

/* The range must be within one phase. `settled` is the median of the repeats. False if out of
 * memory. */
bool lab_run_figures_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                        const struct lab_run_reference *reference, struct lab_run_figures *out);

/* Add the times of the frames in the figures, in nanoseconds; `block` frames were run in a row. */
void lab_run_blocks_of(const struct lab_run_frame *frames, const struct lab_run_range *range,
                       uint32_t block, struct lab_blocks *out);

/* Add the samples of a reference; `turn` samples were run in a row. */
void lab_run_blocks_of_turns(const struct lab_candidate *candidate, uint32_t turn,
                             struct lab_blocks *out);

/* Frames until frame times stay near the oracle's, see lab/settle.h. */
uint32_t lab_run_settled(const struct lab_run_frame *frames, uint64_t first, uint64_t end,
                         const struct lab_spread *oracle);

/* The bars of one policy over all phases. */
struct lab_run_verdict {
    bool met;
    double over_oracle; /* the greatest of the phases */
    double over_single; /* time of the whole run over that of each phase's best single device */
    uint32_t settled;   /* the greatest of the phases after the first */
};
struct lab_run_verdict lab_run_judge(const struct lab_run_figures *figures,
                                     const struct lab_run_reference *references,
                                     const struct lab_phase *phases, uint32_t phase_count);

extern const double lab_run_bar_oracle, lab_run_bar_single;
extern const uint32_t lab_run_bar_settled;

#endif
