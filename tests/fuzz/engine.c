/* Fuzz target: a simulation of the session engine on one thread (one_thread.h). The input is a scenario: devices, a
 * session, the application's actions, and faults. Every guarantee of docs/guide/faults.md is checked.
 *
 * If a check fails, the scenario and its events are printed. COX_STORY in the environment prints them always.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/policies/registry.h"
#include "specs.h"
#include "one_thread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- checks ---- */

/* Whether the log of the current session contains the text. */
static bool logged(const char *text)
{
    return strstr(rig_log(w.rig) + w.log_from, text);
}

static uint32_t all_lost(void)
{
    uint32_t sum = 0;
    for (uint32_t d = 0; d < w.info.device_count; d++)
        sum += w.info.devices[d].lost;
    return sum;
}

static void check_info(void)
{
    const struct cox_session_info before = w.info;
    cox_session_info(w.session, &w.info);
    CHECK(w.info.device_count == before.device_count || before.device_count == 0, "the number of devices changes");
    CHECK(w.info.frames_done >= before.frames_done && w.info.frames_done <= w.submitted - w.base,
          "frames_done is %llu of %u", (unsigned long long)w.info.frames_done, w.submitted);
    for (uint32_t d = 0; d < w.info.device_count; d++) {
        const struct cox_session_device *of = &w.info.devices[d], *was = &before.devices[d];
        CHECK(of->lost >= of->returned + (of->state != COX_DEVICE_ACTIVE), /* probation may fail */
              "device %u is %s, lost %u times and returned %u times", d, cox_device_state_name(of->state), of->lost,
              of->returned);
        CHECK(of->lost >= was->lost && of->returned >= was->returned, "device %u: a count shrinks", d);
        CHECK(of->device == was->device || before.device_count == 0, "index %u denotes another device", d);
    }
}

/* A digest of what the frame wrote (Fowler, Noll and Vo's FNV-1a, 64 bits). */
static uint64_t digest_of(uint32_t set)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < w.frames->binding_count; i++) {
        const cox_buffer *buffer = w.frames->buffers[set][i];
        if (!buffer)
            continue;
        const unsigned char *data = cox_buffer_data(buffer);
        for (size_t b = 0; w.frames->bindings[i].access != COX__READ && b < buffer->bytes; b++)
            digest = (digest ^ data[b]) * 0x100000001b3u;
    }
    return digest;
}

static void check_final(uint32_t set)
{
    CHECK(!w.delivered[set] || w.dropped[set] || w.digests[set] == digest_of(set),
          "a frame of set %u changes after it was delivered", set);
}

/* Whether a frame may be tainted: new memory came too late or failed, or the library may not replace wrapped
 * memory. */
static bool may_be_tainted(void)
{
    bool slow = false;
    for (uint32_t i = 0; i < 4; i++)
        slow |= w.task_ns[i] > 20 * ms;
    return strstr(rig_log(w.rig), "are abandoned") &&
           (w.frames->wrapped || slow || fake_struck_by(w.fake, FAKE_MEM_FAILS));
}

/* Whether a pass works in place. */
static bool is_in_place(void)
{
    return w.frames->shape == SHAPE_INPLACE || w.frames->shape == SHAPE_THEN_INPLACE;
}

static bool reduces(void)
{
    return w.frames->shape == SHAPE_COUNT || w.frames->shape == SHAPE_CURVE || w.frames->shape == SHAPE_ALL;
}

/* Whether wrong rows of a faulty device are always detected. */
static bool is_verified(void)
{
    bool parts = false; /* partial results are not compared if bands are checked in parts */
    for (uint32_t d = 0; d < w.info.device_count; d++)
        parts |= reduces() && w.info.devices[d].max_rows < w.frames->rows;
    return w.params.verify == 1 && !parts && !is_in_place() && !logged("are not verified") &&
           !logged("shadow runs and checks are");
}

/* Whether bytes that no kernel writes are defined. A device that fails or is given up leaves garbage there, except
 * where they keep their values in any case. */
