/* The reserved core with a real CPU platform, observed in /proc/self/task. Plain program. It starts itself once for
 * each scenario, so that each scenario is the first user of OpenCL in its process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, ROWS = 256, COLUMNS = 256, TURNS = 2000, THREADS_MAX = 1024, TRIES = 6000 /* of 10 ms */ };

static int failures;

#define CHECK(condition, ...)                                \
    do {                                                     \
        if (!(condition)) {                                  \
            printf("  line %d: %s: ", __LINE__, #condition); \
            printf(__VA_ARGS__);                             \
            printf("\n");                                    \
            failures++;                                      \
        }                                                    \
    } while (0)

/* ---- /proc ---- */

struct thread {
    long id;
    bool scheduler;
    bool watchdog; /* the watchdog thread, which is almost idle */
    bool task;     /* a worker thread: it starts with its creator's mask, leaves the core, and soon ends */
    bool caller;
    char allowed[256]; /* such as "0-1,4" */
    long cpu;          /* the core on which it ran last */
};

static bool list_has(const char *list, uint32_t cpu)
{
    for (const char *at = list; isdigit((unsigned char)*at);) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (cpu >= first && cpu <= last)
            return true;
        at = *end == ',' ? end + 1 : end;
    }
    return false;
}

static uint32_t list_count(const char *list)
{
    uint32_t count = 0;
    for (uint32_t cpu = 0; cpu < 8192; cpu++)
        count += list_has(list, cpu);
    return count;
}

static bool read_thread(const char *id, struct thread *thread)
{
    char path[300], line[1024];
    memset(thread, 0, sizeof *thread);
    thread->id = atol(id);
    thread->caller = thread->id == (long)getpid();

    snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        if (strcmp(line, "Name:\tcox-scheduler\n") == 0)
            thread->scheduler = true;
        if (strcmp(line, "Name:\tcox-watchdog\n") == 0)
            thread->watchdog = true;
        else if (strcmp(line, "Name:\tcox-worker\n") == 0)
            thread->task = true;
        if (strncmp(line, "Cpus_allowed_list:\t", 19) == 0)
            snprintf(thread->allowed, sizeof thread->allowed, "%.*s", (int)strcspn(line + 19, "\n"), line + 19);
    }
    fclose(file);

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    file = fopen(path, "r");
    if (!file)
        return false;
    const char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    if (!rest)
        return false;
    int field = 2; /* skip the name, which ends at the parenthesis */
    for (const char *at = rest + 1; (at = strchr(at, ' ')) != NULL; at++) {
        field++;
        if (field == 39)
            thread->cpu = atol(at + 1);
    }
    return thread->allowed[0] != '\0';
}

static struct thread threads[THREADS_MAX];

static size_t read_threads(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && count < THREADS_MAX;) {
        if (isdigit((unsigned char)entry->d_name[0]) && read_thread(entry->d_name, &threads[count]))
            count++;
    }
    closedir(dir);
    return count;
}

/* ---- work ---- */

static const char source[] = "kernel void spin(global uint *out, int columns, int rows, int turns) {\n"
                             "    int x = get_global_id(0), y = get_global_id(1);\n"
                             "    uint v = x;\n"
                             "    for (int i = 0; i < turns; i++) v = v * 1664525u + 1013904223u;\n"
                             "    if (x < columns && y < rows) out[y * columns + x] = v;\n"
                             "}\n";

static cox_status make_session(cox_runtime *runtime, cox_session **session)
{
    const struct cox__binding binding = {
        .name = "out", .access = COX__WRITE, .pitch_bytes = COLUMNS * sizeof(uint32_t)};
    const struct cox__variant variant = {.source = source, .local_columns = 16};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_COLUMNS, COX__ARG_ROWS, COX__ARG_PARAMS(int)};
    const struct cox__stage stage = {
        .kernel = "spin", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 4, .args = args};
    return cox__session_create(runtime,
                               &(const struct cox__session_spec){.rows = ROWS,
                                                                 .binding_count = 1,
                                                                 .bindings = &binding,
                                                                 .stage_count = 1,
                                                                 .stages = &stage,
                                                                 .params_bytes = sizeof(int)},
                               session);
}

