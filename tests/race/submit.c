/* Many threads submit to the same sessions, wait for their own frames and check the results. Plain program, for
 * ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

#include <semaphore.h>

enum { THREADS = 4, SESSIONS = 3, FRAMES = 400, ROWS = 40, COLUMNS = 16 };

struct stream {
    cox_session *session;
    uint64_t next; /* not atomic: a session's callbacks run one after the other */
    uint64_t reports;
};

struct submitter {
    struct rig *rig;
    struct stream *streams;
    uint32_t number;
    uint32_t accepted[SESSIONS];
    uint32_t busy;
    sem_t done;
    struct stream *waiting; /* stream of the frame in flight */
    cox_status status;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct submitter *submitter = user;
    CHECK(submitter->waiting->next == frame);
    submitter->waiting->next++;
    submitter->status = status;
    sem_post(&submitter->done);
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct stream *stream = user;
    if (!report->warmup && !report->shadow) {
        CHECK(report->index == stream->reports);
        stream->reports++;
    }
}

static void *submit_frames(void *data)
{
    struct submitter *submitter = data;
    struct rig_frames *frames = rig_frames_new(submitter->rig, ROWS, COLUMNS, COLUMNS, 1);
    cox_buffer *buffers[2];
    uint64_t seed = submitter->number;
    for (uint32_t i = 0; i < FRAMES; i++) {
        const uint32_t s = (uint32_t)(rig_random(&seed) % SESSIONS);
        frames->params[0].add = (uint32_t)rig_random(&seed);
        memset(cox_buffer_data(frames->out[0]), 0, ROWS * COLUMNS);
        submitter->waiting = &submitter->streams[s];
        struct cox__frame_spec frame = race_map_frame(frames, 0, buffers);
        frame.nowait = rig_random(&seed) % 2;
        const cox_status status = cox__session_submit(submitter->streams[s].session, &frame, on_done, submitter);
        if (status == COX_E_BUSY) {
            submitter->busy++;
            continue;
        }
        CHECK(status == COX_OK);
        submitter->accepted[s]++;
        const struct cox_session_info info = rig_info(submitter->streams[s].session);
        CHECK(info.device_count == 3);
        while (sem_wait(&submitter->done) != 0)
            continue;
        CHECK(submitter->status == COX_OK);
        race_right("frame", i, rig_check(frames, 0));
    }
    rig_frames_free(&frames);
    return NULL;
}

int main(void)
{
    struct rig *rig =
        rig_new(&(const struct fake_params){.device_count = 3,
                                            .real_time = true,
                                            .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3},
                                                        {.fixed_ns = 50e3, .ns_per_row = 500},
                                                        {.mode = COX_MODE_STAGED, .ns_per_row = 2e3, .jitter = 0.5}}});
    struct stream streams[SESSIONS] = {{0}};
    struct submitter submitters[THREADS] = {{0}};
    check_limit("threads that submit to the same sessions");
    for (uint32_t s = 0; s < SESSIONS; s++)
        streams[s].session = race_map_session(rig, ROWS, COLUMNS,
                                              &(const struct cox__session_spec){.in_flight = 1 + s,
                                                                                .no_warmup = s == 1,
                                                                                .report = on_report,
                                                                                .report_user = &streams[s]});
    /* Posts come twice, early or not at all. */
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_POST_TWICE, .device = 0, .count = UINT32_MAX});
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_POST_EARLY, .device = 1, .count = UINT32_MAX});
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_NO_POST, .device = 2, .skip = 5, .count = 4});
    for (uint32_t t = 0; t < THREADS; t++) {
        submitters[t].rig = rig;
        submitters[t].streams = streams;
        submitters[t].number = t;
        sem_init(&submitters[t].done, 0, 0);
    }
    race_run(THREADS, submit_frames, submitters, sizeof *submitters);
    uint32_t accepted[SESSIONS] = {0}, busy = 0, total = 0;
    for (uint32_t t = 0; t < THREADS; t++) {
        sem_destroy(&submitters[t].done);
        busy += submitters[t].busy;
        for (uint32_t s = 0; s < SESSIONS; s++)
            accepted[s] += submitters[t].accepted[s];
    }
    for (uint32_t s = 0; s < SESSIONS; s++) {
        struct cox_session_info info;
        cox_session_wait(streams[s].session);
        cox_session_info(streams[s].session, &info);
        CHECK(streams[s].next == accepted[s]);
        CHECK(streams[s].reports == accepted[s]);
        CHECK(info.frames_done == accepted[s]);
        total += accepted[s];
        cox_session_destroy(&streams[s].session);
    }
    CHECK(total + busy == THREADS * FRAMES);
    race_end("rig", 0, &rig);
    printf("%u frames, %u refused as busy\n", total, busy);
    return 0;
}
