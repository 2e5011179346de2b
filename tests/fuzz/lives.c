/* Fuzz target: whole lives of an application with up to three sessions on the same devices, simulated on one thread
 * (one_thread.h). The input decides everything:
 *
 *   Sessions are created, one after the other and at the same time, with and without `warm_start` and with devices
 *     that join in the background. They are warmed, cancelled, and destroyed with frames under way.
 *   Devices fail, hang, lie, and come back. Some take no time at all.
 *   Allocations of the library and of the backend fail.
 *   The clock jumps.
 *   The application misuses the library (misuse.h).
 *
 * Each guarantee of docs/guide/faults.md is checked for each session, and nothing may be left at the end.
 *
 * If a check fails, the life and its events are printed. COX_STORY in the environment prints them always.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/policies/registry.h"
#include "specs.h"
#include "client_act.h"
#include "client_draw.h"
#include "misuse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 3, ROWS_MAX = 64 };
static struct client clients[CLIENTS];
static struct fake_params devices;

/* ---- sessions ---- */

static void on_ready(void *user, cox_status status)
{
    struct client *client = user;
    tell("  %.6f client %u is ready: %s\n", (double)now() * 1e-9, client->number, cox_status_name(status));
    CHECK(w.inside && !client->ready, "the session is ready twice, or on another thread");
    client->ready = true;
    client->ready_status = status;
}

/* A frame without a callback is over when it is reported. */
static void on_reported(void *user, const struct cox_frame_report *report)
{
    struct client *before = c;
    on_report(user, report);
    c = user;
    const struct pending frame = c->pending[c->first];
    const bool counts = !report->warmup && !report->shadow && c->count > 0;
    if (counts && frame.silent && frame.number == c->base + report->index) {
        c->first++;
        c->count--;
        if (!c->unseen)
            c->unseen = report->status;
        pop(&frame, report->status);
    }
    c = before;
}

/* Frames for the client. `like` has the same shape and other rows; NULL = any shape. */
static void take_frames(const struct client *like)
{
    static const uint32_t heights[] = {1, 2, 7, 16, 24, 33, 60, ROWS_MAX}, pitches[] = {4, 8, 12, 16};
    const uint32_t rows = PICK(heights), look = take(), sets = 1 + take() % SETS_MAX;
    const enum shape shape = like ? like->frames->shape : (enum shape)(look % SHAPES);
    const uint32_t pitch = like ? like->frames->pitch : pitches[look / 16 % 4];
    c->sets = sets;
    c->frames = shape_frames_padded(w.rig, shape, rows, 4, pitch, sets);
    shape_set_rest(c->frames, look / 64 == 3 ? REST_GAPS : look / 64 == 2 ? REST_PARTIAL : REST_UNDEFINED);
    c->frames->wrapped = look / 32 % 2; /* the first buffers are not wrapped */
    for (uint32_t i = 0; i < sets; i++)
        c->anew[i] = c->frames->wrapped;
    tell("  client %u has frames: %s, %u rows, pitch %u, rest %u, %u sets%s\n", c->number, shape_name(shape), rows,
         pitch, c->frames->rest, sets, c->frames->wrapped ? ", wrapped" : "");
}

/* Inputs stay on devices from frame to frame. With few sets, frames find them there. */
static void let_stay(void)
{
    c->stays = true;
    c->sets = c->sets % 4 ? 1 : 2;
    for (uint32_t i = 0; i < c->frames->binding_count; i++) {
        struct cox__binding *binding = &c->frames->bindings[i];
        binding->stays = binding->access == COX__READ && !binding->scratch && cox__by_rows(binding);
    }
    tell("  its inputs stay\n");
}

static bool tasks_end(void)
{
    bool end = true;
    for (uint32_t i = 0; i < 4; i++)
        end = end && w.task_ns[i] != never;
    return end;
}

