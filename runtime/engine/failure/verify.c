/* Before a frame is delivered, a second device, the peer, repeats a sampled share of its bands. The
 * results are compared bit for bit.
 *
 * If the band's owner and its peer disagree, there is a vote (enum cox__vote_state). Each of the
 * two first repeats the rows, because a kernel that is not deterministic looks like a faulty
 * device. For these repetitions the engine changes what a result must not depend on: the outputs'
 * old contents, and rows just outside of those that the band may read.
 *
 *   owner    peer
 *   repeats  repeats  and then                                        faulty is
 *   its result
 *   yes      yes      a third device agrees with one of the two       the other one
 *                     it agrees with none, or there is no third       unknown (1)
 *   only one does     the two new results agree                       the other one, at times
 *                     they do not, but the other one agreed in        that one, or the kernel (2)
 *                     earlier bands; a third device confirms the one
 *                     they do not; the other one repeats the rows     the other one
 *                     once more, and now they agree
 *                     they never agree                                that one, or the kernel
 *   no       no       the two new results differ                      the kernel: it is not
 *                                                                     deterministic
 *                     they are equal                                  the kernel: it reads what it
 *                                                                     must not
 *   The frame's input and the copy for the check are not equal.       unknown: it is written to
 *
 * (1) Perhaps the kernel reads beyond its rows, and a device has other bytes there.
 * (2) The device is convicted, and the log names the kernel as well.
 *
 * A faulty device is convicted: it is lost, and recover.c repeats its work in frames that are not
 * delivered yet. Without a conviction the frame ends with COX_E_MISMATCH. The first time, an error
 * in the log says why; later lines for the same reason are of level INFO.
 *
 * If a voter fails, the band is checked again. An owner or peer that is lost cannot repeat its
 * result: the vote assumes that it would, and the third device decides.
 *
 * These faults are not found:
 *   A session has one device, or rows are changed in place.
 *   A kernel's results vary so seldom that it looks like a device that errs at times.
 *   An input changes only before the check.
 *
 * Owns each frame's `sampled`, `vote` and the bands' `checked`, and the devices' `agreed`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After this many failed checks a band goes unchecked. */
enum { CHECKS_MAX = 4 };

/* A number in 0 .. 1 that depends on the frame and the row only (the last steps of splitmix64:
 * Steele, Lea and Flood, 2014). */
static double chance(uint64_t frame, uint32_t row)
{
    uint64_t z = (frame << 32 ^ row) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Choose the device that checks a band: of the other devices the one with the least work for the
 * frame, and of those the fastest. Returns the number of devices if no
 * other device is active. */
static uint32_t choose_peer(const struct cox__devices *devices, const struct cox__frame *frame,
                            uint32_t owner)
{
    uint32_t best = devices->count;
    for (uint32_t d = 0; d < devices->count; d++) {
        const struct cox__device *device = &devices->list[d];
        if (d == owner || !cox__device_is_active(device))
            continue;

        if (best == devices->count || frame->at_work[d] < frame->at_work[best] ||
            (frame->at_work[d] == frame->at_work[best] &&
             device->passes[frame->pass].single_device_ns <
                 devices->list[best].passes[frame->pass].single_device_ns))
            best = d;
    }
    return best;
}

static bool is_candidate(const struct cox__settings *settings, const struct cox__frame *frame,
                         uint32_t band)
{
    const struct cox__band *of = &frame->bands[band];
    return of->state == COX__BAND_DONE && cox__band_is_of_split(of) && !of->checked &&
           chance(frame->index, frame->reports[band].first_row) < settings->verify;
}

static uint32_t failed_checks(const struct cox__frame *frame, uint32_t band)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < frame->band_count; b++)
        count += frame->bands[b].kind == COX__BAND_CHECK && frame->bands[b].origin == band &&
                 frame->bands[b].state == COX__BAND_FAILED;
    return count;
}

static void log_unverified(struct cox_session *session, const struct cox__frame *frame,
                           uint32_t first_row, uint32_t rows, const char *why)
{
    if (!session->warned.unverified)
        cox__log(&session->runtime->log, COX_LOG_WARN,
                 "frame %llu: rows %u..%u are not verified: %s", (unsigned long long)frame->index,
                 first_row, first_row + rows - 1, why);
    session->warned.unverified = true;
}

