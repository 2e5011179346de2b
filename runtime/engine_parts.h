/* What the files of the session engine share with each other and with nobody else. Everything here runs under the runtime's
 * guard.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_ENGINE_PARTS_H
#define COX_RUNTIME_ENGINE_PARTS_H

#include "engine.h"

/* ---- engine_bands.c: bands and lanes ---- */

uint64_t cox__engine_now(const struct cox_session *session);

/* The frame that is i-th in submission order of those under way. */
static inline struct cox__slot *cox__engine_frame(const struct cox_session *session, uint32_t i)
{
    return session->order[(session->order_first + i) % COX_IN_FLIGHT_MAX];
}

/* Begin to use a slot. */
void cox__slot_start(const struct cox_session *session, struct cox__slot *slot, enum cox__slot_kind kind);

/* Add PENDING bands on one unit, cut to what it can hold at once. False: there are too many bands. */
bool cox__slot_add(const struct cox_session *session, struct cox__slot *slot, uint32_t unit, uint32_t first_row,
                   uint32_t rows, uint32_t attempt);

/* The usable unit that should do the whole frame soonest, not one of `except` (a bit each); unit_count if there is none. */
uint32_t cox__engine_best_unit(const struct cox_session *session, uint32_t except);

/* Who does rows of a unit that does not: the best usable one, the same while one is waited for, or unit_count: nobody. */
uint32_t cox__engine_heir(const struct cox_session *session, uint32_t unit);

/* Whether the unit can take one more band. */
bool cox__engine_has_lane(const struct cox_session *session, uint32_t unit);

/* A PENDING or RUNNING band ends without its lane: the rows do not count. */
void cox__band_drop(struct cox__slot *slot, uint32_t band, cox_status status);

/* A PENDING or RUNNING band will not give its rows: have another device do them, wait for one, or give the frame up. */
void cox__band_fail(struct cox_session *session, struct cox__slot *slot, uint32_t band, cox_status status);

/* Fail the PENDING bands of units that are not usable. */
void cox__bands_leave(struct cox_session *session);

/* Hand a slot's PENDING bands to the devices whose enqueue returns at once, and flush them. */
bool cox__slot_submit(struct cox_session *session, struct cox__slot *slot, uint32_t held);

/* Hand one PENDING band to a device that computes inside the enqueue call. */
bool cox__slot_submit_blocking(struct cox_session *session, struct cox__slot *slot, uint32_t held);

/* Flush the units that have been given something since. */
void cox__units_flush(struct cox_session *session);

/* Ask the device about a busy lane's band, because it was posted or because it is time. True: something has changed. */
bool cox__lane_poll(struct cox_session *session, struct cox__lane *lane, bool posted);

/* Whether the device may be asked about the lane. */
static inline bool cox__lane_asked(const struct cox__lane *lane)
{
    return lane->busy && !(lane->wreck && lane->wreck->captive);
}

/* Call `look` with every busy lane, those of wrecks too. Lanes may end on the way. */
void cox__lanes_each(struct cox_session *session,
                     void (*look)(struct cox_session *session, struct cox__lane *lane, void *ctx), void *ctx);

/* How long a band of so many rows should take on a unit; 0 = nothing is known. */
double cox__unit_expected_ns(const struct cox_session *session, uint32_t unit, uint32_t rows);

void cox__slot_report(struct cox_session *session, const struct cox__slot *slot);

/* ---- engine.c ---- */

/* Ask about every job that was posted. Returns whether there was one. */
bool cox__engine_take_jobs(struct cox_runtime *runtime);

/* ---- engine_policy.c: what the policy is asked and told ---- */

/* Ask for the split of a frame that has just been started, and add its bands. */
void cox__policy_split(struct cox_session *session, struct cox__slot *slot);

/* Offer the frame's pool to the units that have nothing of the frame to do and are not in `held` (a bit each), either those
 * whose enqueue returns at once or the others. Returns whether anything came of it. */
bool cox__policy_offer(struct cox_session *session, struct cox__slot *slot, uint32_t held, bool blocking);

/* Units that may still take rows of the frame's pool. */
uint32_t cox__policy_waits_for(const struct cox_session *session, const struct cox__slot *slot);

/* A band is done, or has failed after it ran. */
void cox__policy_observe(struct cox_session *session, const struct cox__slot *slot, uint32_t band);

/* A frame is done, all before it are delivered. */
void cox__policy_observe_frame(struct cox_session *session, struct cox__slot *slot);

/* A frame begins while none before it is under way. */
void cox__policy_begin_period(struct cox_session *session);

/* ---- engine_warmup.c ---- */

/* Advance the warm-up, which comes before `frame`. Returns true if something happened. */
bool cox__warmup_step(struct cox_session *session, const struct cox__slot *frame);

/* ---- engine_spare.c: the spare buffers ---- */

/* Make the spare buffers serve a slot. False: they serve another now, are being made, or cannot be had (spare.stage). */
bool cox__spare_take(struct cox_session *session, const struct cox__slot *owner);

/* Copy what a band over these rows reads from the frame's buffers, after cox__spare_take. With `outputs` also what is in the rows
 * that it writes: where those rows come back, bytes that no kernel writes come back with them. */
void cox__spare_fill(struct cox_session *session, const struct cox__slot *frame, uint32_t first_row, uint32_t rows,
                     bool outputs);

/* Copy what was written in these rows into the frame's buffers. */
void cox__spare_fetch(struct cox_session *session, const struct cox__slot *frame, uint32_t first_row, uint32_t rows);

