/* Several processes of several threads each load and save profiles of a few keys in one directory at once, from before
 * it exists, more keys than are kept. A plain program, to be run under ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/scratch.h"
#include "store/cache.h"
#include <coxswain/sched.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 5, THREADS = 3, ROUNDS = 60, KEYS = 6, KEPT = 4 };

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

static char dir[64];
static uint32_t process;
static struct cox__cache_kind kind;

static void on_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", line);
    _exit(1);
}

static const struct cox__log logger = {.fn = on_line, .level = COX_LOG_DEBUG};

/* Both devices' figures of a file come from one writer, whose number is in them. */
static void save(uint32_t number, uint32_t writer)
{
    struct cox_device_profile profiles[2];
    unsigned char key[32] = {(unsigned char)number};
    for (uint32_t d = 0; d < 2; d++)
        profiles[d] = (struct cox_device_profile){.frames = 100, .fixed_ns = writer, .ns_per_row = 1 + writer};
    cox__cache_store(dir, &kind, key, profiles, sizeof profiles, &logger);
}

static bool load_whole(uint32_t number)
{
    unsigned char key[32] = {(unsigned char)number};
    size_t bytes;
    struct cox_device_profile *profiles = cox__cache_load(dir, &kind, key, &bytes, &logger);
    if (!profiles)
        return false;
    CHECK(bytes == 2 * sizeof *profiles);
    for (uint32_t d = 0; d < 2; d++) {
        CHECK(profiles[d].fixed_ns == profiles[0].fixed_ns);
        CHECK(profiles[d].ns_per_row == 1 + profiles[0].fixed_ns);
    }
    free(profiles);
    return true;
}

static void *read_and_write(void *number)
{
    uint32_t writer = process * THREADS + *(uint32_t *)number;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        load_whole((writer + 2 * round) % KEYS);
        save((writer + round) % KEYS, writer);
        load_whole((writer + 3 * round) % KEYS);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    for (uint32_t t = 0; t < THREADS; t++) {
        numbers[t] = t;
        CHECK(pthread_create(&threads[t], NULL, read_and_write, &numbers[t]) == 0);
    }
    for (uint32_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

int main(void)
{
    kind = cox__cache_profiles;
    kind.files_max = KEPT;
    strcpy(dir, "/tmp/cox-race-profile-XXXXXX");
    CHECK(mkdtemp(dir));
    pid_t children[PROCESSES];
    for (process = 0; process < PROCESSES; process++) {
        children[process] = fork();
        CHECK(children[process] >= 0);
        if (children[process] == 0) {
            run_threads();
            _exit(0);
        }
    }
    int wrong = 0;
    /* The first one dies in the middle of whatever it does; the others come to an end. */
    usleep(20000);
    kill(children[0], SIGKILL);
    for (int c = 0; c < PROCESSES; c++) {
        int status;
        waitpid(children[c], &status, 0);
        wrong |= c > 0 && status != 0;
    }
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t key = 0; key < KEYS; key++) {
            save(key, 99);
            CHECK(load_whole(key));
        }
    uint32_t found = 0;
    for (uint32_t key = 0; key < KEYS; key++)
        found += load_whole(key);
    CHECK(found == KEPT);
    scratch_remove(dir);
    return wrong;
}
