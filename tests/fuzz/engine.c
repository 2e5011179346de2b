/* Fuzz target: a simulation of the session engine on one thread (one_thread.h). The input is a scenario: devices, a
 * session, the application's actions, and faults. Every guarantee of docs/guide/faults.md is checked. lives.c has more
 * sessions, and memory that runs out.
 *
 * If a check fails, the scenario and its events are printed. COX_STORY in the environment prints them always.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/policies/registry.h"
#include "specs.h"
#include "client_act.h"
#include "client_draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Replace the session by another one of the same kind, with the same buffers. */
static void change_session(void)
{
    end_session();
    c->info = (struct cox_session_info){0};
    c->base = c->reports = c->submitted;
    c->log_from = strlen(rig_log(w.rig));
    begin_session();
    if (c->session)
        check_info();
}

/* One action of the application. */
static void act(void)
{
    static const uint64_t pauses[] = {100000,    1000000,    10000000,   60000000,
                                      200000000, 1000000000, 5000000000, 40000000000};
    const uint32_t what = take(), how = what / 8;
    w.act_ns = now();
    switch (what % 8) {
    case 0:
    case 1:
        for (uint32_t k = 0; k <= how % 4; k++)
            submit_next(what % 8 == 1);
        break;
    case 2:
        run_next();
        break;
    case 3:
        c->chain = 1 + how;
        submit_next(false);
        break;
    case 4:
        pass(pauses[how % 8]);
        break;
    case 5:
        take_fault(FAULTS_OLD, true);
        break;
    case 6:
        if (how % 8 >= 6)
            cancel();
        if (how % 8 == 6)
            break;
        tell("  %.6f waits for all\n", (double)now() * 1e-9);
        cox_session_wait(c->session);
        CHECK(c->over == c->submitted, "%u of %u frames are over, and none is under way", c->over, c->submitted);
        break;
    default:
        if (how == 31)
            change_session();
        else if (!c->busy[how % c->sets]) {
            tell("  %.6f other buffers for set %u\n", (double)now() * 1e-9, how % c->sets);
            c->anew[how % c->sets] = true;
        } else if (!c->dropped[how % c->sets]) {
            tell("  %.6f the buffers of set %u are destroyed under way\n", (double)now() * 1e-9, how % c->sets);
            c->dropped[how % c->sets] = true;
            shape_drop(c->frames, how % c->sets);
        }
    }
}

/* Older stored inputs keep their meaning, which is shapes without passes. */
static enum shape shape_of(uint32_t kind_of_frames, uint32_t look)
{
    const uint32_t kind = kind_of_frames / DEVICES_MAX % 16;
    return kind < 8 ? (enum shape)(look % SHAPES_PLAIN)
                    : (enum shape)(SHAPES_PLAIN + (kind - 8) % (uint32_t)(SHAPES - SHAPES_PLAIN));
}

static void play(void)
{
    struct fake_params devices;
    static const uint32_t heights[] = {1, 2, 7, 16, 24, 33, 60, 64}, pitches[] = {4, 8, 12, 16};
    const uint32_t rows = PICK(heights), look = take(), kind = take();
    take_devices(&devices, 1 + kind % DEVICES_MAX, rows, false);
    w.rig = rig_new(&devices);
    w.fake = rig_fake(w.rig);
    c->sets = 1 + take() % SETS_MAX;
    c->frames = shape_frames_padded(w.rig, shape_of(kind, look), rows, 4, pitches[look / 8 % 4], c->sets);
    choose_pass_devices(c->frames, kind / 64, devices.device_count);
    shape_set_rest(c->frames, look / 64 == 3 ? REST_GAPS : look / 64 == 2 ? REST_PARTIAL : REST_UNDEFINED);
    c->frames->wrapped = look / 32 % 2; /* the first buffers are not wrapped */
    for (uint32_t i = 0; i < c->sets; i++)
        c->anew[i] = c->frames->wrapped;
    static const char *const rests[] = {"", ", written in part", ", with gaps"};
    tell("frames: %s, %u rows of 4 bytes, %u apart%s, %u sets of%s buffers\n", shape_name(c->frames->shape), rows,
         c->frames->pitch, rests[c->frames->rest], c->sets, c->frames->wrapped ? " wrapped" : "");
    take_tasks();
    const uint32_t faults = take() % FAULTS_FIRST;
    for (uint32_t i = 0; i < faults; i++)
        take_fault(FAULTS_OLD, false);
    take_session(devices.device_count, 1);
    begin_session();
    if (c->session) {
        check_info();
        while (w.size > 0 && c->session)
            act();
        if (c->session)
            end_session();
    }
    shape_frames_free(&c->frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct client client;
    if (size > INPUT_MAX)
        return 0;
    const uint32_t lent = shape_lent();
    begin_life(data, size, 1);
    client = (struct client){0};
    c = &client;
    play();
    end_life(lent);
    return 0;
}
