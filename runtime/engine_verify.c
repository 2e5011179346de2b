/* Checking: a sampled share of bands is done by a second device before the frame is delivered, and compared bit for bit.
 *
 * Where two devices disagree, a third decides; where there is none both do the rows again, and the one that does not stand by
 * what it said is wrong. Who is wrong is lost, and everything of its in frames that are not delivered is done again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_parts.h"

#include <string.h>

/* Checks of a band that fail, or are late, until it goes unchecked. */
enum { CHECKS_MAX = 4 };

/* A number in 0 .. 1 that depends on the frame and the row only (splitmix64's last steps: Steele, Lea and Flood, 2014). */
static double chance(uint64_t frame, uint32_t row)
{
    uint64_t z = (frame << 32 ^ row) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Who checks a band: of the other devices the one with least to do for the frame, the fastest of those. */
static uint32_t checker(const struct cox_session *session, const struct cox__slot *slot, uint32_t device)
{
    uint32_t best = session->unit_count;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        const struct cox__session_unit *unit = &session->units[u];
        if (u == device || !unit->usable)
            continue;
        if (best == session->unit_count || slot->at_work[u] < slot->at_work[best] ||
            (slot->at_work[u] == slot->at_work[best] && unit->solo_ns < session->units[best].solo_ns))
            best = u;
    }
    return best;
}

static bool is_candidate(const struct cox_session *session, const struct cox__slot *slot, uint32_t band)
{
    const struct cox__band_run *of = &slot->bands[band];
    return of->state == COX__BAND_DONE && !of->check && !of->checked &&
           chance(slot->index, slot->reports[band].first_row) < session->verify;
}

static uint32_t checks_of(const struct cox__slot *slot, uint32_t band)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < slot->band_count; b++)
        count += slot->bands[b].spare && slot->bands[b].check && slot->bands[b].origin == band &&
                 slot->bands[b].state == COX__BAND_FAILED;
    return count;
}

static void refuse(struct cox_session *session, const struct cox__slot *slot, uint32_t first_row, uint32_t rows,
                   const char *why)
{
    if (!session->verify_refused)
        cox__log(&session->runtime->log, COX_LOG_WARN, "frame %llu: rows %u..%u are not verified: %s",
                 (unsigned long long)slot->index, first_row, first_row + rows - 1, why);
    session->verify_refused = true;
}

bool cox__verify_frame(struct cox_session *session, struct cox__slot *slot)
{
    bool any = false;
    if (slot->verified || slot->status || session->pipeline.in_place)
        return false;
    for (uint32_t b = 0; b < slot->band_count; b++)
        any |= is_candidate(session, slot, b);
    if (any && !cox__spare_take(session, slot)) {
        const enum cox__spare_stage stage = atomic_load(&session->spare.stage);
        const bool late = stage == COX__SPARE_BEING_MADE && cox__engine_now(session) >= session->spare.wait_ns;
        if (late)
            refuse(session, slot, 0, session->pipeline.rows, "a driver does not return from making copies");
        return stage != COX__SPARE_UNAVAILABLE && !late; /* it serves another now */
    }
    for (uint32_t b = 0; b < slot->band_count; b++)
        if (is_candidate(session, slot, b) &&
            cox__rows_unsettled(session, slot, true, slot->reports[b].first_row, slot->reports[b].rows))
            return true; /* what a check that failed leaves there comes before what is to be compared */
    slot->verified = true;
    const uint32_t count = any ? slot->band_count : 0;
    for (uint32_t b = 0; b < count; b++) {
        if (!is_candidate(session, slot, b))
            continue;
        const struct cox_band_report report = slot->reports[b];
        const uint32_t unit = checker(session, slot, report.device);
        slot->bands[b].checked = true;
        if (unit == session->unit_count || checks_of(slot, b) >= CHECKS_MAX) {
            if (slot->dispute.open && slot->dispute.band == b)
                slot->status = COX_E_MISMATCH;
            refuse(session, slot, report.first_row, report.rows,
                   unit == session->unit_count ? "there is one device only" : "no device is done with them");
            continue;
        }
        cox__spare_fill(session, slot, report.first_row, report.rows, true);
        if (!cox__spare_add(session, slot, unit, report.first_row, report.rows, b, true))
            break;
    }
    return slot->unfinished > 0;
}

/* Partials of a band and of one that does the same rows; NULL where there is nothing to compare. */
static const void *partials_of(const struct cox_session *session, const struct cox__slot *slot, uint32_t band,
                               const struct cox_band_report *whole)
{
    const bool same = slot->reports[band].rows == whole->rows;
    return session->partial_bytes && same ? slot->bands[band].partials : NULL;
}

/* ---- disputes ---- */

static const char *name_of(const struct cox_session *session, uint32_t unit)
{
    return session->units[unit].info.name;
}

/* Have the rows in question done once more. */
static void call(struct cox_session *session, struct cox__slot *slot, uint32_t unit, enum cox__dispute_stage stage)
{
    struct cox__dispute *dispute = &slot->dispute;
    dispute->stage = stage;
    if (!session->units[unit].usable ||
        !cox__spare_add(session, slot, unit, dispute->first_row, dispute->rows, dispute->band, true)) {
        dispute->stage = COX__DISPUTE_NONE;
        slot->status = COX_E_MISMATCH;
    }
}

