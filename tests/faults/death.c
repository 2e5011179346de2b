/* Measures how much longer a frame takes if a device dies in it, on scripted devices with a virtual clock: see
 * death.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "death.h"
#include "support/fake_rig.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 1080, COLUMNS = 16, FRAMES = 60, FATAL = 40 };

struct scene {
    uint32_t devices, victim;
    bool hangs;
};

/* The measured times, in nanoseconds of the virtual clock. */
struct outcome {
    double before;   /* mean of the frames before */
    double optimum;  /* of the other devices alone */
    double frame;    /* the frame in which the device died */
    double deadline; /* from the lost band's earliest start to its rows' new assignment; 0 = no wait */
    double next;     /* the frame after it */
    const char *wrong;
};

/* A fast, a medium and two slow devices. */
static const double fixed_ns[FAULT_DEATH_DEVICES_MAX] = {20e3, 30e3, 25e3, 40e3};
static const double ns_per_row[FAULT_DEATH_DEVICES_MAX] = {6e3, 9e3, 12e3, 15e3};
static const double jitter = 0.01;

/* The shortest time of a frame on the other devices, with one band each that end at the same time. */
static double optimum_of(const struct scene *scene)
{
    double rate = 0, head_start = 0;
    for (uint32_t d = 0; d < scene->devices; d++) {
        if (d == scene->victim)
            continue;
        rate += 1 / ns_per_row[d];
        head_start += fixed_ns[d] / ns_per_row[d];
    }
    return (ROWS + head_start) / rate;
}

static double took(const struct rig_report *report)
{
    return (double)(report->frame.total.end_ns - report->frame.total.start_ns);
}

/* The report of the delivered frame with that index. */
static const struct rig_report *report_of(struct rig *rig, uint64_t index)
{
    for (uint32_t i = 0; i < rig_report_count(rig); i++) {
        const struct rig_report *report = rig_report_at(rig, i);
        if (!report->frame.warmup && !report->frame.shadow && report->frame.index == index)
            return report;
    }
    return NULL;
}

/* The time from the earliest start of the victim's lost band to the assignment of its rows to another device. */
static double waited(const struct rig_report *report, uint32_t victim)
{
    double longest = 0;
    for (uint32_t b = 0; b < report->frame.band_count; b++) {
        const struct cox_band_report *lost = &report->bands[b];
        if (lost->device != victim || lost->status == COX_OK)
            continue;
        for (uint32_t a = 0; a < report->frame.band_count; a++) {
            const struct cox_band_report *again = &report->bands[a];
            const bool its_rows = again->first_row >= lost->first_row &&
                                  again->first_row < lost->first_row + lost->rows;
            if (again->attempt && its_rows && (double)(again->submit_ns - lost->submit_ns) > longest)
                longest = (double)(again->submit_ns - lost->submit_ns);
        }
    }
    return longest;
}

static void judge(struct rig *rig, struct rig_frames *frames, const struct scene *scene, struct outcome *outcome)
{
    const struct rig_report *fatal = report_of(rig, FATAL), *next = report_of(rig, FATAL + 1);
    outcome->optimum = optimum_of(scene);
    outcome->wrong = "";
    if (!fatal || !next || rig_done_count(rig) != FRAMES) {
        outcome->wrong = "a frame has no callback or report";
        return;
    }
    for (uint32_t i = 0; i < FRAMES; i++)
        if (rig_done_status(rig, i) != COX_OK || rig_done_frame(rig, i) != i)
            outcome->wrong = "a frame failed";
    for (uint32_t i = 0; i < frames->count; i++)
        if (*rig_check(frames, i))
            outcome->wrong = "a frame is wrong";
    for (uint64_t n = FATAL - 10; n < FATAL; n++)
        outcome->before += report_of(rig, n) ? took(report_of(rig, n)) / 10 : 0;
    outcome->frame = took(fatal);
    outcome->next = took(next);
    if (scene->hangs)
        outcome->deadline = waited(fatal, scene->victim);
    if (!fake_struck(rig_fake(rig)))
        outcome->wrong = "the fault did not strike";
}

static void play(const struct scene *scene, struct outcome *outcome)
{
    struct fake_params params = {.device_count = scene->devices};
    for (uint32_t d = 0; d < scene->devices; d++)
        params.devices[d] = (struct fake_device){
            .fixed_ns = fixed_ns[d], .ns_per_row = ns_per_row[d], .jitter = jitter};
    struct rig *rig = rig_new(&params);
    struct rig_frames *frames = rig_frames_new(rig, ROWS, COLUMNS, 64, 2);
    const struct cox__session_spec session_params = {.in_flight = 1, .report = rig_report, .report_user = rig};
    cox_session *session = NULL;
    *outcome = (struct outcome){.wrong = "no session"};
    if (rig_map_session(frames, &session_params, &session) == COX_OK) {
        bool taken = true;
        for (uint32_t i = 0; i < FRAMES && taken; i++) {
            if (i == FATAL) /* strikes the next band of this device */
                fake_script(rig_fake(rig),
                            &(const struct fake_fault){.kind = scene->hangs ? FAKE_HANGS : FAKE_DEVICE_DIES,
                                                       .device = scene->victim,
                                                       .count = scene->hangs ? UINT32_MAX : 1,
                                                       .delay_ns = scene->hangs ? UINT64_MAX : 0});
            taken = rig_submit(frames, session, i, false) == COX_OK;
            cox_session_wait(session);
        }
        judge(rig, frames, scene, outcome);
    }
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    const char *verdict = rig_end(&rig);
    if (*verdict && !*outcome->wrong)
        outcome->wrong = verdict;
}

bool fault_death_print(FILE *stream)
{
    bool good = true;
    fprintf(stream, "| devices | which | how | before, ms | survivors' optimum, ms | frame, ms | of it waiting for "
                    "the deadline, ms | (frame - deadline) / optimum | next frame / optimum | |\n"
                    "|---|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t devices = 2; devices <= FAULT_DEATH_DEVICES_MAX; devices++)
        for (uint32_t victim = 0; victim < devices; victim += devices - 1)
            for (int hangs = 0; hangs < 2; hangs++) {
                const struct scene scene = {devices, victim, hangs};
                struct outcome outcome;
                play(&scene, &outcome);
                const double frame = (outcome.frame - outcome.deadline) / outcome.optimum;
                const double next = outcome.next / outcome.optimum;
                const char *verdict = *outcome.wrong ? outcome.wrong : frame > 2 || next > 1.05 ? "MISSED" : "ok";
                good = good && !strcmp(verdict, "ok");
                fprintf(stream, "| %u | %s | %s | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f | %s |\n", devices,
                        victim ? "the weakest" : "the strongest", hangs ? "hangs" : "error", outcome.before / 1e6,
                        outcome.optimum / 1e6, outcome.frame / 1e6, outcome.deadline / 1e6, frame, next, verdict);
            }
    return good;
}