static void frame_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    atomic_store((_Atomic int *)user, status == COX_OK ? 1 : 2);
}

/* Run frames that keep the workers busy, and sample on which cores threads run. Returns the number of samples. */
static size_t work_and_watch(cox_runtime *runtime, uint32_t cpu, bool kept_off)
{
    cox_session *session = NULL;
    cox_buffer *buffer = NULL;
    const int turns = TURNS;
    size_t samples = 0;
    cox_status status = make_session(runtime, &session);
    CHECK(status == COX_OK, "%s", cox_status_text(status));
    if (status == COX_OK)
        status = cox_buffer_create(runtime, (size_t)ROWS * COLUMNS * sizeof(uint32_t), &buffer);
    CHECK(status == COX_OK, "%s", cox_status_text(status));

    for (int frame = 0; frame < 4 && status == COX_OK; frame++) {
        _Atomic int done = 0;
        status = cox__session_submit(session,
                                     &(const struct cox__frame_spec){
                                         .buffers = &buffer, .buffer_count = 1, .params = &turns},
                                     frame_done, &done);
        CHECK(status == COX_OK, "%s", cox_status_text(status));
        while (status == COX_OK && atomic_load(&done) == 0) {
            size_t count = read_threads();
            for (size_t i = 0; i < count && kept_off && failures < 10; i++) { /* the first ten failures suffice */
                if (threads[i].scheduler)
                    CHECK(threads[i].cpu == (long)cpu, "the scheduler ran on CPU %ld", threads[i].cpu);
                else if (!threads[i].caller && !threads[i].task)
                    CHECK(threads[i].cpu != (long)cpu, "worker %ld ran on the reserved core", threads[i].id);
            }
            samples++;
            usleep(2000);
        }
        if (status == COX_OK)
            CHECK(atomic_load(&done) == 1, "frame %d failed", frame);
    }

    const uint32_t *out = buffer ? cox_buffer_data(buffer) : NULL;
    size_t wrong = 0;
    for (uint32_t x = 0; out && x < COLUMNS; x++) {
        uint32_t value = x;
        for (int i = 0; i < turns; i++)
            value = value * 1664525u + 1013904223u;
        for (uint32_t y = 0; y < ROWS; y++)
            wrong += out[y * COLUMNS + x] != value;
    }
    CHECK(wrong == 0, "%zu values are wrong", wrong);
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffer);
    return samples;
}

/* ---- scenarios ---- */

static char caller_before[256];

/* Ends the scenario if the machine has no CPU platform. */
static cox_runtime *create(enum cox_reserve reserve, uint32_t cpu)
{
    cox_runtime *runtime = NULL;
    cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu",
                                                                              .reserve = reserve,
                                                                              .reserve_cpu = cpu,
                                                                              .log = on_log,
                                                                              .log_level = COX_LOG_INFO},
                                           &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND) {
        printf("  skipped, because there is no OpenCL CPU device\n");
        exit(SKIPPED);
    }
    CHECK(status == COX_OK, "%s\n%s", cox_status_text(status), logged);
    if (status != COX_OK)
        exit(1);
    return runtime;
}

static struct cox_host_info host_of(const cox_runtime *runtime)
{
    struct cox_host_info host;
    cox_runtime_host_info(runtime, &host);
    return host;
}

/* A scheduler thread binds itself first, possibly shortly after cox_runtime_create has returned. */
static size_t read_threads_with(size_t schedulers)
{
    size_t count = 0;
    for (int tries = 0; tries < TRIES; tries++) {
        size_t found = 0;
        count = read_threads();
        for (size_t i = 0; i < count; i++)
            found += threads[i].scheduler && strcmp(threads[i].allowed, caller_before) != 0;
        if (found == schedulers)
            break;
        usleep(10000);
    }
    return count;
}

