/* A policy around another one: it calls the inner policy and reports the call; and answers as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>

/* Before the inner policy's state in memory. A session has one state for each pass. */
struct head {
    alignas(max_align_t) const struct lab_tape *tape;
    uint32_t pass;
};

static struct lab_tape *handed_over;

static void *inner_state(void *state)
{
    return (struct head *)state + 1;
}

static const struct lab_tape *tape_of(const void *state)
{
    return ((const struct head *)state)->tape;
}

static void tell(const void *state, struct lab_call *call)
{
    call->pass = ((const struct head *)state)->pass;
    tape_of(state)->tell(tape_of(state)->user, call);
}

static size_t taped_state_bytes(uint32_t device_count)
{
    return sizeof(struct head) + handed_over->inner->state_bytes(device_count);
}

static cox_status taped_init(void *state, const struct cox_sched_view *view,
                             const struct cox_policy_options *options)
{
    *(struct head *)state = (struct head){handed_over, handed_over->passes++};

    cox_status status = handed_over->inner->init(inner_state(state), view, options);

    tell(state, &(struct lab_call){
                    .kind = LAB_CALL_INIT, .status = status, .view = view, .options = options});
    return status;
}

static cox_status taped_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    cox_status status = tape_of(state)->inner->split(inner_state(state), view, out);

    tell(state,
         &(struct lab_call){.kind = LAB_CALL_SPLIT, .status = status, .view = view, .split = out});
    return status;
}

static void taped_observe(void *state, const struct cox_measurement *measurement)
{
    if (tape_of(state)->inner->observe)
        tape_of(state)->inner->observe(inner_state(state), measurement);

    tell(state, &(struct lab_call){.kind = LAB_CALL_OBSERVE, .measurement = measurement});
}

static void taped_next(void *state, const struct cox_sched_view *view,
                       const struct cox_chunk_request *offer, struct cox_chunk *out)
{
    tape_of(state)->inner->assign(inner_state(state), view, offer, out);

    tell(state,
         &(struct lab_call){.kind = LAB_CALL_NEXT, .view = view, .offer = offer, .grant = out});
}

static void taped_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    if (tape_of(state)->inner->observe_frame)
        tape_of(state)->inner->observe_frame(inner_state(state), measurement);

    tell(state, &(struct lab_call){.kind = LAB_CALL_FRAME, .whole = measurement});
}

static void taped_load_profile(void *state, const struct cox_sched_view *view,
                               const struct cox_device_profile *profiles)
{
    tape_of(state)->inner->load_profile(inner_state(state), view, profiles);

    tell(state,
         &(struct lab_call){.kind = LAB_CALL_LOAD_PROFILE, .view = view, .profiles = profiles});
}

static void taped_save_profile(const void *state, const struct cox_sched_view *view,
                               struct cox_device_profile *profiles)
{
    tape_of(state)->inner->save_profile((const struct head *)state + 1, view, profiles);
}

void lab_tape_begin(struct lab_tape *tape, const struct cox_policy *inner, lab_tape_fn *tell_fn,
                    void *user)
{
    tape->inner = inner;
    tape->tell = tell_fn;
    tape->user = user;
    tape->passes = 0;

    /* The session looks at which functions a policy has, so this one has only those of the inner
     * one. */
    tape->policy = (struct cox_policy){
        .name = inner->name,
        .state_bytes = taped_state_bytes,
        .init = taped_init,
        .split = taped_split,
        .observe = taped_observe,
        .observe_frame = taped_observe_frame,
    };
    if (inner->assign)
        tape->policy.assign = taped_next;
    if (inner->load_profile)
        tape->policy.load_profile = taped_load_profile;
    if (inner->save_profile)
        tape->policy.save_profile = taped_save_profile;

    handed_over = tape;
}

/* Where the next piece of text goes. */
struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (length < 0 || text->left == 0)
        return;

    size_t written = (size_t)length;
    if (written >= text->left)
        written = text->left - 1;
    text->at += written;
    text->left -= written;
}

void lab_tape_split_text(const struct cox_split *split, cox_status status, uint32_t device_count,
                         char *text, size_t bytes)
{
    struct text to = {text, bytes};

    if (status != COX_OK) {
        append(&to, "status=%d", (int)status);
        return;
    }
    append(&to, "why=%d expects=%" PRIu64 " alternative=%" PRIu64 " pool=%" PRIu32 "+%" PRIu32,
           (int)split->reason, split->predicted_ns, split->rejected_ns, split->pool_first_row,
           split->pool_rows);

    append(&to, " shadow=%" PRIu32 ":%" PRIu32 "+%" PRIu32, split->shadow.device,
           split->shadow.first_row, split->shadow.rows);

    for (uint32_t b = 0; b < split->band_count && b < COX_BANDS_MAX; b++)
        append(&to, "%s%" PRIu32 ":%" PRIu32 "+%" PRIu32,
               b ? "," : " bands=", split->bands[b].device, split->bands[b].first_row,
               split->bands[b].rows);

    for (uint32_t d = 0; d < device_count && d < COX_DEVICES_MAX; d++)
        append(&to, "%s%" PRIu64, d ? "," : " done=", split->device_ns[d]);
}

void lab_tape_grant_text(const struct cox_chunk *grant, char *text, size_t bytes)
{
    struct text to = {text, bytes};
    append(&to, "rows=%" PRIu32 " expects=%" PRIu64, grant->rows, grant->predicted_ns);
}