/* Add PENDING bands of a frame on the spare buffers, which serve it and hold their inputs. False: too many bands. */
bool cox__spare_add(struct cox_session *session, struct cox__slot *frame, uint32_t unit, uint32_t first_row,
                    uint32_t rows, uint32_t origin, bool check);

/* Whether a band counts instead of another one, or of a part of it, if that is late. */
static inline bool cox__is_stand_in(const struct cox__band_run *band, uint32_t origin)
{
    return band->spare && !band->check && band->origin == origin;
}

/* SHA-256 of what a frame's pipeline wrote in these rows of `mems`, and of the partials if not NULL. */
void cox__rows_digest(const struct cox_session *session, struct cox__mem *const *mems, const void *partials,
                      uint32_t first_row, uint32_t rows, unsigned char digest[32]);

/* Whether the spare's rows are the frame's. */
bool cox__spare_equal(const struct cox_session *session, const struct cox__slot *frame, uint32_t first_row,
                      uint32_t rows);

/* ---- engine_shadow.c ---- */

/* Begin the shadow that the frame's split wishes for, if it can be begun now; else the wish is forgotten. `held` as above. */
void cox__shadow_begin(struct cox_session *session, struct cox__slot *frame, uint32_t held);

/* Have a unit that was made anew do some rows of a finished frame, to see whether it works. */
void cox__shadow_prove(struct cox_session *session, struct cox__slot *frame);

/* Report a shadow that is over. Returns whether there was one. */
bool cox__shadow_end(struct cox_session *session);

/* ---- engine_late.c: deadlines, stand-ins, stragglers ---- */

/* Before the backend is asked for something that calls the driver: tell the guard whom it is about, and how long a call may take.
 * Here the engine must be in order: from such a call the thread may not come back, and somebody else goes on. */
void cox__calls_of(struct cox_session *session, uint32_t unit, struct cox__unit *made);

/* Set the deadlines of the unit's bands that have just been flushed: not of those that wait for somebody else's enqueue call. */
void cox__lanes_plan(struct cox_session *session, uint32_t unit);

/* A band of the unit has ended: those behind it in its queue begin now. */
void cox__lanes_advance(struct cox_session *session, uint32_t unit, uint64_t end_ns);

/* See to a busy lane's deadlines. True: one has passed. */
bool cox__lane_check(struct cox_session *session, struct cox__lane *lane, uint64_t now);

/* Find stand-ins for the frame's late bands. */
bool cox__late_serve(struct cox_session *session, struct cox__slot *slot);

/* A band with stand-ins is done before them. */
void cox__late_beaten(struct cox_session *session, struct cox__slot *slot, uint32_t band);

/* A stand-in is done; its rows count once all for the same band are. */
void cox__stand_in_done(struct cox_session *session, struct cox__slot *slot, uint32_t band);

/* A stand-in or a check has failed: another device does it, or nobody. */
void cox__spare_band_failed(struct cox_session *session, struct cox__slot *slot, uint32_t band);

/* The lane's band does not count any more; the lane is busy until it has ended. */
void cox__lane_detach(struct cox_session *session, struct cox__lane *lane);

/* The same for one without stand-ins: the rows are done by another device, or nobody. */
void cox__lane_leave(struct cox_session *session, struct cox__lane *lane);

/* A straggler has ended or was given up. */
void cox__straggler_end(struct cox_session *session, struct cox__lane *lane);

/* A straggler has written something else than what is in the frame: its rows are done again where it is not delivered. */
void cox__straggler_spoils(struct cox_session *session, const struct cox__lane *lane);

/* Whether a straggler may still write to a buffer of the frame, or reads what it writes, whatever session it is of. */
bool cox__frame_unsettled(const struct cox_session *session, const struct cox__slot *slot);

/* Ask the stragglers at bands of this frame: one may have failed, and left garbage, and not said so. True: something has
 * changed. */
bool cox__frame_ask(struct cox_session *session, const struct cox__slot *slot);

/* Whether a straggler is still at a band of this very frame, for which it has to wait. */
bool cox__frame_must_settle(struct cox_session *session, const struct cox__slot *slot);

/* Take the notes that a device which was given up may write to this memory. False: there were none. */
bool cox__haunt_take(struct cox_runtime *runtime, const struct cox__mem *mem);

/* Whether one is at these rows of it, or of its copies. */
bool cox__rows_unsettled(struct cox_session *session, const struct cox__slot *slot, bool on_spare, uint32_t first_row,
                         uint32_t rows);

/* ---- engine_health.c: losing devices and getting them back ---- */

/* The unit gets no rows until it is through with what it has under way, for which others stand in. */
void cox__unit_stall(struct cox_session *session, uint32_t unit);

/* The unit is quarantined; it leaves a wreck. */
void cox__unit_lose(struct cox_session *session, uint32_t unit, cox_status status);

/* A unit made anew has shown that it works, or that it does not. */
void cox__unit_proved(struct cox_session *session, uint32_t unit, cox_status status);

/* Whether any unit is usable. */
bool cox__engine_any_usable(const struct cox_session *session);

/* What is due of all that. True: something has changed. Sets *next to when something else is due. */
bool cox__health_step(struct cox_session *session, uint64_t *next);

/* ---- engine_verify.c ---- */

/* A frame's bands are all done: check a sample of them. True: the frame has to wait. */
bool cox__verify_frame(struct cox_session *session, struct cox__slot *slot);

/* A check is done. */
void cox__verify_done(struct cox_session *session, struct cox__slot *slot, uint32_t band);

/* A check cannot be done. */
void cox__verify_failed(struct cox__slot *slot, uint32_t band);

#endif
