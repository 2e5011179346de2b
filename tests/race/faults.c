/* Two of three devices hang for a while, fail, die and return, or compute wrong bits. Four threads submit to
 * sessions with `verify`. Every frame must get one callback, in order. Its result is right, or its status is an
 * error because the devices disagreed or none was left. Plain program, for ThreadSanitizer.
 *
 *   race_faults [ROUNDS [FIRST_SEED]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <stdatomic.h>

enum { ROUNDS = 12, AT_ONCE = 4, THREADS = 4, SESSIONS = 4, FRAMES = 60, POOL = 4, ROWS = 48, COLUMNS = 16 };

/* Shapes of the sessions without `verify`, one of which is a sum, and of the sessions with it. */
static const enum shape plain_shapes[SESSIONS] = {SHAPE_MAP, SHAPE_HALO, SHAPE_CHROMA, SHAPE_COUNT};
static const enum shape verified_shapes[SESSIONS] = {SHAPE_MAP, SHAPE_HALO, SHAPE_TWO, SHAPE_TABLE};

struct stream {
    cox_session *session;
    enum shape shape;
    bool spared; /* one device has no faults */
    bool verify;
    uint64_t next; /* not atomic: a session's callbacks run one after the other */
    uint64_t good;
    _Atomic uint64_t accepted;
};

struct ticket {
    struct stream *stream;
    cox_status status;
    uint32_t calls;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct ticket *ticket = user;
    struct stream *stream = ticket->stream;
    CHECK(frame == stream->next);
    stream->next++;
    stream->good += status == COX_OK;
    ticket->calls++;
    ticket->status = status;
    CHECK(status == COX_OK || (!stream->spared && status == COX_E_DEVICE_LOST) ||
          (stream->verify && status == COX_E_MISMATCH));
}

struct submitter {
    struct rig *rig;
    struct stream *streams;
    uint64_t seed;
};

/* Submit a few frames to each session, one session after the other, and check each result. */
static void *submit_frames(void *data)
{
    struct submitter *submitter = data;
    struct shape_frames *frames[SESSIONS];
    for (uint32_t s = 0; s < SESSIONS; s++)
        frames[s] = shape_frames_new(submitter->rig, submitter->streams[s].shape, ROWS, COLUMNS, POOL);
    for (uint32_t i = 0; i < FRAMES; i += POOL) {
        const uint32_t s = (uint32_t)(rig_random(&submitter->seed) % SESSIONS);
        struct stream *stream = &submitter->streams[s];
        struct ticket tickets[POOL];
        uint32_t accepted = 0;
        for (; accepted < POOL; accepted++) {
            const struct cox__frame_spec frame = shape_frame(frames[s], accepted);
            tickets[accepted] = (struct ticket){.stream = stream, .status = COX_E_BUSY};
            shape_prepare(frames[s], accepted);
            const cox_status status = cox__session_submit(stream->session, &frame, on_done, &tickets[accepted]);
            CHECK(status == COX_OK || (status == COX_E_NO_DEVICE && !stream->spared));
            if (status) {
                race_rest(5000000);
                break;
            }
        }
        atomic_fetch_add(&stream->accepted, accepted);
        cox_session_wait(stream->session);
        for (uint32_t k = 0; k < accepted; k++) {
            CHECK(tickets[k].calls == 1);
            if (tickets[k].status == COX_OK)
                race_right("frame", i + k, shape_check(frames[s], k));
            frames[s]->params[k].add += 13;
        }
    }
    for (uint32_t s = 0; s < SESSIONS; s++)
        shape_frames_free(&frames[s]);
    return NULL;
}

/* Which faults occur together. */
enum mix { MIX_LATE, MIX_LIES, MIX_FAILS, MIX_ALL, MIXES };