static bool keeps_padding(void)
{
    static const enum fake_fault_kind garbage[] = {FAKE_EVENT_FAILS, FAKE_FAILS_LATE, FAKE_DEVICE_DIES};
    bool keeps = !logged("are abandoned");
    if (w.frames->rest != REST_UNDEFINED && !is_in_place())
        return true;
    for (uint32_t i = 0; i < 3; i++)
        keeps = keeps && !fake_struck_by(w.fake, garbage[i]);
    return keeps;
}

/* The longest time of a frame: the timeout of a band, or ten times that if no other device is left, once more after
 * every fault. */
static uint64_t frame_limit_ns(const struct pending *frame)
{
    const uint64_t expected = w.slowest_ns * 8,
                   set_ns = w.params.device_timeout_ns ? w.params.device_timeout_ns : 10 * second;
    const uint64_t timeout = set_ns > 10 * expected ? set_ns : 10 * expected;
    const uint64_t compile = frame->known && w.params.device_timeout_ns ? 0 : 20 * second;
    const uint64_t limit = (timeout + expected + 250 * ms + compile) * (w.params.device_timeout_ns ? 1 : 10);
    return (limit + 10 * w.longest_ns) * (2 + fake_struck(w.fake) - frame->struck);
}

static void check_over(const struct pending *frame, cox_status status)
{
    const uint64_t took_ns = now() - frame->submit_ns;
    check_info();
    CHECK(took_ns <= frame_limit_ns(frame), "frame %u took %.3f s of at most %.3f", frame->number,
          (double)took_ns * 1e-9, (double)frame_limit_ns(frame) * 1e-9);
    for (uint32_t i = 0; i < w.frames->binding_count && !w.dropped[frame->set]; i++)
        CHECK(!w.frames->buffers[frame->set][i] || !fake_at_work(w.fake, w.frames->buffers[frame->set][i]->mem),
              "frame %u has ended while a device works on its buffer %u", frame->number, i);
    switch (status) {
    case COX_OK:;
        CHECK(!frame->cancelled, "frame %u was cancelled", frame->number);
        CHECK(!w.tainted[frame->set], "frame %u is in tainted memory", frame->number);
        if (w.dropped[frame->set] || (fake_struck_by(w.fake, FAKE_CORRUPTS) && !is_verified()))
            break;
        const char *wrong = shape_check(w.frames, frame->set);
        if (!*wrong && keeps_padding())
            wrong = shape_check_padding(w.frames, frame->set);
        CHECK(!*wrong, "frame %u: %s", frame->number, wrong);
        break;
    case COX_E_DEVICE_LOST:
        CHECK((is_in_place() && all_lost() > 0) || logged("no device is left"),
              "frame %u has COX_E_DEVICE_LOST without reason", frame->number);
        break;
    case COX_E_MISMATCH:
        CHECK(w.params.verify > 0 && fake_struck_by(w.fake, FAKE_CORRUPTS),
              "frame %u has COX_E_MISMATCH without reason", frame->number);
        break;
    case COX_E_CANCELLED:
        CHECK(frame->cancelled, "frame %u was not cancelled", frame->number);
        break;
    case COX_E_LATE:
        CHECK(frame->deadline_ns && took_ns >= frame->deadline_ns, "frame %u ends as late after %llu ns", frame->number,
              (unsigned long long)took_ns);
        break;
    case COX_E_MEMORY_UNSAFE:
        CHECK(w.tainted[frame->set] || may_be_tainted(), "frame %u has COX_E_MEMORY_UNSAFE without reason",
              frame->number);
        w.tainted[frame->set] = true;
        w.anew[frame->set] |= frame->number % 2;
        break;
    case COX_E_NOMEM: /* for scratch */
        CHECK(w.frames->pass_count > 1 && may_be_tainted(), "frame %u has COX_E_NOMEM without reason", frame->number);
        break;
    default:
        fail("frame %u ends with %s", frame->number, cox_status_name(status));
    }
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    uint32_t counted[SHAPE_PASSES_MAX][64] = {{0}};
    const uint32_t passes = w.frames->pass_count ? w.frames->pass_count : 1;
    (void)user;
    if (report->warmup || report->shadow)
        return;
    CHECK(w.base + report->index == w.reports, "the report of frame %llu comes instead of that of frame %u",
          (unsigned long long)report->index, w.reports);
    w.reports++;
    CHECK(report->pass_count <= passes && (report->status || report->pass_count == passes),
          "the report of frame %llu has %u passes", (unsigned long long)report->index, report->pass_count);
    for (uint32_t b = 0; b < report->band_count && report->status == COX_OK; b++)
        for (uint32_t r = 0; r < report->bands[b].rows && report->bands[b].status == COX_OK; r++)
            counted[report->bands[b].pass][report->bands[b].first_row + r]++;
    for (uint32_t r = 0; r < passes * w.frames->rows && report->status == COX_OK; r++)
        CHECK(counted[r / w.frames->rows][r % w.frames->rows] == 1, "frame %llu, pass %u: row %u counts %u times",
              (unsigned long long)report->index, r / w.frames->rows, r % w.frames->rows,
              counted[r / w.frames->rows][r % w.frames->rows]);
}

