/* Shared by the programs of tests/bits and tests/backend that open a runtime: options, devices, and counts of
 * results.
 *
 *   --devices SEL  --cache DIR   the runtime's devices and cache
 *   --arithmetic A               muladd or fma; exit status 77 if a device has no fast fma
 *   --expect N                   fail unless there are N devices
 *   --splits N                   random splits of each item
 *   --reference                  compare with the reference as well
 *   --small                      small frames and at most four splits, for a simulator
 *   --check                      one split of each item, in check mode
 *   --verbose                    print the runtime's log
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BITS_SUITE_H
#define COX_TESTS_BITS_SUITE_H

#include "specs.h"
#include "support/bits_frame.h"
#include "support/random_splits.h"

enum { BITS_ALL_DEVICES = UINT32_MAX, BITS_LANES = 2 };

struct bits_suite {
    uint32_t splits; /* default of --splits; set before bits_suite_begin */

    cox_runtime *runtime;
    uint32_t device_count;
    bool reference, small, verbose, check;
    bool staged; /* whether a device is staged */
    uint32_t passed, failed, complaints;
    struct random_tally tally; /* of the closed sessions */
};

/* Reads an option of the program. Returns its number of words with its value, which may be NULL; 0 = unknown. */
typedef int bits_option_fn(void *user, const char *option, const char *value);

/* Read the options, open the runtime, and print a line for each device. Returns the exit status, 77 without OpenCL
 * devices, or -1 to continue. */
int bits_suite_begin(struct bits_suite *suite, int argc, char **argv, bits_option_fn *own, void *user);

/* Print a message to standard error, the first few times only. Returns false. */
__attribute__((format(printf, 2, 3))) bool bits_complain(struct bits_suite *suite, const char *format, ...);

/* Report devices that got no rows under random splits. */
void bits_suite_tally(struct bits_suite *suite);

/* Close the runtime and print "N passed, N failed". Returns the exit status. */
int bits_suite_end(struct bits_suite *suite);

/* Count a printed line, whose last word is `good ? yes : no`. */
void bits_verdict(struct bits_suite *suite, bool good, const char *yes, const char *no);

/* A session on one device with whole frames, or on all devices with random splits. */
struct bits_session {
    struct bits_suite *suite;
    cox_session *session;
    char how[32]; /* for messages */
    uint32_t rows, row_alignment, devices;
    struct bits_lane {
        cox_status status;
        bool done;
    } lanes[BITS_LANES];
    struct random_tally tally; /* written by the scheduler thread while frames are in flight */
};

/* Set the session's fields for one device or for BITS_ALL_DEVICES. The other arguments are as for
 * bits_session_open. `device` must outlive `params`. */
void bits_session_params(struct cox__session_spec *params, const uint32_t *device, uint32_t split_first,
                         uint32_t split_row_alignment);

/* Open a session. `what` is for messages. `params` is a pipeline's; the other fields except in_flight are set here.
 * With all devices, splits are drawn from number `split_first` on and cut at multiples of `split_row_alignment`; 0
 * = the session's row alignment. */
bool bits_session_open(struct bits_suite *suite, const char *what, const struct cox__session_spec *params,
                       uint32_t device, uint32_t split_first, uint32_t split_row_alignment, struct bits_session *out);

/* Returns false if a device was lost, or if a frame was not split as drawn. A session that failed to open is
 * allowed. */
bool bits_session_close(struct bits_session *session);

/* --- Results that all devices must agree on ----------------------------------------------------------------------- */

struct bits_result {
    const char *what; /* the name, together with `how` */
    char how[24];
    uint32_t width, height;   /* for printing */
    const void *params;       /* of each frame */
    struct bits_frame *lanes; /* one for each frame in flight */
    uint32_t lane_count;      /* at most BITS_LANES */
    uint32_t splits;          /* frames on all devices together, each with another split */
    uint32_t split_first;     /* number of the first split */
    bool intact;              /* also check that nothing outside the rows is written */
    bool warm;                /* warm sessions up first, with all-zero parameters */
    uint8_t *first;           /* the first device's result; NULL = none yet */
    size_t bytes;
    uint32_t runs, wrong;
};

/* Run one frame of each result on each device alone. Then run `splits` frames of each on all devices, with random
 * splits. Every frame must give the same bits as the first one. All results use the pipeline of `params`.
 *
 * `*row_alignment` is that of the splits; if it is 0, it is set to the row alignment of the session with all devices.
 * `row_alignment` may be NULL. Returns false if something else failed. */
bool bits_result_run(struct bits_suite *suite, const struct cox__session_spec *params, struct bits_result *results,
                     uint32_t count, uint32_t *row_alignment);

/* Print a line "bits ..." and free the first result. */
void bits_result_print(struct bits_suite *suite, struct bits_result *result, bool good);

/* bits_submit: submit one frame in the memory of lane `lane`. bits_wait: wait for it. */
bool bits_submit(struct bits_session *session, const struct bits_result *result, uint32_t lane);
bool bits_wait(struct bits_session *session, const struct bits_result *result, uint32_t lane);

#endif
