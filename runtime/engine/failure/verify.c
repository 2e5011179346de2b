/* Before a frame is delivered, a second device, the peer, repeats a sampled share of its bands. The
 * results are compared bit for bit.
 *
 * If the two devices disagree, there is a vote (enum cox__vote_state). The vote convicts the faulty
 * device, which is lost; recover.c repeats its work in frames that are not delivered yet. A vote
 * without a verdict ends the frame with an error.
 *
 * Owns each frame's `sampled`, `vote` and the bands' `checked`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"
#include "engine/device.h"
#include "engine/frame.h"
#include "spare.h"

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
    return of->state == COX__BAND_DONE && of->kind != COX__BAND_CHECK && !of->checked &&
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

/* ---- the vote ---- */

static const char *name_of(const struct cox__devices *devices, uint32_t device)
{
    return devices->list[device].info.name;
}

/* Have a device repeat the rows that are voted on. */
static void ask_voter(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                      enum cox__vote_state state)
{
    struct cox__vote *vote = &frame->vote;
    vote->state = state;
    cox__spare_fill_outputs(session, frame, vote->first_row, vote->rows);

    if (cox__device_is_active(&session->devices.list[device]) &&
        cox__spare_add_check(session, frame, device, vote->first_row, vote->rows, vote->band))
        return;

    vote->state = COX__VOTE_NONE;
    frame->status = COX_E_MISMATCH;
}

static void open_vote(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    struct cox__vote *vote = &frame->vote;
    const struct cox_band_report *report = &frame->reports[check];
    const uint32_t band = frame->bands[check].origin;
    const uint32_t owner = frame->reports[band].device;
    const uint32_t third = cox__device_best(session, frame->pass,
                                            UINT32_C(1) << owner | UINT32_C(1) << report->device);

    vote->band = band;
    vote->first_row = report->first_row;
    vote->rows = report->rows;
    vote->peer = report->device;

    cox__spare_digest(session->runtime->backend, cox__frame_pass(frame), frame->mems,
                      partials_of(frame, band, report), report->first_row, report->rows,
                      vote->of_owner);
    cox__spare_digest(session->runtime->backend, cox__frame_pass(frame), session->spare.mems,
                      partials_of(frame, check, &frame->reports[band]), report->first_row,
                      report->rows, vote->of_peer);

    cox__log(&session->runtime->log, COX_LOG_WARN,
             "frame %llu: %s and %s disagree about rows %u..%u", (unsigned long long)frame->index,
             name_of(&session->devices, owner), name_of(&session->devices, vote->peer),
             report->first_row, report->first_row + report->rows - 1);

    if (third < session->devices.count)
        ask_voter(session, frame, third, COX__VOTE_THIRD);
    else
        ask_voter(session, frame, owner, COX__VOTE_OWNER);
}

static void convict(struct cox_session *session, uint32_t device)
{
    cox__log(&session->runtime->log, COX_LOG_ERROR, "%s computes wrong rows",
             name_of(&session->devices, device));
    cox__device_fail(session, device, COX_E_MISMATCH);
}

/* A voter has repeated the rows; `digest` is of what it wrote. */
static void count_vote(struct cox_session *session, struct cox__frame *frame,
                       const unsigned char digest[32])
{
    struct cox__vote *vote = &frame->vote;
    const uint32_t owner = frame->reports[vote->band].device;
    const bool for_owner = memcmp(digest, vote->of_owner, 32) == 0;
    const bool for_peer = memcmp(digest, vote->of_peer, 32) == 0;
    const enum cox__vote_state state = vote->state;

    if (state == COX__VOTE_OWNER && !for_peer) {
        vote->owner_repeated = for_owner;
        ask_voter(session, frame, vote->peer, COX__VOTE_PEER);
        return;
    }

    vote->state = COX__VOTE_NONE;
    const bool owner_repeated = state == COX__VOTE_PEER && vote->owner_repeated;

    if (for_owner || (owner_repeated && !for_peer)) {
        convict(session, vote->peer);
    } else if (for_peer && !owner_repeated) {
        convict(session, owner);
    } else {
        frame->status = COX_E_MISMATCH;
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "frame %llu: rows %u..%u differ, and no vote can decide between %s and %s",
                 (unsigned long long)frame->index, vote->first_row,
                 vote->first_row + vote->rows - 1, name_of(&session->devices, owner),
                 name_of(&session->devices, vote->peer));
    }
}

/* Whether the check is the one that the open vote waits for. */
static bool is_vote(const struct cox__frame *frame, uint32_t check)
{
    const struct cox__vote *vote = &frame->vote;
    const bool open = vote->state == COX__VOTE_THIRD || vote->state == COX__VOTE_OWNER ||
                      vote->state == COX__VOTE_PEER;

    return open && frame->bands[check].origin == vote->band &&
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

void cox__verify_done(struct cox_session *session, struct cox__frame *frame, uint32_t check)
{
    const struct cox_band_report report = frame->reports[check];
    const uint32_t origin = frame->bands[check].origin;
    cox__spare_release(&session->spare);
    if (frame->status)
        return;

    if (is_vote(frame, check)) {
        unsigned char digest[32];
        cox__spare_digest(session->runtime->backend, cox__frame_pass(frame), session->spare.mems,
                          partials_of(frame, check, &frame->reports[origin]), report.first_row,
                          report.rows, digest);
        count_vote(session, frame, digest);
        return;
    }

    if (frame->bands[origin].state != COX__BAND_DONE) /* its rows do not count any more */
        return;

    if (agrees(session, frame, check)) {
        if (frame->vote.state == COX__VOTE_UNDECIDED && frame->vote.band == origin)
            frame->vote.state = COX__VOTE_NONE;
    } else if (frame->vote.state == COX__VOTE_NONE || frame->vote.state == COX__VOTE_UNDECIDED) {
        open_vote(session, frame, check);
    } else { /* one vote at a time: this band is checked again after the open vote */
        frame->bands[origin].checked = false;
        frame->sampled = false;
    }
}

void cox__verify_failed(struct cox__frame *frame, uint32_t check)
{
    const uint32_t origin = frame->bands[check].origin;
    if (is_vote(frame, check))
        frame->vote.state = COX__VOTE_UNDECIDED;

    if (frame->bands[origin].state == COX__BAND_DONE) {
        frame->bands[origin].checked = false;
        frame->sampled = false;
    }
}
