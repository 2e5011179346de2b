/* A policy that does what another one does and reports each call: its arguments and its answer.
 *
 * Thread-safety: as for policies. lab_tape_begin and the creation of the policy's user: from one
 * thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TAPE_H
#define COX_EXAMPLES_LAB_TAPE_H

#include <coxswain/sched.h>

enum lab_call_kind {
    LAB_CALL_INIT,         /* view, options; status */
    LAB_CALL_LOAD_PROFILE, /* view, profiles */
    LAB_CALL_SPLIT,        /* view; status, split */
    LAB_CALL_NEXT,         /* view, offer; grant */
    LAB_CALL_OBSERVE,      /* measurement */
    LAB_CALL_FRAME,        /* whole */
};

/* Reported after the call, and valid during the report. What does not belong to its kind is
 * NULL. */
struct lab_call {
    enum lab_call_kind kind;
    uint32_t pass; /* of the session, in the order in which their states were prepared */
    cox_status status;
    const struct cox_sched_view *view;
    const struct cox_policy_options *options;
    const struct cox_device_profile *profiles; /* view->device_count of them */
    const struct cox_split *split;
    const struct cox_chunk_request *offer;
    const struct cox_chunk *grant;
    const struct cox_measurement *measurement;
    const struct cox_frame_measurement *whole;
};

typedef void lab_tape_fn(void *user, const struct lab_call *call);

/* Must outlive the use of its policy. */
struct lab_tape {
    struct cox_policy policy; /* the one to use */
    const struct cox_policy *inner;
    lab_tape_fn *tell;
    void *user;
    uint32_t passes; /* whose states were prepared */
};

/* Prepare `tape`. The policy's interface passes no pointer of the caller's, so a variable of tape.c
 * hands the tape to the policy's state. Prepare the next tape only after the policy's `init` was
 * called. */
void lab_tape_begin(struct lab_tape *tape, const struct cox_policy *inner, lab_tape_fn *tell,
                    void *user);

/* A split and a grant as text, all of it: equal texts are equal answers. "why=4 expects=51200
 * alternative=0 pool=0+0 shadow=0:0+0 bands=0:0+536,1:536+544 done=51000,51100". `text` is always
 * terminated; LAB_ANSWER_BYTES are always enough. */
enum { LAB_ANSWER_BYTES = 8192 };
void lab_tape_split_text(const struct cox_split *split, cox_status status, uint32_t device_count,
                         char *text, size_t bytes);
void lab_tape_grant_text(const struct cox_chunk *grant, char *text, size_t bytes);

#endif
