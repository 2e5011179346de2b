/* What the programs of this folder share: threads, and sessions for which no frame is there yet.
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

/* `wrong` is what rig_check or shape_check said: "", or the program ends with it. */
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

/* Play numbers from `first` on, so many at once: they mostly wait. Each is a process of its own, since ThreadSanitizer
 * does not see what libuv closes, and takes descriptors of one runtime for those of another. */
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

/* Start threads, each with one of the elements of `bytes` bytes at `data`; 0 = all with the same. */
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

/* A frame of set `index` of such frames, in `buffers`. */
static inline struct cox__frame_spec race_map_frame(const struct rig_frames *frames, uint32_t index,
                                                    cox_buffer *buffers[2])
{
    buffers[0] = frames->in[index];
    buffers[1] = frames->out[index];
    return (struct cox__frame_spec){.buffers = buffers, .buffer_count = 2, .params = &frames->params[index]};
}

#endif