/* ---- the application ---- */

static void pop(const struct pending *frame, cox_status status)
{
    tell("  %.6f frame %u is over: %s\n", (double)now() * 1e-9, frame->number, cox_status_name(status));
    check_over(frame, status);
    if (status == COX_OK && !w.dropped[frame->set]) {
        if (w.refills && w.frames->shape != SHAPE_INPLACE)
            shape_refill_inputs(w.frames, frame->set, w.submitted);
        w.digests[frame->set] = digest_of(frame->set);
        w.delivered[frame->set] = true;
    }
    w.busy[frame->set] = false;
    w.over++;
}

static void submit_next(bool nowait);

static void on_done(void *user, uint64_t number, cox_status status)
{
    const struct pending *frame = user;
    CHECK(w.inside, "a callback on another thread");
    while (w.count > 0 && w.pending[w.first].run && &w.pending[w.first] != frame) { /* these have ended by now */
        w.first++;
        w.count--;
    }
    CHECK(w.count > 0 && &w.pending[w.first] == frame && frame->number == w.base + number,
          "the callback of frame %llu comes when %u frames are over", (unsigned long long)number, w.over);
    CHECK(w.reports == w.base + number + 1, "no report, or two, of frame %llu", (unsigned long long)number);
    const struct pending copy = *frame;
    w.first++;
    w.count--;
    pop(&copy, status);
    for (uint32_t k = 0; k < 2 && w.chain > 0 && !w.blocked; k++) {
        w.chain--;
        w.has_place = k == 0;
        submit_next(true);
        w.has_place = false;
    }
}

static bool prepare(uint32_t set)
{
    check_info();
    check_final(set);
    if (w.anew[set] || w.dropped[set]) {
        if (w.inside)
            return false;
        shape_drop(w.frames, set);
        for (uint32_t tries = 0; !shape_make(w.frames, set, w.submitted); tries++)
            CHECK(tries < 100, "no memory for buffers");
        w.anew[set] = w.dropped[set] = w.tainted[set] = false;
    } else if (w.refills) {
        shape_refill(w.frames, set, w.submitted);
    }
    shape_prepare(w.frames, set);
    w.delivered[set] = false;
    return true;
}

static struct pending new_pending(uint32_t set, bool run)
{
    bool known = true;
    for (uint32_t d = 0; d < w.info.device_count; d++)
        known = known && w.info.devices[d].single_device_ns > 0;
    return (struct pending){.number = w.submitted,
                            .set = set,
                            .run = run,
                            .submit_ns = now(),
                            .struck = fake_struck(w.fake),
                            .known = known};
}

static void check_refusal(cox_status status, bool nowait)
{
    w.submitted--;
    tell("  %.6f refused: %s\n", (double)now() * 1e-9, cox_status_name(status));
    if (status == COX_E_NO_DEVICE)
        CHECK(logged("no device is left"), "no device, it says");
    else
        CHECK(status == COX_E_BUSY && (nowait || w.inside) && !w.has_place, "a frame is refused with %s",
              cox_status_name(status));
}

static void give_deadline(struct cox__frame_spec *frame, struct pending *pending)
{
    const uint64_t deadlines[] = {w.slowest_ns / 2, 1, 4 * w.slowest_ns, 40 * ms};
    if (!w.drops)
        return;
    frame->late = COX_LATE_DROP;
    frame->deadline_ns = pending->deadline_ns = deadlines[pending->number % 4];
}

