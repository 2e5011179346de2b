/* A machine as the parameters of a scenario (lab/sim/scenario.h), estimated from a recorded run.
 * docs/reference/cox-lab.md explains how. For `cox-lab fit`. Thread-safety: no state outside the
 * arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_ESTIMATE_H
#define COX_EXAMPLES_LAB_FIT_ESTIMATE_H

#include "lab/replay/recorded_run.h"
#include "lab/sim/scenario.h"

struct lab_fit_device {
    size_t bands; /* that the estimate uses; 0 = the device never had rows and takes no part */
    double fixed_ns, launch_ns, row_ns; /* as in a scenario, at the mean level */
    double ahead_ns, ahead_row_ns;
    double slower;                  /* while other devices work; 1 = not slower */
    double submit_ns;               /* of a band, for the engine's thread */
    double jitter;                  /* between launches of one frame, or of neighbouring frames */
    double level_change, level_lag; /* 0 = the level does not wander */
    double jump_frames, jump_sigma; /* 0 = it does not jump */
    struct lab_scenario_tail launch_tail;

    /* In each frame the level over its mean, and how late a launch was; NULL = unknown. */
    double *trace, *late_ns;
};

struct lab_fit {
    uint32_t rows, row_alignment, in_flight;
    uint64_t frames; /* of the longest session */
    uint32_t device_count;
    char device_names[COX_DEVICES_MAX][LAB_NAME_MAX]; /* all different */
    struct lab_fit_device devices[COX_DEVICES_MAX];
    size_t trace_count; /* frames of each trace */

    /* Frames of policies that have changed since: their code may have caused what they met. NULL =
     * there is no other policy. */
    bool *changed;
    bool host_clock;
    double busy_ns;
    struct lab_scenario_wake engine, application; /* they occur at all times */
    double hand_over_idle_ns; /* the application's longest wait after a device became idle */
    uint64_t pause_frames;
};

/* False if the run lacks what is needed, with a sentence in `why` whose subject is "the run".
 * lab_fit_free it. */
bool lab_fit_estimate(const struct lab_replay_data *data, struct lab_fit *out, char *why,
                      size_t why_bytes);

/* The traces; `fit` itself is the caller's. */
void lab_fit_free(struct lab_fit *fit);

enum lab_fit_levels {
    LAB_FIT_MODEL,     /* random ones like the recorded ones */
    LAB_FIT_UNCHANGED, /* the recorded ones, without frames of changed policies */
    LAB_FIT_ALL        /* all recorded ones */
};

/* The scenario as the text of a file; NULL = out of memory. free() it. */
char *lab_fit_write(const struct lab_fit *fit, const char *name, const char *text,
                    enum lab_fit_levels levels);

#endif
