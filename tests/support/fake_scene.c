/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fake_scene.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 64 };

static void note_wrong(struct scene *scene, const char *what, uint32_t frame)
{
    if (!*scene->wrong)
        snprintf(scene->wrong, sizeof scene->wrong, "frame %u: %.200s", frame, what);
}

static void on_done(void *user, uint64_t frame, cox_status status);

/* Returns false if the frame was refused; then no more are submitted. */
static bool submit(struct scene *scene, bool nowait)
{
    struct cox__frame_spec frame = shape_frame(scene->frames, scene->submitted);
    frame.nowait = nowait;
    shape_prepare(scene->frames, scene->submitted);
    scene->submitted++; /* first, since the callback may run before this call returns */
    const cox_status status = cox__session_submit(scene->session, &frame, on_done, scene);
    if (status == COX_OK)
        return true;
    scene->submitted--;
    scene->refused = status;
    return false;
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    const uint32_t number = scene->done;
    if (frame != number)
        note_wrong(scene, "its callback is out of order", (uint32_t)frame);
    if (number == SCENE_FRAMES_MAX)
        abort();
    scene->status[number] = status;
    scene->done_ns[number] = fake_now(scene->fake);
    if (status == COX_OK && *shape_check(scene->frames, number))
        note_wrong(scene, shape_check(scene->frames, number), number);
    scene->done++;
    if (scene->watch)
        scene->watch(scene, number, status);
    while (scene->refused == COX_OK && scene->submitted < scene->target &&
           scene->submitted - scene->done < scene->depth)
        submit(scene, true);
    if (scene->done == scene->target || (scene->refused != COX_OK && scene->done == scene->submitted))
        sem_post(&scene->over);
}

void scene_begin(struct scene *scene, const struct fake_params *devices, enum shape shape, uint32_t buffers,
                 const struct cox__session_spec *extra)
{
    memset(scene, 0, sizeof *scene);
    sem_init(&scene->over, 0, 0);
    scene->rig = rig_new(devices);
    scene->fake = rig_fake(scene->rig);
    scene->frames = shape_frames_new(scene->rig, shape, SCENE_ROWS, SCENE_COLUMNS,
                                     buffers ? buffers : MANY + COX_IN_FLIGHT_MAX);
    struct cox__session_spec params = *extra;
    params.in_flight = params.in_flight < 2 ? 2 : params.in_flight;
    params.report = rig_report;
    params.report_user = scene->rig;
    scene->depth = params.in_flight - 1; /* a frame's slot is free only after its callback has returned */
    if (shape_session(scene->frames, &params, &scene->session) != COX_OK) {
        fprintf(stderr, "%s", rig_log(scene->rig));
        abort();
    }
}

/* Submits one frame. Its callback submits the others, so that `depth` frames are in flight. */
void scene_play(struct scene *scene, uint32_t frames)
{
    scene->refused = COX_OK;
    scene->target = scene->submitted + frames;
    if (frames == 0 || !submit(scene, false))
        return;
    while (sem_wait(&scene->over) != 0)
        continue;
    cox_session_wait(scene->session);
}

const char *scene_end(struct scene *scene)
{
    static char verdict[1000];
    cox_session_destroy(&scene->session);
    if (scene->done != scene->submitted)
        note_wrong(scene, "not every callback came", scene->done);
    shape_frames_free(&scene->frames);
    const char *violation = rig_end(&scene->rig);
    snprintf(verdict, sizeof verdict, "%s%s%.600s", scene->wrong, *scene->wrong && *violation ? "; " : "", violation);
    sem_destroy(&scene->over);
    return verdict;
}

struct cox_session_device scene_device(struct scene *scene, uint32_t device)
{
    return rig_info(scene->session).devices[device];
}

const struct rig_report *scene_report(struct scene *scene, uint32_t frame)
{
    for (uint32_t i = 0; i < rig_report_count(scene->rig); i++) {
        const struct rig_report *report = rig_report_at(scene->rig, i);
        if (report->frame.index == frame && !report->frame.warmup && !report->frame.shadow)
            return report;
    }
    return NULL;
}

uint64_t scene_took(struct scene *scene, uint32_t frame)
{
    const struct rig_report *report = scene_report(scene, frame);
    return report ? report->frame.end_ns - report->frame.start_ns : UINT64_MAX;
}

uint32_t scene_failed(const struct scene *scene, uint32_t first, uint32_t end)
{
    uint32_t failed = 0;
    for (uint32_t i = first; i < end; i++)
        failed += scene->status[i] != COX_OK;
    return failed;
}

bool scene_own(const struct scene *scene, const struct fake_record *record)
{
    for (uint32_t f = 0; f < scene->frames->count; f++)
        for (uint32_t i = 0; i < scene->frames->binding_count; i++)
            if (cox_buffer_data(scene->frames->buffers[f][i]) == record->out)
                return true;
    return false;
}
