/* Threads wait for a session's descriptor and run its callbacks, while others submit, cancel and run frames, and drop
 * some that would be late. A plain program, to be run under ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "race.h"

#include <poll.h>
#include <stdatomic.h>

enum { DISPATCHERS = 2, SUBMITTERS = 3, FRAMES = 300, SETS = 8, ROWS = 40, COLUMNS = 16 };

struct stream {
    struct rig *rig;
    cox_session *session;
    uint64_t next; /* plain, as the next two: one thread at a time runs callbacks */
    uint32_t done;
    uint32_t good;
    atomic_uint accepted;
    atomic_bool over; /* nothing is submitted any more */
};

/* Frames of one submitter; a set is in one frame at a time. */
struct submitter {
    struct stream *stream;
    struct rig_frames *frames;
    uint32_t number;
    struct set {
        struct submitter *submitter;
        uint32_t index;
        atomic_bool free;
    } sets[SETS];
};

/* Frames of cox_session_run have numbers too, and no callback. */
static void note(struct stream *stream, uint64_t frame, cox_status status)
{
    CHECK(frame >= stream->next);
    stream->next = frame + 1;
    stream->done++;
    stream->good += status == COX_OK;
    CHECK(status == COX_OK || status == COX_E_CANCELLED || status == COX_E_LATE);
}

static void on_chained(void *user, uint64_t frame, cox_status status)
{
    struct set *set = user;
    note(set->submitter->stream, frame, status);
    atomic_store(&set->free, true);
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct set *set = user;
    struct stream *stream = set->submitter->stream;
    note(stream, frame, status);
    CHECK(status != COX_OK || !*rig_check(set->submitter->frames, set->index));
    if (frame % 16 == 0) { /* the set once more: there is always a place for it */
        cox_buffer *buffers[2];
        const struct cox_frame again = race_map_frame(set->submitter->frames, set->index, buffers);
        CHECK(cox_session_submit(stream->session, &again, on_chained, set) == COX_OK);
        atomic_fetch_add(&stream->accepted, 1);
    } else {
        atomic_store(&set->free, true);
    }
}

static void *dispatch(void *data)
{
    struct stream *stream = data;
    struct pollfd on = {.fd = cox_session_descriptor(stream->session), .events = POLLIN};
    CHECK(on.fd >= 0);
    for (bool over = false; !over;) {
        over = atomic_load(&stream->over); /* once more after that */
        CHECK(poll(&on, 1, 1) >= 0);
        CHECK(cox_session_dispatch(stream->session, on.revents & POLLIN ? 0 : 100000) >= 0);
    }
    return NULL;
}

/* So many frames of each submitter are taken. */
static void *submit(void *data)
{
    struct submitter *submitter = data;
    struct stream *stream = submitter->stream;
    uint64_t seed = submitter->number;
    for (uint32_t n = 0; n < FRAMES;) {
        struct set *set = &submitter->sets[rig_random(&seed) % SETS];
        cox_buffer *buffers[2];
        struct cox_frame frame = race_map_frame(submitter->frames, set->index, buffers);
        frame.nowait = n % 2 == 0;
        frame.deadline_ns = 200000;
        frame.late = n % 3 == 0 ? COX_LATE_DROP : COX_LATE_DELIVER;
        if (!atomic_load(&set->free)) {
            race_rest(20000);
            continue;
        }
        if (n % 20 == 7) {
            const cox_status status = cox_session_run(stream->session, &frame);
            CHECK(status == COX_OK || status == COX_E_BUSY || status == COX_E_CANCELLED || status == COX_E_LATE);
            n += status != COX_E_BUSY;
            continue;
        }
        atomic_store(&set->free, false);
        const cox_status status = cox_session_submit(stream->session, &frame, on_done, set);
        CHECK(status == COX_OK || status == COX_E_BUSY);
        if (status == COX_E_BUSY) {
            atomic_store(&set->free, true);
            continue;
        }
        atomic_fetch_add(&stream->accepted, 1);
        if (n % 40 == 0)
            CHECK(cox_session_cancel(stream->session) == COX_OK);
        if (n % 50 == 0)
            CHECK(cox_session_wait(stream->session) == COX_OK);
        n++;
    }
    return NULL;
}

int main(void)
{
    struct stream stream = {
        .rig = rig_new(&(const struct fake_params){
            .device_count = 2,
            .real_time = true,
            .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3}, {.mode = COX_MODE_STAGED, .ns_per_row = 2e3}}})};
    static struct submitter submitters[SUBMITTERS];
    pthread_t dispatchers[DISPATCHERS];
    struct cox_session_info info;
    check_limit("threads that run a session's callbacks");
    stream.session = race_map_session(stream.rig, ROWS, COLUMNS,
                                      &(const struct cox_session_params){.in_flight = 6, .dispatch = true});
    race_start(dispatchers, DISPATCHERS, dispatch, &stream, 0);
    for (uint32_t t = 0; t < SUBMITTERS; t++) {
        submitters[t] = (struct submitter){.stream = &stream, .number = t};
        submitters[t].frames = rig_frames_new(stream.rig, ROWS, COLUMNS, COLUMNS, SETS);
        for (uint32_t s = 0; s < SETS; s++) {
            submitters[t].sets[s] = (struct set){.submitter = &submitters[t], .index = s};
            atomic_init(&submitters[t].sets[s].free, true);
        }
    }
    race_run(SUBMITTERS, submit, submitters, sizeof *submitters);
    atomic_store(&stream.over, true);
    race_join(dispatchers, DISPATCHERS);
    cox_session_info(stream.session, &info);
    cox_session *last = stream.session; /* what is left runs here, and submits to the stream's */
    cox_session_destroy(&last);
    CHECK(stream.done == atomic_load(&stream.accepted));
    CHECK(stream.good > 0);
    for (uint32_t t = 0; t < SUBMITTERS; t++)
        rig_frames_free(&submitters[t].frames);
    race_end("seed", 0, &stream.rig);
    printf("%u callbacks, %u of them good; %llu frames dropped\n", stream.done, stream.good,
           (unsigned long long)info.frames_dropped);
    return 0;
}