static void submit_next(bool nowait)
{
    while (w.busy[w.submitted % w.sets] && !w.inside)
        wait_on("a frame");
    const uint32_t set = w.submitted % w.sets;
    if (w.submitted == FRAMES_MAX || w.busy[set] || !prepare(set))
        return;
    struct cox__frame_spec frame = shape_frame(w.frames, set);
    struct pending *pending = &w.pending[w.submitted];
    frame.nowait = nowait;
    *pending = (struct pending){.number = w.submitted, .set = set, .submit_ns = now(), .struck = fake_struck(w.fake)};
    give_deadline(&frame, pending);
    w.submitted++;
    tell("  %.6f frame %u is submitted%s\n", (double)now() * 1e-9, pending->number, w.inside ? " by a callback" : "");
    w.count++;
    w.busy[set] = true;
    w.blocked = !w.inside;
    const cox_status status = cox__session_submit(w.session, &frame, on_done, pending);
    w.blocked = false;
    if (status == COX_OK)
        return;
    w.count--;
    w.busy[set] = false;
    check_refusal(status, nowait);
}

/* Wait for a free slot first, so that this is the next accepted frame. */
static void run_next(void)
{
    while (w.busy[w.submitted % w.sets] || w.count >= w.params.in_flight)
        wait_on("a frame");
    const uint32_t set = w.submitted % w.sets;
    if (w.submitted == FRAMES_MAX)
        return;
    prepare(set);
    struct cox__frame_spec frame = shape_frame(w.frames, set);
    struct pending *pending = &w.pending[w.submitted];
    *pending = new_pending(set, true);
    give_deadline(&frame, pending);
    w.submitted++;
    tell("  %.6f frame %u is run\n", (double)now() * 1e-9, pending->number);
    w.count++;
    w.busy[set] = true;
    const cox_status status = cox__session_run(w.session, &frame);
    if (status == COX_E_NO_DEVICE || status == COX_E_BUSY) {
        w.count--;
        w.busy[set] = false;
        check_refusal(status, false);
        return;
    }
    if (w.count > 0 && &w.pending[w.first] == pending) {
        w.first++;
        w.count--;
    }
    pop(pending, status);
}

/* ---- the scenario ---- */

static const uint64_t delays[] = {1000, 100000, 5000000, 30000000, 120000000, 600000000, 3000000000, UINT64_MAX};

static void take_fault(bool at_once)
{
    static const struct {
        enum fake_fault_kind kind;
        const char *name;
    } kinds[] = {
        {FAKE_HANGS, "hangs"},
        {FAKE_EVENT_FAILS, "fails"},
        {FAKE_SUBMIT_FAILS, "fails at submit"},
        {FAKE_DEVICE_DIES, "dies"},
        {FAKE_FAILS_LATE, "fails, and ends later"},
        {FAKE_CORRUPTS, "corrupts"},
        {FAKE_SLOW, "is slow"},
        {FAKE_SUBMIT_BLOCKS, "blocks in submit"},
        {FAKE_INSTANCE_FAILS, "cannot be had"},
        {FAKE_MEM_FAILS, "(memory fails)"},
        {FAKE_NO_POST, "posts nothing"},
        {FAKE_POST_TWICE, "posts twice"},
        {FAKE_POST_EARLY, "posts early"},
        {FAKE_POST_LATE, "posts late"},
        {FAKE_LIES_PROFILE, "lies in its profile"},
        {FAKE_END_EARLY, "says that it ended early"},
    };
    static const enum fake_fault_kind stuck[] = {FAKE_SUBMIT_STUCK, FAKE_FLUSH_STUCK, FAKE_POLL_STUCK};
    static const uint32_t counts[] = {1, 1, 2, 3, 5, 8, 20, UINT32_MAX};
    const uint32_t what = take(), when = take(), how = take();
    if (w.faults == FAULTS_MOST)
        return;
    w.faults++;
    struct fake_fault fault = {.kind = kinds[what % 16].kind,
                               .device = what / 16 % DEVICES_MAX,
                               .skip = when % 32,
                               .count = counts[when / 32],
                               .status = what / 64 % 2 ? COX_E_DEVICE_MEMORY : COX_E_DEVICE_LOST,
                               .delay_ns = delays[how % 8],
                               .factor = (double)(1u << how / 16 % 8)};
    if (fault.kind == FAKE_SUBMIT_BLOCKS && fault.delay_ns == never)
        fault.delay_ns = second;
    if (fault.kind == FAKE_SUBMIT_BLOCKS && how & 8)
        fault.kind = stuck[how / 16 % 3];
    if (fault.kind == FAKE_DEVICE_DIES && fault.delay_ns == never)
        fault.delay_ns = 0;
    if (fault.kind == FAKE_MEM_FAILS && fault.count > 20)
        fault.count = 20;
    if (at_once)
        fault.skip %= 4;
    if (fault.delay_ns != never && fault.delay_ns > w.longest_ns)
        w.longest_ns = fault.delay_ns;
    if (fault.kind == FAKE_SLOW && fault.factor > w.slower)
        w.slower = fault.factor;
    tell("  device %u %s after %u bands, %u times: %.3f ms, factor %.0f, %s\n", fault.device, kinds[what % 16].name,
         fault.skip, fault.count, told_ms(fault.delay_ns), fault.factor, cox_status_name(fault.status));
    fake_script(w.fake, &fault);
}