/* The spare buffers are not available to the frame. Returns whether the frame waits for them. */
static bool wait_for_spare(struct cox_session *session, const struct cox__frame *frame)
{
    const enum cox__spare_state state = atomic_load(&session->spare.state);
    const bool late = state == COX__SPARE_ALLOCATING &&
                      cox__engine_now(session->runtime) >= session->spare.wait_ns;

    if (late)
        log_unverified(session, frame, 0, cox__frame_pass(frame)->rows,
                       "a driver call that makes copies does not return");
    return state != COX__SPARE_UNAVAILABLE && !late;
}

/* Begin to check one band. False: the frame has too many bands. */
static bool check_band(struct cox_session *session, struct cox__frame *frame, uint32_t band)
{
    const struct cox_band_report report = frame->reports[band];
    const uint32_t peer = choose_peer(&session->devices, frame, report.device);
    const bool alone = peer == session->devices.count;
    frame->bands[band].checked = true;

    if (alone || failed_checks(frame, band) >= CHECKS_MAX) {
        if (frame->vote.state == COX__VOTE_UNDECIDED && frame->vote.band == band)
            frame->status = COX_E_MISMATCH;
        const char *why = "their checks failed too often";
        if (alone)
            why = "no other device can check them";
        log_unverified(session, frame, report.first_row, report.rows, why);
        return true;
    }

    cox__spare_fill_inputs(session, frame, report.first_row, report.rows);
    cox__spare_fill_outputs(session, frame, report.first_row, report.rows);
    return cox__spare_add_check(session, frame, peer, report.first_row, report.rows, band);
}

bool cox__verify_frame(struct cox_session *session, struct cox__frame *frame)
{
    bool any = false;
    if (frame->sampled || frame->status || cox__frame_pass(frame)->in_place)
        return false;

    for (uint32_t b = frame->first_band; b < frame->band_count; b++)
        any |= is_candidate(&session->settings, frame, b);

    if (any && !cox__spare_take(session, frame))
        return wait_for_spare(session, frame);

    frame->sampled = true;

    /* Checks are bands too: the loop does not look at those that it adds. */
    const uint32_t count = frame->band_count;
    for (uint32_t b = frame->first_band; any && b < count; b++)
        if (is_candidate(&session->settings, frame, b) && !check_band(session, frame, b))
            break;

    return frame->unfinished > 0;
}

/* Partials of a band, if the band `whole` has the same rows; NULL if there is nothing to
 * compare. */
static const void *partials_of(const struct cox__frame *frame, uint32_t band,
                               const struct cox_band_report *whole)
{
    const bool same = frame->reports[band].rows == whole->rows;
    if (!cox__frame_pass(frame)->partial_bytes || !same)
        return NULL;
    return frame->bands[band].partials;
}

/* ---- the vote: results ---- */

static const char *name_of(const struct cox_session *session, uint32_t device)
{
    return session->devices.list[device].info.name;
}

static uint32_t owner_of(const struct cox__frame *frame)
{
    return frame->reports[frame->vote.band].device;
}

static unsigned char *result_of(const struct cox__vote *vote, enum cox__vote_run run)
{
    return vote->runs + run * vote->bytes;
}

/* Keep a band's result: from the frame's buffers, or a check's from the spare ones. */
static void keep_result(const struct cox_session *session, const struct cox__frame *frame,
                        enum cox__vote_run run, struct cox__mem *const *mems, uint32_t band)
{
    const struct cox__vote *vote = &frame->vote;
    const struct cox__pass *pass = cox__frame_pass(frame);
    unsigned char *to = result_of(vote, run);

    cox__spare_copy_result(session->runtime->backend, pass, mems, vote->first_row, vote->rows, to);
    if (vote->bytes > vote->row_bytes)
        memcpy(to + vote->row_bytes, frame->bands[band].partials, pass->partial_bytes);
}

/* Make room for the results of a vote. False: no memory. */
static bool allocate_results(struct cox__vote *vote, const struct cox__pass *pass, bool partials)
{
    vote->row_bytes = cox__spare_result_bytes(pass, vote->first_row, vote->rows);
    vote->bytes = vote->row_bytes;
    if (partials)
        vote->bytes += pass->partial_bytes;

    free(vote->runs);
    vote->runs = calloc(COX__RUNS, vote->bytes);
    return vote->runs != NULL;
}