/* Whether a thread other than the schedulers and the caller may run on the core. */
static bool may_run_on(uint32_t cpu, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= !threads[i].caller && !threads[i].scheduler && !threads[i].task && list_has(threads[i].allowed, cpu);
    return any;
}

/* The caller's mask is unchanged, the scheduler threads are bound to the core, and no other thread may run on it. */
static void check_kept_off(cox_runtime *runtime, uint32_t cpu, size_t expected_schedulers)
{
    const struct cox_host_info host = host_of(runtime);
    size_t count = read_threads_with(expected_schedulers), schedulers = 0, workers = 0;
    for (int tries = 0; tries < TRIES && may_run_on(cpu, count); tries++) { /* a worker thread has no name at first */
        usleep(10000);
        count = read_threads_with(expected_schedulers);
    }
    for (size_t i = 0; i < count; i++) {
        const struct thread *thread = &threads[i];
        if (thread->caller) {
            CHECK(strcmp(thread->allowed, caller_before) == 0, "the caller had %s and has %s", caller_before,
                  thread->allowed);
        } else if (thread->scheduler) {
            schedulers++;
            CHECK(list_has(thread->allowed, cpu), "the scheduler may run on %s", thread->allowed);
            CHECK(list_count(thread->allowed) <= host.cpus / host.cores + 1 &&
                      list_count(thread->allowed) < list_count(caller_before),
                  "the scheduler may run on %s", thread->allowed);
        } else if (!thread->task) {
            workers += !thread->watchdog;
            CHECK(!list_has(thread->allowed, cpu), "worker %ld may run on %s", thread->id, thread->allowed);
        }
    }
    CHECK(schedulers == expected_schedulers, "%zu schedulers", schedulers);
    CHECK(workers >= 1, "%zu workers", workers);
}

static void scenario_kept(enum cox_reserve reserve, uint32_t cpu)
{
    cox_runtime *runtime = create(reserve, cpu);
    const struct cox_host_info host = host_of(runtime);
    CHECK(host.reserved, "%s", host.reserve_reason);
    CHECK(host.workers_kept_off, "%s", host.reserve_reason);
    if (reserve == COX_RESERVE_CORE)
        CHECK(host.reserved_cpu == cpu, "CPU %u", host.reserved_cpu);
    struct cox_device_info device;
    CHECK(cox_runtime_device_info(runtime, 0, &device) == COX_OK, "no device");
    CHECK(device.compute_units < device.parent_units, "%u of %u compute units", device.compute_units,
          device.parent_units);
    check_kept_off(runtime, host.reserved_cpu, 1);
    size_t samples = work_and_watch(runtime, host.reserved_cpu, true);
    CHECK(samples >= 4, "%zu looks at the threads are too few to say where they ran", samples);
    check_kept_off(runtime, host.reserved_cpu, 1);

    /* A second runtime in the same process. */
    logged[0] = '\0';
    cox_runtime *second = create(reserve, cpu);
    CHECK(strstr(logged, "workers had started already"), "the log says:\n%s", logged);
    const struct cox_host_info host_of_second = host_of(second);
    CHECK(host_of_second.reserved_cpu == host.reserved_cpu, "CPU %u", host_of_second.reserved_cpu);
    CHECK(!host_of_second.workers_kept_off, "claimed what the first runtime did");
    check_kept_off(second, host.reserved_cpu, 2);
    work_and_watch(second, host.reserved_cpu, true);
    work_and_watch(runtime, host.reserved_cpu, true);
    cox_runtime_destroy(&runtime);
    work_and_watch(second, host.reserved_cpu, true);
    cox_runtime_destroy(&second);
}

