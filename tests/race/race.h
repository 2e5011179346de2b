/* Helpers of the programs in this folder: threads, rounds in processes, and sessions without frames.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_RACE_H
#define COX_TESTS_RACE_H

#include "specs.h"
#include "support/check.h"
#include "support/fake_shapes.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

typedef void *race_fn(void *data);

static inline void race_rest(long ns)
{
    nanosleep(&(const struct timespec){.tv_nsec = ns}, NULL);
}

/* Exit with a message unless `wrong`, the answer of rig_check or shape_check, is "". */
static inline void race_right(const char *what, uint64_t number, const char *wrong)
{
    if (!*wrong)
        return;
    fprintf(stderr, "%s %llu: %s\n", what, (unsigned long long)number, wrong);
    exit(1);
}

static inline void race_end(const char *what, uint64_t number, struct rig **rig)
{
    race_right(what, number, rig_end(rig));
}

/* Run play(first) to play(first + count - 1), at most `at_once` at a time, since they spend most time waiting. Each
 * runs in its own process: ThreadSanitizer does not see that libuv closes descriptors, so it would mix up those of
 * two runtimes. */
static inline void race_rounds(uint64_t first, uint64_t count, uint32_t at_once, void (*play)(uint64_t number))
{
    uint64_t begun = 0, under_way = 0;
    while (begun < count || under_way > 0) {
        if (begun < count && under_way < at_once) {
            const pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                check_limit(check_limited);
                play(first + begun);
                exit(0);
            }
            begun++;
            under_way++;
            continue;
        }
        int status;
        CHECK(wait(&status) > 0 && status == 0);
        under_way--;
    }
}

/* Start threads. Thread t gets element t of the array at `data`, whose elements have `bytes` bytes; if `bytes` is
 * 0, all get `data`. */
static inline void race_start(pthread_t *threads, uint32_t count, race_fn *run, void *data, size_t bytes)
{
    for (uint32_t t = 0; t < count; t++)
        CHECK(pthread_create(&threads[t], NULL, run, bytes ? (char *)data + t * bytes : data) == 0);
}

static inline void race_join(const pthread_t *threads, uint32_t count)
{
    for (uint32_t t = 0; t < count; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
}

static inline void race_run(uint32_t count, race_fn *run, void *data, size_t bytes)
{
    pthread_t threads[16];
    CHECK(count <= sizeof threads / sizeof threads[0]);
    race_start(threads, count, run, data, bytes);
    race_join(threads, count);
}

static inline cox_session *race_map_session(struct rig *rig, uint32_t rows, uint32_t columns,
                                            const struct cox__session_spec *extra)
{
    struct rig_frames shape = {.rig = rig, .rows = rows, .columns = columns, .pitch = columns};
    cox_session *session;
    CHECK(rig_map_session(&shape, extra, &session) == COX_OK);
    return session;
}

static inline cox_session *race_shape_session(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                              const struct cox__session_spec *extra)
{
    struct shape_frames *frames = shape_frames_new(rig, shape, rows, columns, 1);
    cox_session *session;
    CHECK(shape_session(frames, extra, &session) == COX_OK);
    shape_frames_free(&frames);
    return session;
}

/* A frame with buffer set `index` of `frames`. The caller's array `buffers` must outlive it. */
static inline struct cox__frame_spec race_map_frame(const struct rig_frames *frames, uint32_t index,
                                                    cox_buffer *buffers[2])
{
    buffers[0] = frames->in[index];
    buffers[1] = frames->out[index];
    return (struct cox__frame_spec){.buffers = buffers, .buffer_count = 2, .params = &frames->params[index]};
}

#endif