static void take_devices(struct fake_params *devices, uint32_t kind_of_frames, uint32_t rows)
{
    static const double costs[] = {1e3, 1e4, 3e4, 1e5, 1e5, 3e5, 1e6, 4e6};
    static const enum cox_memory_mode modes[] = {COX_MODE_MAPPED, COX_MODE_STAGED, COX_MODE_SHARED, COX_MODE_MAPPED};
    *devices = (struct fake_params){.device_count = 1 + kind_of_frames % DEVICES_MAX, .driven = true};
    for (uint32_t d = 0; d < devices->device_count; d++) {
        const uint32_t kind = take(), cost = take();
        struct fake_device *device = &devices->devices[d];
        *device = (struct fake_device){.mode = modes[kind % 4],
                                       .type = kind & 4 ? COX_DEVICE_GPU : COX_DEVICE_CPU,
                                       .inside_submit = (kind & 24) == 24,
                                       .no_profile = kind & 32,
                                       .align_bytes = kind & 64 ? 64 : 4,
                                       .max_rows = kind & 128 ? rows / 3 + 1 : 0,
                                       .ns_per_row = costs[cost % 8],
                                       .fixed_ns = cost & 8 ? 2e5 : 0,
                                       .jitter = cost & 16 ? 0.3 : 0,
                                       .parts = 1 + cost % 3,
                                       .copy_in_ns_per_row = cost & 32 ? costs[cost % 8] / 2 : 0,
                                       .copy_out_ns_per_row = cost & 64 ? costs[cost % 8] : 0};
        const double frame_ns = device->fixed_ns + 2.5 * 1.3 * device->ns_per_row * rows;
        w.slowest_ns = frame_ns > (double)w.slowest_ns ? (uint64_t)frame_ns : w.slowest_ns;
        tell("device %u: %s %s, %.0f ns a row, %.0f ns a band%s%s%s\n", d, cox_memory_mode_name(device->mode),
             device->type == COX_DEVICE_GPU ? "GPU" : "CPU", device->ns_per_row, device->fixed_ns,
             device->inside_submit ? ", runs inside submit" : "", device->max_rows ? ", few rows at once" : "",
             device->jitter > 0 ? ", jitters" : "");
    }
}

/* Those of the programs show that the engine takes any policy. */
static const struct cox_policy *take_policy(uint32_t devices, uint32_t rows, uint32_t row_alignment)
{
    static const char *const names[] = {"adaptive", "static", "single",  "last-frame", "mean10",
                                        "ewma",     "chunks", "hguided", NULL};
    const char *name = PICK(names);
    uint64_t seed = rows;
    rig_split_count = 0;
    for (uint32_t i = 0; i < FRAMES_MAX; i++)
        rig_add_random_split(&seed, rows, row_alignment, devices);
    return name ? program_policy_find(name) : &rig_policy;
}

