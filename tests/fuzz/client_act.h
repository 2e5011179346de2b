/* Shared by the fuzz targets of the engine: what an application does with a session.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_CLIENT_ACT_H
#define COX_TESTS_FUZZ_CLIENT_ACT_H

#include "client_check.h"

/* The application has written other contents to the buffers. */
static void tell_changed(uint32_t set)
{
    for (uint32_t i = 0; c->stays && i < c->frames->binding_count; i++)
        cox_buffer_changed(c->frames->buffers[set][i]);
}

static void pop(const struct pending *frame, cox_status status)
{
    tell("  %.6f frame %u is over: %s\n", (double)now() * 1e-9, frame->number, cox_status_name(status));
    check_over(frame, status);
    c->busy[frame->set]--;
    c->busy[frame->from] -= frame->back && frame->from != frame->set;
    c->pending[frame->number].status = status;
    if (status == COX_OK && !c->dropped[frame->set] && !c->busy[frame->set]) {
        if (c->refills && !c->stays && c->frames->shape != SHAPE_INPLACE) {
            shape_refill_inputs(c->frames, frame->set, c->submitted);
        }
        c->digests[frame->set] = digest_of(frame->set);
        c->delivered[frame->set] = !frame->back || c->pending[frame->number - 1].status == COX_OK;
    }
    c->over++;
    w.turns = 0;
}

static void submit_next(bool nowait);

static void on_done(void *user, uint64_t number, cox_status status)
{
    const struct pending *frame = user;
    struct client *before = c;
    c = frame->client;
    CHECK(w.inside, "a callback on another thread");
    while (c->count > 0 && c->pending[c->first].run && &c->pending[c->first] != frame) { /* these have ended by now */
        c->first++;
        c->count--;
    }
    CHECK(c->count > 0 && &c->pending[c->first] == frame && frame->number == c->base + number,
          "the callback of frame %llu comes when %u frames are over", (unsigned long long)number, c->over);
    CHECK(c->reports == c->base + number + 1, "no report, or two, of frame %llu", (unsigned long long)number);
    const struct pending copy = *frame;
    c->first++;
    c->count--;
    pop(&copy, status);
    for (uint32_t k = 0; k < 2 && c->chain > 0 && !c->blocked; k++) {
        c->chain--;
        c->has_place = k == 0;
        submit_next(true);
        c->has_place = false;
    }
    if (in_callback)
        in_callback();
    c = before;
}

static bool prepare(uint32_t set)
{
    check_info();
    check_final(set);
    if (c->anew[set] || c->dropped[set]) {
        if (w.inside)
            return false;
        shape_drop(c->frames, set);
        for (uint32_t tries = 0; !shape_make(c->frames, set, c->submitted); tries++)
            CHECK(tries < 2000, "no memory for buffers");
        c->anew[set] = c->dropped[set] = c->tainted[set] = false;
        tell_changed(set);
    } else if (c->refills && (!c->stays || c->submitted % 3 == 0)) {
        shape_refill(c->frames, set, c->submitted);
        tell_changed(set);
    }
    shape_prepare(c->frames, set);
    c->delivered[set] = false;
    return true;
}

static struct pending new_pending(uint32_t set, bool run)
{
    bool known = true;
    for (uint32_t d = 0; d < c->info.device_count; d++)
        known = known && c->info.devices[d].single_device_ns > 0;
    return (struct pending){.client = c,
                            .number = c->submitted,
                            .set = set,
                            .run = run,
                            .submit_ns = now(),
                            .struck = fake_struck(w.fake),
                            .without_memory = heap.failed,
                            .known = known};
}

static void check_refusal(cox_status status, bool nowait)
{
    c->submitted--;
    tell("  %.6f refused: %s\n", (double)now() * 1e-9, cox_status_name(status));
    if (status == COX_E_NO_DEVICE)
        CHECK(logged("no device is left"), "no device, it says");
    else
        CHECK(status == COX_E_BUSY && (nowait || w.inside) && !c->has_place, "a frame is refused with %s",
              cox_status_name(status));
}

static void give_deadline(struct cox__frame_spec *frame, struct pending *pending)
{
    const uint64_t deadlines[] = {w.slowest_ns / 2, 1, 4 * w.slowest_ns, 40 * ms};
    if (!c->drops)
        return;
    frame->late = COX_LATE_DROP;
    frame->deadline_ns = pending->deadline_ns = deadlines[pending->number % 4];
}

static void submit_next(bool nowait)
{
    while (c->busy[c->submitted % c->sets] && !w.inside)
        wait_on("a frame");
    const uint32_t set = c->submitted % c->sets;
    if (c->submitted == FRAMES_MAX || c->busy[set] || !prepare(set))
        return;
    struct cox__frame_spec frame = shape_frame(c->frames, set);
    struct pending *pending = &c->pending[c->submitted];
    frame.nowait = nowait;
    *pending = new_pending(set, false);
    pending->known = false;
    give_deadline(&frame, pending);
    c->submitted++;
    tell("  %.6f frame %u is submitted%s\n", (double)now() * 1e-9, pending->number, w.inside ? " by a callback" : "");
    c->count++;
    c->busy[set]++;
    c->blocked = !w.inside;
    pending->silent = c->silent && !w.inside;
    const cox_status status = cox__session_submit(c->session, &frame, pending->silent ? NULL : on_done, pending);
    c->blocked = false;
    if (status == COX_OK)
        return;
    c->count--;
    c->busy[set]--;
    check_refusal(status, nowait);
}