/* Begin a session in the client's place, with other frames. */
static void open_client(const struct client *like)
{
    const uint32_t number = c->number, how = take();
    const uint64_t slowest_ns = w.slowest_ns;
    w.act_ns = now();
    if (c->frames)
        shape_frames_free(&c->frames);
    *c = (struct client){.number = number};
    take_frames(like);
    choose_pass_devices(c->frames, how % 4, devices.device_count);
    w.slowest_ns = slowest_ns;
    take_session(devices.device_count, 1);
    c->params.report = on_reported;
    if (how / 64 == 3 && c->params.verify == 0 && c->frames->pass_count > 0)
        let_stay();
    if (like && how & 4)
        c->params.custom_policy = like->params.custom_policy;
    if (like && like->session)
        c->params.warm_start = like->session;
    c->joins = how % 64 / 8 == 7 && tasks_end();
    if (c->joins) {
        c->params.ready = on_ready;
        c->params.ready_user = c;
    }
    tell("  %.6f client %u begins a session%s%s\n", (double)now() * 1e-9, number, c->joins ? " whose devices join" : "",
         c->params.warm_start ? ", warm" : "");
    c->log_from = strlen(rig_log(w.rig));
    begin_session();
    if (c->session)
        check_info();
}

static void close_client(void)
{
    end_session();
    CHECK(!c->joins || c->ready, "the session was never ready");
}

/* Begin a session of the same kind and another size elsewhere. Its first frames run with the last ones of this. */
static void resize(uint32_t how)
{
    struct client *old = c, *next = &clients[(old->number + 1 + how % (CLIENTS - 1)) % CLIENTS];
    c = next;
    if (!next->session)
        open_client(old);
    if (next->session)
        submit_next(true);
    c = old;
}

/* Submit a frame that writes what the newest frame reads. It reads what that writes, or another set's input. */
static void go_back(bool from_another)
{
    if (!c->submitted) /* all were refused */
        return;
    const struct pending *newest = &c->pending[c->submitted - 1];
    if (c->frames->shape != SHAPE_MAP || c->submitted == FRAMES_MAX || !c->count || c->params.in_flight == 1 ||
        newest != &c->pending[c->first + c->count - 1] || newest->back || newest->silent || c->dropped[newest->set])
        return;
    const uint32_t set = newest->set, from = from_another ? (set + 1) % c->sets : set;
    if (c->dropped[from])
        return;
    struct cox__frame_spec frame = shape_frame(c->frames, set);
    cox_buffer *buffers[] = {c->frames->buffers[from][from == set], c->frames->buffers[set][0]};
    struct pending *pending = &c->pending[c->submitted];
    frame.buffers = buffers;
    frame.nowait = true;
    *pending = new_pending(set, false);
    pending->back = true;
    pending->from = from;
    c->submitted++;
    c->count++;
    c->busy[set]++;
    c->busy[from] += from != set;
    tell("  %.6f frame %u goes back\n", (double)now() * 1e-9, pending->number);
    const cox_status status = cox__session_submit(c->session, &frame, on_done, pending);
    if (status == COX_OK)
        return;
    c->count--;
    c->busy[set]--;
    c->busy[from] -= from != set;
    check_refusal(status, true);
}

static void warm(void)
{
    const uint32_t without_memory = heap.failed, struck = fake_struck_by(w.fake, FAKE_MEM_FAILS);
    tell("  %.6f client %u warms up\n", (double)now() * 1e-9, c->number);
    const cox_status status = cox_session_warm(c->session, NULL);
    tell("  %.6f warm: %s\n", (double)now() * 1e-9, cox_status_name(status));
    check_info();
    if (status == COX_E_NO_DEVICE)
        CHECK(all_lost() > 0 || logged("no device is left") || (c->ready && c->ready_status),
              "cox_session_warm has COX_E_NO_DEVICE without reason");
    else if (status)
        CHECK(heap.failed > without_memory || fake_struck_by(w.fake, FAKE_MEM_FAILS) > struck,
              "cox_session_warm has %s without reason", cox_status_name(status));
}

/* ---- surroundings ---- */

static void run_out_of_memory(uint32_t how)
{
    static const uint32_t counts[] = {1, 1, 1, 2, 3, 5, 10, 30};
    heap.skip = how % 32;
    heap.fail = counts[how / 32];
    tell("  after %u allocations, %u fail\n", heap.skip, heap.fail);
}

