/* Several processes, each with several threads, load and save device profiles in one directory at the same time.
 * The directory does not exist at first, and there are more keys than it keeps. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "race.h"
#include "support/scratch.h"
#include "store/cache.h"
#include <coxswain/sched.h>

enum { PROCESSES = 5, THREADS = 3, ROUNDS = 60, KEYS = 6, KEPT = 4 };

static char dir[64];
static uint32_t process;
static int rounds_of_first[2]; /* a pipe: the first process writes a byte per round until it is killed */
static struct cox__cache_kind kind;

static void on_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", line);
    exit(1);
}

static const struct cox__log logger = {.fn = on_line, .level = COX_LOG_DEBUG};

/* The figures of both devices are the writer's number, so a file that mixes two writers is seen. */
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

static void *read_and_write(void *data)
{
    const uint32_t writer = process * THREADS + *(uint32_t *)data;
    for (uint32_t round = 0; process == 0 || round < ROUNDS; round++) {
        load_whole((writer + 2 * round) % KEYS);
        save((writer + round) % KEYS, writer);
        load_whole((writer + 3 * round) % KEYS);
        if (process == 0)
            CHECK(write(rounds_of_first[1], "", 1) == 1);
    }
    return NULL;
}

int main(void)
{
    static uint32_t numbers[THREADS] = {0, 1, 2};
    char byte;
    check_limit("processes that share a directory of profiles");
    kind = cox__cache_profiles;
    kind.files_max = KEPT;
    strcpy(dir, "/tmp/cox-race-profile-XXXXXX");
    CHECK(mkdtemp(dir) && pipe(rounds_of_first) == 0);
    pid_t children[PROCESSES];
    for (process = 0; process < PROCESSES; process++) {
        children[process] = fork();
        CHECK(children[process] >= 0);
        if (children[process] == 0) {
            race_run(THREADS, read_and_write, numbers, sizeof *numbers);
            _exit(0);
        }
    }
    int wrong = 0;
    /* The first process is killed at an arbitrary moment. The others run to their end. */
    for (uint32_t round = 0; round < THREADS * KEYS; round++)
        CHECK(read(rounds_of_first[0], &byte, 1) == 1);
    kill(children[0], SIGKILL);
    for (int c = 0; c < PROCESSES; c++) {
        int status;
        waitpid(children[c], &status, 0);
        wrong |= c > 0 ? status != 0 : !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
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