/* Wait for a free slot first, so that this is the next accepted frame. */
static void run_next(void)
{
    while (c->busy[c->submitted % c->sets] || c->count >= c->params.in_flight)
        wait_on("a frame");
    const uint32_t set = c->submitted % c->sets;
    if (c->submitted == FRAMES_MAX)
        return;
    prepare(set);
    struct cox__frame_spec frame = shape_frame(c->frames, set);
    struct pending *pending = &c->pending[c->submitted];
    *pending = new_pending(set, true);
    give_deadline(&frame, pending);
    c->submitted++;
    tell("  %.6f frame %u is run\n", (double)now() * 1e-9, pending->number);
    c->count++;
    c->busy[set]++;
    const cox_status status = cox__session_run(c->session, &frame);
    const bool reported = c->reports > pending->number; /* it was accepted */
    if ((status == COX_E_NO_DEVICE && !reported) || status == COX_E_BUSY) {
        c->count--;
        c->busy[set]--;
        check_refusal(status, false);
        return;
    }
    if (c->count > 0 && &c->pending[c->first] == pending) {
        c->first++;
        c->count--;
    }
    pop(pending, status);
}

/* ---- sessions ---- */

static void begin_session(void)
{
    const uint32_t without_memory = heap.failed;
    const cox_status status = shape_session(c->frames, &c->params, &c->session);
    CHECK(!status == !!c->session, "%s, but there is %s session", cox_status_name(status), c->session ? "a" : "no");
    if (status)
        CHECK(status == COX_E_DEVICE_LOST || status == COX_E_DEVICE_MEMORY ||
                  (status == COX_E_NOMEM && heap.failed > without_memory),
              "no session: %s", cox_status_name(status));
}

/* Number of calls that took longer than the engine allows, perhaps. A device that runs inside submit hangs there. */
static uint32_t times_blocked(void)
{
    const uint32_t hangs = w.inside_submit ? fake_struck_by(w.fake, FAKE_HANGS) : 0;
    return hangs + fake_struck_by(w.fake, FAKE_SUBMIT_BLOCKS) + fake_struck_by(w.fake, FAKE_INSTANCE_BLOCKS) +
           fake_struck_by(w.fake, FAKE_DESTROY_BLOCKS);
}

static void end_session(void)
{
    tell("  %.6f the session is destroyed\n", (double)now() * 1e-9);
    w.act_ns = now();
    /* A frame submitted now would have to end by the same time. */
    const struct pending last = new_pending(0, false);
    const uint32_t blocked = times_blocked();
    cox_session *session = c->session; /* callbacks still use c->session */
    const size_t log_from = strlen(rig_log(w.rig));
    c->chain = 0;
    cox_session_destroy(&session);
    CHECK(!session, "the session is not destroyed");
    c->session = NULL;
    for (uint32_t set = 0; set < c->sets; set++)
        check_final(set);
    CHECK(c->over == c->submitted, "the session is gone, and %u of %u frames are over", c->over, c->submitted);
    tell("  %.6f it is gone\n", (double)now() * 1e-9);
    CHECK(now() - w.act_ns <= frame_limit_ns(&last) + CLOSE_SECONDS * second, "destroying took %.3f s of at most %.3f",
          (double)(now() - w.act_ns) * 1e-9, (double)frame_limit_ns(&last) * 1e-9 + CLOSE_SECONDS);
    const bool leaks = strstr(rig_log(w.rig) + log_from, "memory is leaked");
    CHECK(w.stuck_ns >= w.act_ns || times_blocked() > blocked || !leaks, "memory is leaked without reason");
    leaked += leaks;
}

static void pass(uint64_t ns)
{
    const uint64_t until_ns = now() + ns;
    tell("  %.6f nothing for %.3f ms\n", (double)now() * 1e-9, (double)ns * 1e-6);
    while (pump(until_ns))
        continue;
}

static void cancel(void)
{
    tell("  %.6f cancels\n", (double)now() * 1e-9);
    for (uint32_t i = 0; i < c->count; i++)
        c->pending[c->first + i].cancelled = true;
    CHECK(cox_session_cancel(c->session) == COX_OK, "cannot cancel");
}

/* ---- the run ---- */

static void begin_life(const uint8_t *data, size_t size, uint32_t client_count)
{
    memset(&w, 0, sizeof w);
    heap.blocks = heap.skip = heap.fail = heap.failed = 0;
    w.data = data;
    w.size = size;
    w.client_count = client_count;
    w.wake_ns = w.due_ns = never;
    w.on = heap.on = true;
}

/* Destroy the runtime. Nothing may be left. */
static void end_life(uint32_t lent_before)
{
    char *log = must(strdup(rig_log(w.rig)));
    struct rig *rig = w.rig;
    w.rig = NULL;
    heap.fail = 0;
    const char *verdict = rig_end(&rig);
    w.fake = NULL;
    const bool leaks = strstr(log, "memory is leaked");
    const bool left = leaks && (strstr(verdict, "objects alive") || strstr(verdict, "the backend was not destroyed"));
    if (*verdict && !left)
        fail("%s\n%s", log, verdict);
    const int64_t blocks = heap.blocks - (w.story != NULL) - 1 - (int64_t)(shape_lent() - lent_before);
    if (blocks && !leaks)
        fail("%s\n%lld blocks of memory are left", log, (long long)blocks);
    free(log);
    if (getenv("COX_STORY"))
        fprintf(stderr, "%s", w.story);
    free(w.story);
    w.on = heap.on = false;
}

#endif