/* Where a device's first result and its repetition differ; `bytes` if they are equal. A byte that
 * no kernel writes is what the outputs held before: the first time what is in the frame, now
 * that with flipped bits. */
static size_t first_change(const struct cox__vote *vote, enum cox__vote_run first,
                           enum cox__vote_run again)
{
    const unsigned char *in_frame = result_of(vote, COX__RUN_OWNER);
    const unsigned char *a = result_of(vote, first), *b = result_of(vote, again);

    for (size_t i = 0; i < vote->bytes; i++) {
        const bool untouched = i < vote->row_bytes && a[i] == in_frame[i] &&
                               b[i] == (in_frame[i] ^ COX__SPARE_FLIP);
        if (a[i] != b[i] && !untouched)
            return i;
    }
    return vote->bytes;
}

static bool is_repeated(const struct cox__vote *vote, enum cox__vote_run first,
                        enum cox__vote_run again)
{
    return first_change(vote, first, again) == vote->bytes;
}

/* Where the results that began the vote differ. */
static size_t first_difference(const struct cox__vote *vote)
{
    size_t i = 0;
    while (result_of(vote, COX__RUN_OWNER)[i] == result_of(vote, COX__RUN_PEER)[i])
        i++;
    return i;
}

/* ---- the vote: its end ---- */

/* Why a vote convicts no device. The values are bits of session->warned.no_verdict. */
enum reason { BOTH_STAND, ONE_LOST, ONE_VARIES, NOT_DETERMINISTIC, READS_OTHER, INPUT_CHANGES };

enum { PLACE_BYTES = 160 };

/* "pass 'blur', buffer 'out', row 17" for a byte of a result. */
static void describe_place(const struct cox__frame *frame, size_t at, char text[PLACE_BYTES])
{
    const struct cox__vote *vote = &frame->vote;
    const struct cox__pass *pass = cox__frame_pass(frame);
    const char *name = pass->name ? pass->name : "unnamed";
    uint32_t binding;
    size_t row;

    if (at >= vote->row_bytes) {
        snprintf(text, PLACE_BYTES, "pass '%.60s', merged results of rows %u..%u", name,
                 vote->first_row, vote->first_row + vote->rows - 1);
        return;
    }

    cox__spare_locate(pass, vote->first_row, vote->rows, at, &binding, &row);
    snprintf(text, PLACE_BYTES, "pass '%.60s', buffer '%.60s', row %zu", name,
             cox__binding_name(&pass->bindings[binding]), row);
}

static void log_no_verdict(struct cox_session *session, const struct cox__frame *frame,
                           enum reason reason, size_t at, uint32_t varies)
{
    const char *owner = name_of(session, owner_of(frame));
    const char *peer = name_of(session, frame->vote.peer);
    enum cox_log_level level = COX_LOG_ERROR;
    char place[PLACE_BYTES], why[480];
    describe_place(frame, at, place);

    switch (reason) {
    case NOT_DETERMINISTIC:
        snprintf(why, sizeof why,
                 "the kernel is not deterministic: %s and %s do not repeat their "
                 "own results",
                 owner, peer);
        break;
    case READS_OTHER:
        snprintf(why, sizeof why,
                 "the kernel reads rows beyond its own, or what its output held "
                 "before: the results of %s and %s depend on it",
                 owner, peer);
        break;
    case ONE_VARIES:
        snprintf(why, sizeof why,
                 "%s does not repeat its own result, and never agrees with %s: "
                 "the kernel is not deterministic, or the device is faulty",
                 name_of(session, varies), owner_of(frame) == varies ? peer : owner);
        break;
    case BOTH_STAND:
        snprintf(why, sizeof why,
                 "%s and %s repeat their own results, which differ, and no other "
                 "device confirms one: one is faulty, or the kernel reads rows beyond its own",
                 owner, peer);
        break;
    case ONE_LOST:
        snprintf(why, sizeof why,
                 "%s and %s disagree, and one was lost before it could repeat its "
                 "result: one is faulty, or the kernel is not deterministic",
                 owner, peer);
        break;
    case INPUT_CHANGES:
        snprintf(why, sizeof why, "an input changed while %s and %s read it", owner, peer);
        break;
    }

