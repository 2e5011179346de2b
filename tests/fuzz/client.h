/* Shared by the fuzz targets of the engine: the application that has a session.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_CLIENT_H
#define COX_TESTS_FUZZ_CLIENT_H

#include "one_thread.h"
#include "heap.h"
#include "support/fake_shapes.h"

enum { SETS_MAX = 12, FRAMES_MAX = 40 };

struct client;

/* An accepted frame whose end has not been observed. */
struct pending {
    struct client *client;
    uint64_t submit_ns;
    uint64_t deadline_ns; /* if not 0, the frame is dropped when it would end later than this */
    uint32_t number;
    uint32_t set;
    uint32_t struck;         /* number of faults before its submit */
    uint32_t without_memory; /* and of allocations that failed */
    bool cancelled;
    bool known;  /* all devices were timed before its submit */
    bool run;    /* by cox_session_run: ends when that returns */
    bool silent; /* without a callback: ends with its report */
    bool back;   /* writes the input of its set, and reads the output of `from`, or its input if that is another set */
    uint32_t from;
    cox_status status;
};

/* What the application knows of a session, of those that it had in this place before, and of its frames. */
struct client {
    uint32_t number;
    struct shape_frames *frames;
    cox_session *session;
    struct cox__session_spec params;
    size_t log_from; /* start of this session's log */
    uint32_t sets;
    bool anew[SETS_MAX];        /* the set needs other buffers */
    bool tainted[SETS_MAX];     /* the set cannot be used any more */
    bool dropped[SETS_MAX];     /* its buffers were destroyed during a frame */
    bool delivered[SETS_MAX];   /* a frame with this set was delivered, and nobody has written its outputs since; */
    uint64_t digests[SETS_MAX]; /* their digest then */
    uint32_t submitted;
    uint32_t base; /* frames submitted to earlier sessions */
    uint32_t over;
    uint32_t reports;
    cox_status unseen;     /* of the first silent frame that failed, until cox_session_wait returns it */
    uint32_t chain;        /* frames to submit from callbacks */
    uint32_t first, count; /* of `pending` */
    struct pending pending[FRAMES_MAX];
    struct cox_session_info info;

    uint32_t busy[SETS_MAX]; /* frames under way with the set */
    bool refills;            /* inputs of a set change with each frame */
    bool drops;              /* frames that would be late are dropped */
    bool has_place;          /* a callback submits its first frame, for which there is a free slot */
    bool silent;             /* the next frame has no callback */
    bool blocked;            /* in cox_session_submit, so callbacks must not submit */
    bool stays;              /* its inputs stay on devices */
    bool joins;              /* its devices join in the background */
    bool ready;              /* and its callback has reported that, */
    cox_status ready_status;
    bool misuses; /* its next callback calls what callbacks must not call */
};

/* The client that acts, or whose callback runs. */
static struct client *c;

/* Called at the end of a callback, if not NULL. */
static void (*in_callback)(void);

/* Number of sessions that leaked their memory on purpose. There is a limit. */
static uint32_t leaked;

#endif