static void begin_session(void)
{
    const cox_status status = shape_session(w.frames, &w.params, &w.session);
    if (status)
        CHECK(status == COX_E_DEVICE_LOST || status == COX_E_DEVICE_MEMORY, "no session: %s", cox_status_name(status));
}

static void end_session(void)
{
    tell("  %.6f the session is destroyed\n", (double)now() * 1e-9);
    w.act_ns = now();
    /* A frame submitted now would have to end by the same time. */
    const struct pending last = new_pending(0, false);
    const uint32_t blocked = fake_struck_by(w.fake, FAKE_SUBMIT_BLOCKS);
    cox_session *session = w.session; /* callbacks still use w.session */
    w.chain = 0;
    cox_session_destroy(&session);
    w.session = NULL;
    for (uint32_t set = 0; set < w.sets; set++)
        check_final(set);
    CHECK(w.over == w.submitted, "the session is gone, and %u of %u frames are over", w.over, w.submitted);
    tell("  %.6f it is gone\n", (double)now() * 1e-9);
    CHECK(now() - w.act_ns <= frame_limit_ns(&last) + CLOSE_SECONDS * second, "destroying took %.3f s of at most %.3f",
          (double)(now() - w.act_ns) * 1e-9, (double)frame_limit_ns(&last) * 1e-9 + CLOSE_SECONDS);
    CHECK(w.stuck_ns >= w.act_ns || fake_struck_by(w.fake, FAKE_SUBMIT_BLOCKS) > blocked || !logged("memory is leaked"),
          "memory is leaked without reason");
    leaked += logged("memory is leaked");
}

/* Replace the session by another one of the same kind, with the same buffers. */
static void change_session(void)
{
    end_session();
    w.info = (struct cox_session_info){0};
    w.base = w.reports = w.submitted;
    w.log_from = strlen(rig_log(w.rig));
    begin_session();
    if (w.session)
        check_info();
}