    if (session->warned.no_verdict >> reason & 1)
        level = COX_LOG_INFO;
    session->warned.no_verdict |= UINT32_C(1) << reason;
    cox__log(&session->runtime->log, level, "frame %llu, %s: %s", (unsigned long long)frame->index,
             place, why);
}

/* The vote is over without a conviction. `at`: the first byte that differs. */
static void end_without_verdict(struct cox_session *session, struct cox__frame *frame,
                                enum reason reason, size_t at, uint32_t varies)
{
    log_no_verdict(session, frame, reason, at, varies);
    frame->vote.state = COX__VOTE_NONE;
    frame->status = COX_E_MISMATCH;
}

/* The vote is over: one of the two devices is faulty. */
static void convict(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                    const char *why)
{
    struct cox__vote *vote = &frame->vote;
    const size_t at = first_difference(vote);
    const uint32_t changed = cox__spare_changed_input(session, frame, vote->first_row, vote->rows);
    char place[PLACE_BYTES];

    if (changed < COX_BUFFERS_MAX) {
        end_without_verdict(session, frame, INPUT_CHANGES, at, device);
        return;
    }

    describe_place(frame, at, place);
    cox__log(&session->runtime->log, COX_LOG_ERROR, "%s computes wrong rows: frame %llu, %s: %s",
             name_of(session, device), (unsigned long long)frame->index, place, why);
    vote->state = COX__VOTE_NONE;
    cox__device_fail(session, device, COX_E_MISMATCH);
}

/* ---- the vote: its steps ---- */

/* Have a device repeat the rows that are voted on, in one band. False: it cannot. */
static bool ask_voter(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                      enum cox__vote_state state)
{
    struct cox__vote *vote = &frame->vote;
    const struct cox__device *voter = &session->devices.list[device];
    if (!cox__device_is_active(voter) || voter->passes[frame->pass].max_rows < vote->rows)
        return false;

    vote->state = state;
    vote->voter = device;
    cox__spare_fill_flipped(session, frame, vote->first_row, vote->rows);
    cox__spare_add_check(session, frame, device, vote->first_row, vote->rows, vote->band);
    return true;
}

/* A device cannot repeat its result: assume that it would. */
static void assume_repeated(struct cox__vote *vote, enum cox__vote_run first,
                            enum cox__vote_run again)
{
    memcpy(result_of(vote, again), result_of(vote, first), vote->bytes);
    vote->lost = true;
}

/* A third device that can do the rows in one band. Returns the number of devices if no device
 * can. */
static uint32_t find_third(const struct cox_session *session, const struct cox__frame *frame)
{
    uint32_t except = UINT32_C(1) << owner_of(frame) | UINT32_C(1) << frame->vote.peer;

    for (uint32_t d = 0; d < session->devices.count; d++)
        if (session->devices.list[d].passes[frame->pass].max_rows < frame->vote.rows)
            except |= UINT32_C(1) << d;
    return cox__device_best(session, frame->pass, except);
}

/* Both devices repeat their results. */
static void ask_third(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t third = find_third(session, frame);
    const size_t at = first_difference(&frame->vote);

    if (third < session->devices.count && ask_voter(session, frame, third, COX__VOTE_THIRD))
        return;
    end_without_verdict(session, frame, frame->vote.lost ? ONE_LOST : BOTH_STAND, at, third);
}

/* One of the two does not repeat its result. `agrees`: its last result is the other one's. */
static void judge_unsteady(struct cox_session *session, struct cox__frame *frame, uint32_t unsteady,
                           bool agrees, size_t at)
{
    const uint32_t third = find_third(session, frame);
    const bool was_right = session->devices.list[unsteady].passes[frame->pass].agreed;

    if (agrees)
        convict(session, frame, unsteady, "it does not repeat its own result");
    else if (!(was_right && third < session->devices.count &&
               ask_voter(session, frame, third, COX__VOTE_THIRD)) &&
             !ask_voter(session, frame, unsteady, COX__VOTE_AGAIN))
        end_without_verdict(session, frame, ONE_VARIES, at, unsteady);
}

