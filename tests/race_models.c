/* Several processes of several threads each read and write one database of device models at once, from before it exists. A
 * plain program, to be run under ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "models.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 5, THREADS = 3, ROUNDS = 30, KEYS = 6 };

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

static char dir[64];
static uint32_t process;

/* Lines of information are allowed: that the database was busy. */
static void on_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    if (level <= COX_LOG_WARN) {
        fprintf(stderr, "%s\n", line);
        _exit(1);
    }
}

static const struct cox__log logger = {.fn = on_line, .level = COX_LOG_INFO};

/* Both devices' figures of an entry come from one writer, whose number is in them. */
static void models_of(uint32_t writer, struct cox_device_model *models)
{
    for (uint32_t d = 0; d < 2; d++)
        models[d] = (struct cox_device_model){
            .frames = 100, .fixed_ns = writer, .ns_per_row = 1 + writer, .solo_ns = 1e6, .share = 0.5};
}

static struct cox__models_entry entry_of(uint32_t number)
{
    struct cox__models_entry entry = {
        .policy = "p", .kernels = "k", .rows = 1, .device_count = 2, .devices = {{"one", "1", 1}, {"two", "1", 1}}};
    memcpy(entry.key, &number, sizeof number);
    return entry;
}

static bool load_whole(uint32_t key)
{
    struct cox_device_model models[2];
    struct cox__models_entry entry = entry_of(key);
    enum cox__models_found found = cox__models_load(dir, &entry, models, &logger);
    CHECK(found != COX__MODELS_UNUSABLE);
    if (found != COX__MODELS_FOUND)
        return false;
    for (uint32_t d = 0; d < 2; d++) {
        CHECK(models[d].fixed_ns == models[0].fixed_ns);
        CHECK(models[d].ns_per_row == 1 + models[0].fixed_ns);
    }
    return true;
}

static void *read_and_write(void *number)
{
    uint32_t writer = process * THREADS + *(uint32_t *)number;
    struct cox_device_model models[2];
    models_of(writer, models);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct cox__models_entry entry = entry_of((writer + round) % KEYS);
        load_whole((writer + 2 * round) % KEYS);
        cox__models_store(dir, &entry, 1000, models, &logger);
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
    strcpy(dir, "/tmp/cox-race-models-XXXXXX");
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
    struct cox_device_model models[2];
    models_of(99, models);
    uint32_t found = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        struct cox__models_entry entry = entry_of(key);
        cox__models_store(dir, &entry, 1000, models, &logger);
        found += load_whole(key);
    }
#ifdef COX_HAVE_SQLITE
    CHECK(found == KEYS);
#else
    CHECK(found == 0);
#endif
    char path[128];
    snprintf(path, sizeof path, "%s/" COX__MODELS_FILE, dir);
    unlink(path);
    CHECK(rmdir(dir) == 0); /* no journal, no other file */
    return wrong;
}