static void take_session(uint32_t devices, uint32_t row_alignment)
{
    static const uint64_t give_ups[] = {0, 30000000, 100000000, 500000000};
    static const double shares[] = {0, 0, 0.3, 1};
    const uint32_t flags = take(), more = take();
    w.params = (struct cox__session_spec){.custom_policy = take_policy(devices, w.frames->rows, row_alignment),
                                          .in_flight = 1 + more % 4,
                                          .min_band_rows = more / 4 % 4 * 4,
                                          .verify = shares[more / 16 % 4],
                                          .device_timeout_ns = give_ups[more / 64],
                                          .no_warmup = flags & 8,
                                          .split_each_pass = flags & 64,
                                          .report = on_report};
    w.refills = flags & 16;
    w.drops = flags & 128;
    w.lag_ns = flags & 32 ? 50 * us : 0;
    tell("session: policy %s, %u in flight, verify %.1f, time limit %.0f ms%s%s%s\n", w.params.custom_policy->name,
         w.params.in_flight, w.params.verify, (double)w.params.device_timeout_ns * 1e-6,
         w.params.no_warmup ? ", no warm-up" : "", w.refills ? ", inputs change" : "",
         w.drops ? ", late frames are dropped" : "");
    begin_session();
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
    for (uint32_t i = 0; i < w.count; i++)
        w.pending[w.first + i].cancelled = true;
    CHECK(cox_session_cancel(w.session) == COX_OK, "cannot cancel");
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
        w.chain = 1 + how;
        submit_next(false);
        break;
    case 4:
        pass(pauses[how % 8]);
        break;
    case 5:
        take_fault(true);
        break;
    case 6:
        if (how % 8 >= 6)
            cancel();
        if (how % 8 == 6)
            break;
        tell("  %.6f waits for all\n", (double)now() * 1e-9);
        cox_session_wait(w.session);
        CHECK(w.over == w.submitted, "%u of %u frames are over, and none is under way", w.over, w.submitted);
        break;
    default:
        if (how == 31)
            change_session();
        else if (!w.busy[how % w.sets]) {
            tell("  %.6f other buffers for set %u\n", (double)now() * 1e-9, how % w.sets);
            w.anew[how % w.sets] = true;
        } else if (!w.dropped[how % w.sets]) {
            tell("  %.6f the buffers of set %u are destroyed under way\n", (double)now() * 1e-9, how % w.sets);
            w.dropped[how % w.sets] = true;
            shape_drop(w.frames, how % w.sets);
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

/* Some passes run on one device only. */
static void choose_pass_devices(struct shape_frames *frames, uint32_t how, uint32_t devices)
{
    const uint32_t last = frames->pass_count - 1;
    if (!frames->pass_count)
        return;
    if (how & 1)
        frames->pass_device_plus_1[0] = 1;
    if (how & 2) {
        frames->pass_device_plus_1[last] = devices;
        frames->pass_policy = "chunks";
    }
    w.slowest_ns *= frames->pass_count;
    tell("passes: the first on %s, the last on %s\n", how & 1 ? "device 0" : "all",
         how & 2 ? "the last device" : "all");
}

static void play(void)
{
    struct fake_params devices;
    static const uint32_t heights[] = {1, 2, 7, 16, 24, 33, 60, 64}, pitches[] = {4, 8, 12, 16};
    const uint32_t rows = PICK(heights), look = take(), kind = take();
    take_devices(&devices, kind, rows);
    w.rig = rig_new(&devices);
    w.fake = rig_fake(w.rig);
    w.sets = 1 + take() % SETS_MAX;
    w.frames = shape_frames_padded(w.rig, shape_of(kind, look), rows, 4, pitches[look / 8 % 4], w.sets);
    choose_pass_devices(w.frames, kind / 64, devices.device_count);
    shape_set_rest(w.frames, look / 64 == 3 ? REST_GAPS : look / 64 == 2 ? REST_PARTIAL : REST_UNDEFINED);
    w.frames->wrapped = look / 32 % 2; /* the first buffers are not wrapped */
    for (uint32_t i = 0; i < w.sets; i++)
        w.anew[i] = w.frames->wrapped;
    static const char *const rests[] = {"", ", written in part", ", with gaps"};
    tell("frames: %s, %u rows of 4 bytes, %u apart%s, %u sets of%s buffers\n", shape_name(w.frames->shape), rows,
         w.frames->pitch, rests[w.frames->rest], w.sets, w.frames->wrapped ? " wrapped" : "");
    static const uint64_t takes[] = {0, 0, 0, 1000000, 60000000, 300000000, 2500000000, UINT64_MAX};
    const uint32_t tasks = take();
    w.task_ns[0] = takes[tasks % 8];
    w.task_ns[1] = takes[tasks / 8 % 8];
    w.task_ns[2] = takes[tasks / 64 % 4];
    for (uint32_t i = 0; i < 4; i++) {
        if (leaked > LEAKED_MAX)
            w.task_ns[i] = least(w.task_ns[i], 60 * ms);
        w.longest_ns = w.task_ns[i] != never && w.task_ns[i] > w.longest_ns ? w.task_ns[i] : w.longest_ns;
    }
    tell("tasks take %.0f, %.0f, %.0f, 0 ms (-1: never end)\n", told_ms(w.task_ns[0]), told_ms(w.task_ns[1]),
         told_ms(w.task_ns[2]));
    const uint32_t faults = take() % FAULTS_FIRST;
    for (uint32_t i = 0; i < faults; i++)
        take_fault(false);
    take_session(devices.device_count, 1);
    if (w.session) {
        check_info();
        while (w.size > 0 && w.session)
            act();
        if (w.session)
            end_session();
    }
    shape_frames_free(&w.frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX)
        return 0;
    memset(&w, 0, sizeof w);
    w.data = data;
    w.size = size;
    w.wake_ns = w.due_ns = never;
    w.on = true;
    play();
    char *log = strdup(rig_log(w.rig));
    struct rig *rig = w.rig;
    w.rig = NULL;
    const char *verdict = rig_end(&rig);
    w.fake = NULL;
    const bool left = strstr(log, "memory is leaked") &&
                      (strstr(verdict, "objects alive") || strstr(verdict, "the backend was not destroyed"));
    if (*verdict && !left)
        fail("%s\n%s", log, verdict);
    free(log);
    if (getenv("COX_STORY"))
        fprintf(stderr, "%s", w.story);
    free(w.story);
    w.on = false;
    return 0;
}