/* The owner and its peer have repeated the rows. */
static void compare_repetitions(struct cox_session *session, struct cox__frame *frame)
{
    const struct cox__vote *vote = &frame->vote;
    const size_t of_owner = first_change(vote, COX__RUN_OWNER, COX__RUN_OWNER_AGAIN);
    const size_t of_peer = first_change(vote, COX__RUN_PEER, COX__RUN_PEER_AGAIN);
    const bool owner_repeats = of_owner == vote->bytes, peer_repeats = of_peer == vote->bytes;
    enum reason reason = NOT_DETERMINISTIC;

    if (owner_repeats && peer_repeats) {
        ask_third(session, frame);
    } else if (owner_repeats) {
        judge_unsteady(session, frame, vote->peer,
                       is_repeated(vote, COX__RUN_OWNER, COX__RUN_PEER_AGAIN), of_peer);
    } else if (peer_repeats) {
        judge_unsteady(session, frame, owner_of(frame),
                       is_repeated(vote, COX__RUN_PEER, COX__RUN_OWNER_AGAIN), of_owner);
    } else {
        if (memcmp(result_of(vote, COX__RUN_OWNER_AGAIN), result_of(vote, COX__RUN_PEER_AGAIN),
                   vote->bytes) == 0)
            reason = READS_OTHER;
        end_without_verdict(session, frame, reason, of_peer, vote->peer);
    }
}

/* The last repetition of a vote is done: convict the device that it contradicts. */
static void compare_last(struct cox_session *session, struct cox__frame *frame)
{
    const struct cox__vote *vote = &frame->vote;
    const uint32_t owner = owner_of(frame);
    const bool owner_repeats = is_repeated(vote, COX__RUN_OWNER, COX__RUN_OWNER_AGAIN);
    const bool peer_repeats = is_repeated(vote, COX__RUN_PEER, COX__RUN_PEER_AGAIN);

    const char *why = "another device confirms the other result";
    if (vote->state == COX__VOTE_AGAIN)
        why = "it does not repeat its own result";
    else if (!owner_repeats || !peer_repeats)
        why = "it does not repeat its own result, or the kernel is not deterministic on it";

    if (owner_repeats && is_repeated(vote, COX__RUN_OWNER, COX__RUN_LAST))
        convict(session, frame, vote->peer, why);
    else if (peer_repeats && is_repeated(vote, COX__RUN_PEER, COX__RUN_LAST))
        convict(session, frame, owner, why);
    else if (owner_repeats && peer_repeats)
        end_without_verdict(session, frame, vote->lost ? ONE_LOST : BOTH_STAND,
                            first_difference(vote), owner);
    else if (owner_repeats)
        end_without_verdict(session, frame, ONE_VARIES,
                            first_change(vote, COX__RUN_PEER, COX__RUN_PEER_AGAIN), vote->peer);
    else
        end_without_verdict(session, frame, ONE_VARIES,
                            first_change(vote, COX__RUN_OWNER, COX__RUN_OWNER_AGAIN), owner);
}

/* The owner's result is repeated: the peer is next. */
static void ask_peer(struct cox_session *session, struct cox__frame *frame)
{
    struct cox__vote *vote = &frame->vote;
    if (ask_voter(session, frame, vote->peer, COX__VOTE_PEER))
        return;

    assume_repeated(vote, COX__RUN_PEER, COX__RUN_PEER_AGAIN);
    compare_repetitions(session, frame);
}

/* Ask the first voter, once the vote has the spare buffers to itself. */
static void begin_vote(struct cox_session *session, struct cox__frame *frame)
{
    struct cox__vote *vote = &frame->vote;
    if (vote->state != COX__VOTE_WAITING || session->spare.users || frame->status)
        return;

    cox__spare_change_neighbours(session, frame, vote->first_row, vote->rows);
    if (ask_voter(session, frame, owner_of(frame), COX__VOTE_OWNER))
        return;

    assume_repeated(vote, COX__RUN_OWNER, COX__RUN_OWNER_AGAIN);
    ask_peer(session, frame);
}

/* A voter has repeated the rows. */
static void count_vote(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    struct cox__mem *const *spare = session->spare.mems;

    switch (frame->vote.state) {
    case COX__VOTE_OWNER:
        keep_result(session, frame, COX__RUN_OWNER_AGAIN, spare, check);
        ask_peer(session, frame);
        break;
    case COX__VOTE_PEER:
        keep_result(session, frame, COX__RUN_PEER_AGAIN, spare, check);
        compare_repetitions(session, frame);
        break;
    default:
        keep_result(session, frame, COX__RUN_LAST, spare, check);
        compare_last(session, frame);
        break;
    }
}

