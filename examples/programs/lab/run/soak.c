/* Devices that work without a pause: how the first seconds differ from later ones, and a device
 * alone from all together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "state.h"

#include <time.h>

/* The machine cools down before a stage, for this share of its time. */
static const double rest_share = 0.25;

/* A signal ends the rest. */
static void rest(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

static bool run_stage(struct run *run, const struct lab_store_session *session,
                      const uint32_t *rows)
{
    const double seconds = run->options->soak_s;
    bool good = true;

    rest(rest_share * seconds);
    run->references.recorded = lab_store_begin_session(run->command->store, session);
    for (uint64_t from = now_ns(); good && (double)(now_ns() - from) < seconds * 1e9;)
        good = lab__run_split(run, rows, lab__run_block(run->options));

    run->references.recorded = NULL;
    return good && !lab__run_is_over(run);
}

bool lab__run_soak(struct run *run)
{
    double speed[COX_DEVICES_MAX] = {0}, ratios[COX_DEVICES_MAX], ns;
    struct cox_session_info info;
    struct lab_sweep shape;
    struct lab_store_session session = {
        .kind = LAB_SESSION_SOLO, .policy = "soak", .phase_plus_1 = 1};
    uint32_t rows[COX_DEVICES_MAX];

    cox_session_info(run->references.session, &info);
    lab_sweep_begin(&shape, run->device_count, lab_kernel_rows(run->kernel), info.row_alignment, 1);

    for (uint32_t d = 0; d < run->device_count; d++) {
        if (!lab__run_measure_alone(run, d, 0.5, &ns))
            return false;
        speed[d] = 1 / ns;
    }

    for (uint32_t d = 0; d < run->device_count; d++) {
        session.device = d;
        if (!run_stage(run, &session, shape.candidates[d].rows))
            return false;
    }

    if (run->device_count < 2)
        return true;

    lab_sweep_balance(&shape, speed, lab_sweep_all(&shape), rows);

    for (uint32_t d = 0; d < run->device_count; d++)
        ratios[d] = (double)rows[d] / shape.rows;

    session.kind = LAB_SESSION_SWEEP;
    session.ratios = ratios;
    session.ratio_count = run->device_count;

    return run_stage(run, &session, rows);
}