static void script_faults(struct fake *fake, uint32_t first_device, enum mix mix, uint64_t *seed)
{
    static const enum fake_fault_kind harmless[] = {FAKE_POST_TWICE, FAKE_POST_EARLY, FAKE_NO_POST,
                                                    FAKE_END_EARLY,  FAKE_SLOW,       FAKE_SUBMIT_FAILS};
    static const enum fake_fault_kind kinds[MIXES][4] = {
        [MIX_LATE] = {FAKE_HANGS, FAKE_HANGS, FAKE_HANGS, FAKE_HANGS},
        [MIX_LIES] = {FAKE_CORRUPTS, FAKE_CORRUPTS, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES},
        [MIX_FAILS] = {FAKE_HANGS, FAKE_FAILS_LATE, FAKE_EVENT_FAILS, FAKE_DEVICE_DIES},
        [MIX_ALL] = {FAKE_HANGS, FAKE_FAILS_LATE, FAKE_CORRUPTS, FAKE_DEVICE_DIES},
    };
    for (uint32_t i = 0; i < 30; i++)
        fake_script(fake, &(struct fake_fault){
                              .kind = i % 2 ? harmless[rig_random(seed) % 6] : kinds[mix][rig_random(seed) % 4],
                              .device = first_device + (uint32_t)(rig_random(seed) % (3 - first_device)),
                              .skip = 20 + (uint32_t)(rig_random(seed) % 200),
                              .status = COX_E_DEVICE_LOST,
                              .delay_ns = 1 + rig_random(seed) % 60000000,
                              .factor = 1 + (double)(rig_random(seed) % 30)});
    fake_script(fake, &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS, .device = 2, .skip = 1, .status = COX_E_NOMEM});
}

static void play(uint64_t seed)
{
    struct rig *rig = rig_new(&(const struct fake_params){.device_count = 3,
                                                          .real_time = true,
                                                          .devices = {{.ns_per_row = 3e3},
                                                                      {.fixed_ns = 50e3, .ns_per_row = 1e3},
                                                                      {.mode = COX_MODE_STAGED, .ns_per_row = 4e3}}});
    static const char *const policies[] = {"adaptive", "chunks", "static", "single"};
    const enum mix mix = (enum mix)(seed % MIXES);
    const bool verify = mix == MIX_LIES || mix == MIX_ALL;
    const bool spared = seed % 3 != 0 || verify; /* the last device left has no other to be compared with */
    struct stream streams[SESSIONS];
    struct submitter submitters[THREADS];
    uint64_t random = seed, good = 0, all = 0;
    for (uint32_t s = 0; s < SESSIONS; s++) {
        const enum shape shape = verify ? verified_shapes[s] : plain_shapes[s];
        streams[s] = (struct stream){.shape = shape, .spared = spared, .verify = verify};
        streams[s].session = race_shape_session(rig, shape, ROWS, COLUMNS,
                                                &(const struct cox__session_spec){.policy = policies[(s + seed) % 4],
                                                                                  .in_flight = 1 + (s + seed) % 4,
                                                                                  .no_warmup = s % 2,
                                                                                  .verify = verify ? 1 : 0,
                                                                                  .device_timeout_ns = 1000000000});
    }
    script_faults(rig_fake(rig), spared, mix, &random);
    for (uint32_t t = 0; t < THREADS; t++)
        submitters[t] = (struct submitter){.rig = rig, .streams = streams, .seed = seed * THREADS + t};
    race_run(THREADS, submit_frames, submitters, sizeof *submitters);

    for (uint32_t s = 0; s < SESSIONS; s++) {
        cox_session_destroy(&streams[s].session);
        CHECK(streams[s].next == atomic_load(&streams[s].accepted));
        good += streams[s].good;
        all += streams[s].next;
    }
    race_end("seed", seed, &rig);
    printf("seed %llu: %llu frames, %llu right\n", (unsigned long long)seed, (unsigned long long)all,
           (unsigned long long)good);
}

int main(int argc, char **argv)
{
    check_limit("frames on devices with every fault");
    race_rounds(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS, AT_ONCE,
                play);
    return 0;
}
