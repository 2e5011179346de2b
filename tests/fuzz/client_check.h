/* Shared by the fuzz targets of the engine: every guarantee of docs/guide/faults.md, checked for one client.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_CLIENT_CHECK_H
#define COX_TESTS_FUZZ_CLIENT_CHECK_H

#include "client.h"

/* Whether the log of the current session contains the text. */
static bool logged(const char *text)
{
    return strstr(rig_log(w.rig) + c->log_from, text);
}

static uint32_t all_lost(void)
{
    uint32_t sum = 0;
    for (uint32_t d = 0; d < c->info.device_count; d++)
        sum += c->info.devices[d].lost;
    return sum;
}

static void check_info(void)
{
    const struct cox_session_info before = c->info;
    cox_session_info(c->session, &c->info);
    CHECK(c->info.device_count == before.device_count || before.device_count == 0, "the number of devices changes");
    CHECK(c->info.frames_done >= before.frames_done && c->info.frames_done <= c->submitted - c->base,
          "frames_done is %llu of %u", (unsigned long long)c->info.frames_done, c->submitted);
    for (uint32_t d = 0; d < c->info.device_count; d++) {
        const struct cox_session_device *of = &c->info.devices[d], *was = &before.devices[d];
        const bool out = of->state != COX_DEVICE_ACTIVE && !c->joins;
        CHECK(of->lost >= of->returned + out, /* probation may fail */
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
    for (uint32_t i = 0; i < c->frames->binding_count; i++) {
        const cox_buffer *buffer = c->frames->buffers[set][i];
        if (!buffer)
            continue;
        const unsigned char *data = cox_buffer_data(buffer);
        for (size_t b = 0; c->frames->bindings[i].access != COX__READ && b < buffer->bytes; b++)
            digest = (digest ^ data[b]) * 0x100000001b3u;
    }
    return digest;
}

static void check_final(uint32_t set)
{
    CHECK(!c->delivered[set] || c->dropped[set] || c->digests[set] == digest_of(set),
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
           (c->frames->wrapped || slow || heap.failed || fake_struck_by(w.fake, FAKE_MEM_FAILS));
}

/* Whether a pass works in place. */
static bool is_in_place(void)
{
    return c->frames->shape == SHAPE_INPLACE || c->frames->shape == SHAPE_THEN_INPLACE;
}

static bool reduces(void)
{
    return c->frames->shape == SHAPE_COUNT || c->frames->shape == SHAPE_CURVE || c->frames->shape == SHAPE_ALL;
}

/* Whether wrong rows of a faulty device are always detected. */
static bool is_verified(void)
{
    bool parts = false; /* partial results are not compared if bands are checked in parts */
    for (uint32_t d = 0; d < c->info.device_count; d++)
        parts |= reduces() && c->info.devices[d].max_rows < c->frames->rows;
    return c->params.verify == 1 && !parts && !is_in_place() && !logged("are not verified") &&
           !logged("shadow runs and checks are");
}

/* Whether bytes that no kernel writes are defined. A device that fails or is given up leaves garbage there, except
 * where they keep their values in any case. */
static bool keeps_padding(void)
{
    static const enum fake_fault_kind garbage[] = {FAKE_EVENT_FAILS, FAKE_FAILS_LATE, FAKE_DEVICE_DIES};
    bool keeps = !logged("are abandoned");
    if (c->frames->rest != REST_UNDEFINED && !is_in_place())
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
                   set_ns = c->params.device_timeout_ns ? c->params.device_timeout_ns : 10 * second;
    const uint64_t timeout = set_ns > 10 * expected ? set_ns : 10 * expected;
    const uint64_t compile = frame->known && c->params.device_timeout_ns ? 0 : 20 * second;
    const uint64_t limit = (timeout + expected + 250 * ms + compile) * (c->params.device_timeout_ns ? 1 : 10);
    return w.client_count * (limit + 10 * w.longest_ns) * (2 + fake_struck(w.fake) - frame->struck);
}

/* Check a frame that goes back, after the frame before it. Returns whether that is all. */
static bool check_back(const struct pending *frame, cox_status status)
{
    const bool reads_it = frame->from == frame->set;
    const cox_status before = reads_it ? c->pending[frame->number - 1].status : COX_OK;
    CHECK(!before || status, "frame %u is COX_OK, but it reads what frame %u has not written", frame->number,
          frame->number - 1);
    if (before && status == before)
        return true;

    /* An earlier frame should have written the other set's input. */
    for (uint32_t n = c->base; n < frame->number && !reads_it; n++)
        if (status && c->pending[n].back && c->pending[n].set == frame->from && c->pending[n].status == status)
            return true;
    if (status || c->dropped[frame->set] || c->dropped[frame->from] ||
        (fake_struck_by(w.fake, FAKE_CORRUPTS) && !is_verified()))
        return status == COX_OK;

    cox_buffer *const *from = c->frames->buffers[frame->from];
    const char *wrong = shape_check_map(c->frames, from[reads_it], frame->set);
    CHECK(!*wrong, "frame %u goes back: %s", frame->number, wrong);
    return true;
}

static void check_over(const struct pending *frame, cox_status status)
{
    const uint64_t took_ns = now() - frame->submit_ns;
    check_info();
    CHECK(took_ns <= frame_limit_ns(frame), "frame %u took %.3f s of at most %.3f", frame->number,
          (double)took_ns * 1e-9, (double)frame_limit_ns(frame) * 1e-9);
    for (uint32_t i = 0; i < c->frames->binding_count && !c->dropped[frame->set]; i++)
        CHECK(!c->frames->buffers[frame->set][i] || !fake_at_work(w.fake, c->frames->buffers[frame->set][i]->mem),
              "frame %u has ended while a device works on its buffer %u", frame->number, i);
    if (frame->back && check_back(frame, status))
        return;
    switch (status) {
    case COX_OK:;
        CHECK(!frame->cancelled, "frame %u was cancelled", frame->number);
        CHECK(!c->tainted[frame->set], "frame %u is in tainted memory", frame->number);
        if (c->dropped[frame->set] || (fake_struck_by(w.fake, FAKE_CORRUPTS) && !is_verified()))
            break;
        const char *wrong = shape_check(c->frames, frame->set);
        if (!*wrong && keeps_padding())
            wrong = shape_check_padding(c->frames, frame->set);
        CHECK(!*wrong, "frame %u: %s", frame->number, wrong);
        break;
    case COX_E_DEVICE_LOST:
        CHECK((is_in_place() && all_lost() > 0) || logged("no device is left"),
              "frame %u has COX_E_DEVICE_LOST without reason", frame->number);
        break;
    case COX_E_MISMATCH:
        CHECK(c->params.verify > 0 && fake_struck_by(w.fake, FAKE_CORRUPTS),
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
        CHECK(c->tainted[frame->set] || may_be_tainted(), "frame %u has COX_E_MEMORY_UNSAFE without reason",
              frame->number);
        c->tainted[frame->set] = true;
        c->anew[frame->set] |= frame->number % 2;
        break;
    case COX_E_NOMEM: /* for scratch */
        CHECK(heap.failed > frame->without_memory || (c->frames->pass_count > 1 && may_be_tainted()),
              "frame %u has COX_E_NOMEM without reason", frame->number);
        break;
    case COX_E_NO_DEVICE:
        CHECK(c->ready && c->ready_status, "frame %u has COX_E_NO_DEVICE without reason", frame->number);
        break;
    default:
        fail("frame %u ends with %s", frame->number, cox_status_name(status));
    }
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    uint32_t counted[SHAPE_PASSES_MAX][64] = {{0}};
    struct client *before = c;
    if (report->warmup || report->shadow)
        return;
    c = user;
    const uint32_t passes = c->frames->pass_count ? c->frames->pass_count : 1;
    CHECK(c->base + report->index == c->reports, "the report of frame %llu comes instead of that of frame %u",
          (unsigned long long)report->index, c->reports);
    c->reports++;
    CHECK(report->pass_count <= passes && (report->status || report->pass_count == passes),
          "the report of frame %llu has %u passes", (unsigned long long)report->index, report->pass_count);
    for (uint32_t b = 0; b < report->band_count && report->status == COX_OK; b++)
        for (uint32_t r = 0; r < report->bands[b].rows && report->bands[b].status == COX_OK; r++)
            counted[report->bands[b].pass][report->bands[b].first_row + r]++;
    for (uint32_t r = 0; r < passes * c->frames->rows && report->status == COX_OK; r++)
        CHECK(counted[r / c->frames->rows][r % c->frames->rows] == 1, "frame %llu, pass %u: row %u counts %u times",
              (unsigned long long)report->index, r / c->frames->rows, r % c->frames->rows,
              counted[r / c->frames->rows][r % c->frames->rows]);
    c = before;
}

#endif