/* Another library starts the workers first. The runtime still works, and the log reports it. */
static void scenario_foreign(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    int (*platforms)(unsigned, void *, unsigned *) = NULL;
    if (library)
        *(void **)&platforms = dlsym(library, "clGetPlatformIDs");
    unsigned count = 0;
    size_t before = read_threads();
    CHECK(platforms && platforms(0, NULL, &count) == 0, "no OpenCL loader");
    if (read_threads() == before) {
        printf("  skipped, because this CPU platform starts no worker in clGetPlatformIDs\n");
        exit(SKIPPED);
    }
    cox_runtime *runtime = create(COX_RESERVE_ON, 0);
    const struct cox_host_info host = host_of(runtime);
    CHECK(!host.workers_kept_off, "%s", host.reserve_reason);
    CHECK(strstr(logged, "another library started workers before"), "the log says:\n%s", logged);
    work_and_watch(runtime, host.reserved_cpu, false);
    size_t threads_seen = read_threads();
    for (size_t i = 0; i < threads_seen; i++)
        CHECK(threads[i].watchdog || threads[i].task || strcmp(threads[i].allowed, caller_before) == 0,
              "thread %ld may run on %s", threads[i].id, threads[i].allowed);
    cox_runtime_destroy(&runtime);
}

/* No core is reserved, and every thread has the caller's mask. AUTO does the same, since a CPU alone needs no
 * feeding. */
static void scenario_none(enum cox_reserve reserve)
{
    cox_runtime *runtime = create(reserve, 0);
    const struct cox_host_info host = host_of(runtime);
    CHECK(!host.reserved, "%s", host.reserve_reason);
    CHECK(!host.workers_kept_off, "%s", host.reserve_reason);
    work_and_watch(runtime, 0, false);
    size_t count = read_threads();
    CHECK(count >= 3, "%zu threads", count);
    for (size_t i = 0; i < count; i++)
        CHECK(strcmp(threads[i].allowed, caller_before) == 0, "thread %ld may run on %s", threads[i].id,
              threads[i].allowed);
    cox_runtime_destroy(&runtime);
}

static const struct scenario {
    const char *name;
    enum cox_reserve reserve;
    enum { KEPT, FOREIGN, NONE } what;
} scenarios[] = {
    {"kept_on_the_chosen_core", COX_RESERVE_ON, KEPT},     {"kept_on_the_users_core", COX_RESERVE_CORE, KEPT},
    {"workers_of_somebody_else", COX_RESERVE_ON, FOREIGN}, {"off", COX_RESERVE_OFF, NONE},
    {"auto_with_a_cpu_alone", COX_RESERVE_AUTO, NONE},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static int run_scenario(const struct scenario *scenario)
{
    if (read_threads() != 1) {
        printf("  skipped, because /proc/self/task does not show this process's one thread\n");
        return SKIPPED;
    }
    snprintf(caller_before, sizeof caller_before, "%s", threads[0].allowed);
    if (list_count(caller_before) < 2) {
        printf("  skipped, because this process has one CPU only\n");
        return SKIPPED;
    }
    if (scenario->what == KEPT)
        scenario_kept(scenario->reserve,
                      scenario->reserve == COX_RESERVE_CORE ? (uint32_t)strtoul(caller_before, NULL, 10) : 0);
    else if (scenario->what == FOREIGN)
        scenario_foreign();
    else
        scenario_none(scenario->reserve);
    return failures ? 1 : 0;
}

int main(int argc, char **argv)
{
    /* Only one CPU platform, whose threads accept a mask. Mesa's driver is not part of this test. */
    unsetenv("RUSTICL_ENABLE");
    unsetenv("POCL_AFFINITY");
    unsetenv("POCL_DEVICES");
    for (size_t i = 0; argc > 1 && i < SCENARIOS; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            return run_scenario(&scenarios[i]);
    if (argc > 1)
        return 2;

    int passed = 0, failed = 0, skipped = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        printf("%s\n", scenarios[i].name);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", argv[0], scenarios[i].name, (char *)NULL);
            _exit(127);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child)
            status = -1;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        passed += code == 0;
        skipped += code == SKIPPED;
        failed += code != 0 && code != SKIPPED;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed ? 0 : SKIPPED;
}
