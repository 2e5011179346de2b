/* A mapper maps the frames of one shape, with a session of its own. A stream keeps the mappers of
 * its latest shapes.
 * Thread-safety: one thread at a time; cox__mappers_cancel and _session_info from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_STREAM_MAPPER_H
#define COX_STREAM_MAPPER_H

#include "base/spec.h"

#include <coxswain/stream.h>
#include <pthread.h>
#include <stdatomic.h>

/* The stream's numbers of a session's latest frames, for reports. */
enum { COX__NUMBERS = 2 * COX_IN_FLIGHT_MAX + 4 };
struct cox__number {
    uint64_t frame; /* of the stream */
    bool rehearsal; /* mapped to learn its light; only its warm-up runs are reported */
};

/* When a mapper's frames are counted. */
enum cox__counting {
    COX__COUNTING_NONE,
    COX__COUNTING_TOO,   /* while they are mapped */
    COX__COUNTING_FIRST, /* in a pass before */
};

struct cox__mapper {
    struct cox__mapper *next; /* the one that was used before it */
    const struct cox__mappers *all;
    struct cox_video_shape shape;
    enum cox__counting counting;
    cox_session *mapping;
    uint32_t binding_count;
    size_t params_bytes;
    struct cox_video_settings settings; /* of the last frame */
    struct cox_constants params;        /* made of `settings` */
    bool is_prepared;                   /* whether `params` are valid */
    atomic_uint frames;                 /* sent through it and not received */
    pthread_mutex_t lock;               /* guards the fields below, which reports read */
    uint64_t submitted;                 /* frames, to `mapping` */
    struct cox__number numbers[COX__NUMBERS];
};

struct cox__mappers {
    cox_runtime *runtime;
    struct cox__session_spec params;   /* the application's, without passes */
    uint32_t devices[COX_DEVICES_MAX]; /* for `params` */
    bool background;                   /* sessions start on the first device that is ready */
    cox_pass_done_fn *counted;         /* a frame was counted in a pass before it is mapped */
    void *counted_user;
    pthread_mutex_t lock; /* guards the list, for other threads, and starts */
    pthread_cond_t started;
    struct cox__mapper *newest;
    atomic_ullong made;
};

/* `params`: what an application gives cox_video_stream_create; may be NULL. Clear the mappers on an
 * error too.
 * Errors: COX_E_INVALID, COX_E_NOT_FOUND (the log says which field). */
cox_status cox__mappers_init(struct cox__mappers *mappers, cox_runtime *runtime,
                             const struct cox_session_params *params);

/* Destroy all mappers. No frame may be under way. */
void cox__mappers_clear(struct cox__mappers *mappers);

/* The mapper of exactly this shape, or NULL. */
struct cox__mapper *cox__mappers_find(const struct cox__mappers *mappers,
                                      const struct cox_video_shape *shape,
                                      enum cox__counting counting);

/* Make the mapper of this shape the newest; create it if it does not exist. The sessions of shapes
 * that were in use long ago and have no frames are destroyed.
 * Errors: as cox_video_mapping and cox_session_create. */
cox_status cox__mappers_use(struct cox__mappers *mappers, const struct cox_video_shape *shape,
                            enum cox__counting counting, struct cox__mapper **out);

/* Make the parameter block of a frame. It stays valid until the next frame's.
 * Errors: as cox_video_prepare. */
cox_status cox__mapper_prepare(struct cox__mapper *mapper,
                               const struct cox_video_settings *settings,
                               const struct cox_constants **params);

/* Note the stream's number of the next frame that `mapping` gets. */
void cox__mapper_number(struct cox__mapper *mapper, uint64_t frame, bool rehearsal);

/* Undo cox__mapper_number: `mapping` refused the frame. */
void cox__mapper_take_back(struct cox__mapper *mapper);

void cox__mappers_cancel(struct cox__mappers *mappers);

/* The info of the newest mapper's session; zeros if there is no mapper. */
void cox__mappers_session_info(struct cox__mappers *mappers, struct cox_session_info *info);

#endif