/* Time passes in which no thread runs, but the devices do. */
static void jump(uint32_t how)
{
    static const uint64_t jumps[] = {1000000,   20000000,   40000000,     150000000,
                                     600000000, 5000000000, 100000000000, 86400000000000};
    const uint64_t ns = jumps[how % 8];
    tell("  %.6f the clock jumps by %.0f ms\n", (double)now() * 1e-9, (double)ns * 1e-6);
    w.jump_ns = ns > w.jump_ns ? ns : w.jump_ns;
    w.longest_ns = ns > w.longest_ns ? ns : w.longest_ns;
    fake_pass(w.fake, now() + ns);
}

/* ---- the life ---- */

static void change_buffers(uint32_t how)
{
    const uint32_t set = how % c->sets;
    if (!c->busy[set]) {
        c->anew[set] = true;
    } else if (!c->dropped[set]) {
        tell("  %.6f the buffers of set %u are destroyed under way\n", (double)now() * 1e-9, set);
        c->dropped[set] = true;
        shape_drop(c->frames, set);
    }
}

static void wait_for_all(void)
{
    tell("  %.6f waits for all\n", (double)now() * 1e-9);
    const cox_status status = cox_session_wait(c->session);
    CHECK(status == c->unseen, "waiting returns %s instead of %s", cox_status_name(status), cox_status_name(c->unseen));
    c->unseen = COX_OK;
    CHECK(c->over == c->submitted, "%u of %u frames are over, and none is under way", c->over, c->submitted);
}

/* One action of one client. */
static void act(void)
{
    static const uint64_t pauses[] = {100000,    1000000,    10000000,   60000000,
                                      200000000, 1000000000, 5000000000, 40000000000};
    const uint32_t what = take(), how = take();
    w.act_ns = now();
    c = &clients[what / 16 % CLIENTS];
    if (!c->session) {
        open_client(NULL);
        return;
    }

    tell("  %.6f client %u:\n", (double)now() * 1e-9, c->number);
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        c->silent = how & 8;
        for (uint32_t k = 0; k <= how % 4; k++)
            submit_next(how & 4);
        c->silent = false;
        if (how & 16)
            go_back(how & 32);
        break;
    case 3:
        run_next();
        break;
    case 4:
        c->chain = 1 + how % 32;
        submit_next(false);
        break;
    case 5:
        pass(pauses[how % 8]);
        break;
    case 6:
        take_fault(FAULTS_ALL, how & 1);
        break;
    case 7:
        run_out_of_memory(how);
        break;
    case 8:
        jump(how);
        break;
    case 9:
        misuse(how);
        break;
    case 10:
        cancel();
        if (how & 1) /* its frames are not cancelled */
            submit_next(true);
        break;
    case 11:
        wait_for_all();
        break;
    case 12:
        warm();
        break;
    case 13:
        resize(how);
        break;
    case 14:
        change_buffers(how);
        break;
    default:
        close_client();
        if (how & 1)
            open_client(NULL);
    }
}

static void play(void)
{
    const uint32_t faults = take() % 8;
    take_devices(&devices, 1 + take() % DEVICES_MAX, ROWS_MAX, true);
    w.slowest_ns *= SHAPE_PASSES_MAX;
    w.rig = rig_new(&devices);
    w.fake = rig_fake(w.rig);
    take_tasks();
    for (uint32_t i = 0; i < faults; i++)
        take_fault(FAULTS_ALL, false);
    while (w.size > 0)
        act();
    for (uint32_t i = 0; i < CLIENTS; i++) {
        c = &clients[i];
        if (c->session)
            close_client();
        if (c->frames)
            shape_frames_free(&c->frames);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t lent = shape_lent();
    if (size > INPUT_MAX)
        return 0;
    begin_life(data, size, CLIENTS);
    in_callback = misuse_in_callback;
    for (uint32_t i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){.number = i};
    c = clients;
    play();
    end_life(lent);
    return 0;
}