static void open_vote(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    struct cox__vote *vote = &frame->vote;
    const struct cox_band_report *report = &frame->reports[check];
    const uint32_t band = frame->bands[check].origin;
    const bool partials = partials_of(frame, check, &frame->reports[band]) != NULL;

    vote->state = COX__VOTE_WAITING;
    vote->band = band;
    vote->first_row = report->first_row;
    vote->rows = report->rows;
    vote->peer = report->device;
    vote->lost = false;

    cox__log(&session->runtime->log, session->warned.no_verdict ? COX_LOG_INFO : COX_LOG_WARN,
             "frame %llu: %s and %s disagree about rows %u..%u", (unsigned long long)frame->index,
             name_of(session, owner_of(frame)), name_of(session, vote->peer), report->first_row,
             report->first_row + report->rows - 1);

    if (!allocate_results(vote, cox__frame_pass(frame), partials)) {
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "frame %llu: too little memory to find out what is faulty",
                 (unsigned long long)frame->index);
        frame->status = COX_E_MISMATCH;
        return;
    }

    keep_result(session, frame, COX__RUN_OWNER, frame->mems, band);
    keep_result(session, frame, COX__RUN_PEER, session->spare.mems, check);
    begin_vote(session, frame);
}

/* Whether the check is the one that the open vote waits for. */
static bool is_vote(const struct cox__frame *frame, uint32_t check)
{
    const struct cox__vote *vote = &frame->vote;
    const bool asked = vote->state == COX__VOTE_OWNER || vote->state == COX__VOTE_PEER ||
                       vote->state == COX__VOTE_THIRD || vote->state == COX__VOTE_AGAIN;

    return asked && frame->bands[check].origin == vote->band &&
           frame->reports[check].device == vote->voter &&
           frame->reports[check].first_row == vote->first_row;
}

/* ---- results ---- */

static bool agrees(const struct cox_session *session, const struct cox__frame *frame,
                   uint32_t check)
{
    const uint32_t origin = frame->bands[check].origin;
    const struct cox_band_report *report = &frame->reports[check];
    const void *mine = partials_of(frame, check, &frame->reports[origin]);
    const void *theirs = partials_of(frame, origin, report);

    return cox__spare_equals(session, frame, report->first_row, report->rows) &&
           (!mine || !theirs || memcmp(mine, theirs, cox__frame_pass(frame)->partial_bytes) == 0);
}

/* Check the band again, by a device that is active by then. */
static void check_later(struct cox__frame *frame, uint32_t band)
{
    frame->bands[band].checked = false;
    frame->sampled = false;
}

static void note_agreement(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    const uint32_t origin = frame->bands[check].origin;
    struct cox__device *devices = session->devices.list;

    devices[frame->reports[origin].device].passes[frame->pass].agreed = true;
    devices[frame->reports[check].device].passes[frame->pass].agreed = true;
    if (frame->vote.state == COX__VOTE_UNDECIDED && frame->vote.band == origin)
        frame->vote.state = COX__VOTE_NONE;
}

void cox__verify_done(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    const uint32_t origin = frame->bands[check].origin;
    const enum cox__vote_state vote = frame->vote.state;
    cox__spare_release(&session->spare);
    if (frame->status)
        return;

    if (frame->bands[origin].state != COX__BAND_DONE) { /* its rows do not count any more */
        if (frame->vote.band == origin)
            frame->vote.state = COX__VOTE_NONE;
    } else if (is_vote(frame, check)) {
        count_vote(session, frame, check);
    } else if (agrees(session, frame, check)) {
        note_agreement(session, frame, check);
    } else if (vote == COX__VOTE_NONE || vote == COX__VOTE_UNDECIDED) {
        open_vote(session, frame, check);
    } else { /* one vote at a time: the band is checked again after the open vote */
        check_later(frame, origin);
    }

    begin_vote(session, frame);
}

void cox__verify_failed(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    const uint32_t origin = frame->bands[check].origin;
    if (is_vote(frame, check))
        frame->vote.state = COX__VOTE_UNDECIDED;

    if (frame->bands[origin].state == COX__BAND_DONE)
        check_later(frame, origin);
    begin_vote(session, frame);
}