static void open_dispute(struct cox_session *session, struct cox__slot *slot, uint32_t check)
{
    struct cox__dispute *dispute = &slot->dispute;
    const struct cox_band_report *report = &slot->reports[check];
    const uint32_t band = slot->bands[check].origin;
    const uint32_t owner = slot->reports[band].device;
    uint32_t third = cox__engine_best_unit(session, UINT32_C(1) << owner | UINT32_C(1) << report->device);
    dispute->open = true;
    dispute->band = band;
    dispute->first_row = report->first_row;
    dispute->rows = report->rows;
    dispute->rival = report->device;
    cox__rows_digest(session, slot->mems, partials_of(session, slot, band, report), report->first_row, report->rows,
                     dispute->of_band);
    cox__rows_digest(session, session->spare.mems, partials_of(session, slot, check, &slot->reports[band]),
                     report->first_row, report->rows, dispute->of_rival);
    cox__log(&session->runtime->log, COX_LOG_WARN, "frame %llu: %s and %s disagree about rows %u..%u",
             (unsigned long long)slot->index, name_of(session, owner), name_of(session, dispute->rival),
             report->first_row, report->first_row + report->rows - 1);
    if (third < session->unit_count)
        call(session, slot, third, COX__DISPUTE_THIRD);
    else
        call(session, slot, owner, COX__DISPUTE_FIRST);
}

/* What a liar has done of frames that are not delivered is done again. What it has under way is not believed either. */
static void condemn(struct cox_session *session, uint32_t liar)
{
    cox__log(&session->runtime->log, COX_LOG_ERROR, "%s gives wrong rows", name_of(session, liar));
    cox__unit_lose(session, liar, COX_E_MISMATCH);
    for (uint32_t i = 0; i < session->order_count; i++) {
        struct cox__slot *slot = cox__engine_frame(session, i);
        const uint32_t count = slot->started && !slot->status ? slot->band_count : 0;
        for (uint32_t b = 0; b < count; b++) {
            if (slot->bands[b].state != COX__BAND_DONE || slot->bands[b].check || slot->reports[b].device != liar)
                continue;
            struct cox__band_run *band = &slot->bands[b];
            band->state = COX__BAND_RUNNING; /* so that it can fail */
            slot->at_work[liar]++;
            slot->unfinished++;
            if (band->spare && slot->bands[band->origin].stand_ins)
                slot->bands[band->origin].stand_ins++;
            else /* its rows are in the frame */
                band->spare = false;
            cox__band_fail(session, slot, b, COX_E_MISMATCH);
        }
        slot->verified = false;
    }
}

static void close_dispute(struct cox_session *session, struct cox__slot *slot, const unsigned char digest[32])
{
    struct cox__dispute *dispute = &slot->dispute;
    const uint32_t owner = slot->reports[dispute->band].device;
    const bool for_band = memcmp(digest, dispute->of_band, 32) == 0;
    const bool for_rival = memcmp(digest, dispute->of_rival, 32) == 0;
    const enum cox__dispute_stage stage = dispute->stage;
    dispute->stage = COX__DISPUTE_NONE;
    dispute->open = stage == COX__DISPUTE_FIRST && !for_rival;
    if (stage == COX__DISPUTE_FIRST && !for_rival) {
        dispute->repeated = for_band;
        call(session, slot, dispute->rival, COX__DISPUTE_SECOND);
    } else if (stage == COX__DISPUTE_SECOND ? for_band : stage == COX__DISPUTE_THIRD && for_band) {
        condemn(session, dispute->rival);
    } else if (stage == COX__DISPUTE_SECOND ? for_rival && !dispute->repeated : for_rival) {
        condemn(session, owner);
    } else {
        slot->status = COX_E_MISMATCH;
        cox__log(&session->runtime->log, COX_LOG_ERROR,
                 "frame %llu: nothing tells whose rows %u..%u are right, those of %s or of %s",
                 (unsigned long long)slot->index, dispute->first_row, dispute->first_row + dispute->rows - 1,
                 name_of(session, owner), name_of(session, dispute->rival));
    }
}

/* ---- results ---- */

void cox__verify_done(struct cox_session *session, struct cox__slot *slot, uint32_t band)
{
    struct cox__band_run *check = &slot->bands[band];
    const struct cox_band_report report = slot->reports[band];
    const uint32_t origin = check->origin;
    session->spare.users--;
    if (slot->status)
        return;
    if (slot->dispute.stage != COX__DISPUTE_NONE && origin == slot->dispute.band &&
        report.first_row == slot->dispute.first_row) {
        unsigned char digest[32];
        cox__rows_digest(session, session->spare.mems, partials_of(session, slot, band, &slot->reports[origin]),
                         report.first_row, report.rows, digest);
        close_dispute(session, slot, digest);
        return;
    }
    if (slot->bands[origin].state != COX__BAND_DONE) /* its rows do not count any more */
        return;
    const void *mine = partials_of(session, slot, band, &slot->reports[origin]);
    const void *theirs = partials_of(session, slot, origin, &report);
    if (cox__spare_equal(session, slot, report.first_row, report.rows) &&
        (!mine || !theirs || memcmp(mine, theirs, session->partial_bytes) == 0)) {
        slot->dispute.open &= origin != slot->dispute.band;
        return;
    }
    if (slot->dispute.stage == COX__DISPUTE_NONE) {
        open_dispute(session, slot, band);
    } else { /* one after the other */
        slot->bands[origin].checked = false;
        slot->verified = false;
    }
}

void cox__verify_failed(struct cox__slot *slot, uint32_t band)
{
    const uint32_t origin = slot->bands[band].origin;
    if (slot->dispute.stage != COX__DISPUTE_NONE && origin == slot->dispute.band &&
        slot->reports[band].first_row == slot->dispute.first_row)
        slot->dispute.stage = COX__DISPUTE_NONE; /* who was to tell is lost; whoever is left does */
    if (slot->bands[origin].state == COX__BAND_DONE) {
        slot->bands[origin].checked = false;
        slot->verified = false;
    }
}
