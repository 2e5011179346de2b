/* What the programs of bits/ that open a runtime have in common: their options, the devices, what they count.
 *
 *   --devices SEL  --cache DIR   the runtime's
 *   --arithmetic A               muladd or fma; status 77 if devices have no quick fma
 *   --expect N                   so many devices, or it has failed
 *   --splits N                   random splits of each thing
 *   --reference                  compare with the reference too
 *   --small                      small frames and at most four splits, for a simulator
 *   --verbose                    the runtime's log
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BITS_SUITE_H
#define COX_TESTS_BITS_SUITE_H

#include "specs.h"
#include "support/bits_frame.h"
#include "support/random_splits.h"

enum { BITS_ALL_DEVICES = UINT32_MAX, BITS_LANES = 2 };

struct bits_suite {
    uint32_t splits; /* unless an option says otherwise; set before bits_suite_begin */

    cox_runtime *runtime;
    uint32_t device_count;
    bool reference, small, verbose;
    bool staged; /* some device is */
    uint32_t passed, failed, complaints;
    struct random_tally tally; /* of the sessions closed */
};

/* An option of the program's own: how many arguments it is, with its value, which may be NULL; 0 = unknown. */
typedef int bits_option_fn(void *user, const char *option, const char *value);

/* Read the options, open the runtime, print a line for each device. Returns the status to exit with, 77 without OpenCL
 * devices; -1 = go on. */
int bits_suite_begin(struct bits_suite *suite, int argc, char **argv, bits_option_fn *own, void *user);

/* On standard error, the first few times. Returns false. */
__attribute__((format(printf, 2, 3))) bool bits_complain(struct bits_suite *suite, const char *format, ...);

/* Complain of devices that got no rows under random splits. */
void bits_suite_tally(struct bits_suite *suite);

/* Close the runtime, print "N passed, N failed". Returns the status to exit with. */
int bits_suite_end(struct bits_suite *suite);

/* Count a line that was printed, whose last word is `good ? yes : no`. */
void bits_verdict(struct bits_suite *suite, bool good, const char *yes, const char *no);

/* A session of one device with whole frames, or of all devices under random splits. */
struct bits_session {
    struct bits_suite *suite;
    cox_session *session;
    char how[32]; /* for messages */
    uint32_t rows, row_alignment, devices;
    struct bits_lane {
        cox_status status;
        bool done;
    } lanes[BITS_LANES];
    struct random_tally tally; /* of the scheduler thread while frames are under way */
};

/* Add what such a session is made with, for one device or BITS_ALL_DEVICES; the other arguments are as below. `device`
 * must last as long as the params. */
void bits_session_params(struct cox__session_spec *params, const uint32_t *device, uint32_t split_first,
                         uint32_t split_row_alignment);

/* `what` is for messages, `params` a pipeline's; the other fields but in_flight are set here. All devices: under the
 * splits from number `split_first` on, with cuts at multiples of `split_row_alignment`; 0 = the session's own. */
bool bits_session_open(struct bits_suite *suite, const char *what, const struct cox__session_spec *params,
                       uint32_t device, uint32_t split_first, uint32_t split_row_alignment, struct bits_session *out);

/* False if a device left, or a frame was not split as drawn. Accepts one that could not be opened. */
bool bits_session_close(struct bits_session *session);

/* --- What all devices must agree on ------------------------------------------------------------------------------- */

struct bits_result {
    const char *what; /* with `how` the name of it */
    char how[24];
    uint32_t width, height;   /* to be printed */
    const void *params;       /* of each frame */
    struct bits_frame *lanes; /* where frames go, in turn: so many are in flight */
    uint32_t lane_count;      /* at most BITS_LANES */
    uint32_t splits;          /* frames by all devices together, each under another split */
    uint32_t split_first;     /* the first one's number */
    bool intact;              /* nothing is written beside the rows either */
    bool warm;                /* sessions are warmed first, with parameters that are all zeros */
    uint8_t *first;           /* the first device's; NULL = none yet */
    size_t bytes;
    uint32_t runs, wrong;
};

/* One frame of each result by each device alone, then `splits` frames of each by all devices under random splits. The
 * results have the pipeline of `params` in common. Every frame must give the first one's bits. `*row_alignment`: of the
 * splits; 0 = that of the session of all devices, which it then gets; may be NULL. False if something else went
 * wrong. */
bool bits_result_run(struct bits_suite *suite, const struct cox__session_spec *params, struct bits_result *results,
                     uint32_t count, uint32_t *row_alignment);

/* Print a line "bits ...", and free the first bytes. */
void bits_result_print(struct bits_suite *suite, struct bits_result *result, bool good);

/* One frame in the memory of lane `lane`, and its end. */
bool bits_submit(struct bits_session *session, const struct bits_result *result, uint32_t lane);
bool bits_wait(struct bits_session *session, const struct bits_result *result, uint32_t lane);

#endif
