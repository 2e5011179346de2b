/* The reserved core: which core is chosen, whose masks change, and what is reported.
 * There are two kinds of tests. Those on the real machine read masks back from /proc/self/task/ * /status. Those on
 * a simulated machine have many cores, refused calls or no /proc on any machine.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host/cores.h"
#include "host/topology.h"
#include "support/scratch.h"
#include "unit/host/simulated_machine.h"

#include <pthread.h>

/* ---- log, workers, /proc ---- */

static char logged[4096];
static enum cox_log_level loudest;

static void keep_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", line);
    if (loudest == 0 || level < loudest)
        loudest = level;
}

static const struct cox__log log_all = {keep_line, NULL, COX_LOG_DEBUG};

/* The test's own topology, destroyed at its end. */
static struct cox__topology *topology;

static struct cox__topology *create(enum cox_reserve reserve, uint32_t cpu)
{
    struct cox__topology *made = NULL;
    cr_assert_eq(cox__topology_create(&made, reserve, cpu, &log_all), COX_OK, "%s", logged);
    cr_assert_not_null(made);
    return made;
}

/* Create it on a machine of one package. */
static void create_on(uint32_t cores, uint32_t pus, uint64_t mask, enum cox_reserve reserve)
{
    simulate((struct machine){.packages = 1, .cores = cores, .pus = pus}, mask);
    topology = create(reserve, 0);
}

static struct cox_host_info host(const struct cox__topology *of)
{
    struct cox_host_info info;
    memset(&info, 0xff, sizeof info);
    cox__topology_host_info(of, &info);
    cr_assert_not_null(memchr(info.reserve_reason, '\0', sizeof info.reserve_reason));
    return info;
}

/* The thread's mask after it has entered. */
static void enter(uint64_t mask)
{
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), mask);
}

static void leave(uint64_t mask)
{
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), mask);
}

static void bind_scheduler(uint64_t mask)
{
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), mask);
}

static void *in_other_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    void *result = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, &result);
    return result;
}

/* Threads that wait until the end of the test, like idle worker threads of a driver. */
enum { WORKERS_MAX = 8 };
static struct worker {
    pthread_t thread;
    _Atomic pid_t id;
} workers[WORKERS_MAX];
static size_t worker_count;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moves = PTHREAD_COND_INITIALIZER;
static bool gate_open;

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    pthread_mutex_lock(&gate);
    worker->id = self_id();
    pthread_cond_broadcast(&gate_moves);
    while (!gate_open)
        pthread_cond_wait(&gate_moves, &gate);
    pthread_mutex_unlock(&gate);
    return NULL;
}

static void start_workers(size_t count)
{
    pthread_mutex_lock(&gate);
    for (; count--; worker_count++) {
        struct worker *worker = &workers[worker_count];
        worker->id = 0;
        cr_assert_eq(pthread_create(&worker->thread, NULL, worker_main, worker), 0);
        while (worker->id == 0)
            pthread_cond_wait(&gate_moves, &gate);
        if (simulated.on)
            simulated_add(worker->id, own_mask());
    }
    pthread_mutex_unlock(&gate);
}

static uint64_t *worker_mask(size_t worker)
{
    return simulated_mask(workers[worker].id);
}

static void expect_worker_masks(uint64_t mask)
{
    for (size_t i = 0; i < worker_count; i++)
        cr_assert_eq(*worker_mask(i), mask, "worker %zu has mask %#lx", i, (unsigned long)*worker_mask(i));
}

static void begin(void)
{
    strcpy(folder, "/tmp/coxswain-topology-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void end(void)
{
    cox__topology_destroy(&topology);
    cr_assert_null(topology);
    pthread_mutex_lock(&gate);
    gate_open = true;
    pthread_cond_broadcast(&gate_moves);
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < worker_count; i++)
        pthread_join(workers[i].thread, NULL);
    scratch_remove(folder);
}

/* Start the next case of a table in the initial state. */
static void begin_again(void)
{
    end();
    memset(&simulated, 0, sizeof simulated);
    pthread_setname_np(pthread_self(),
                       "test"); /* the thread may have been bound as a scheduler thread, and workers inherit its name */
    worker_count = 0;
    gate_open = false;
    logged[0] = '\0';
    loudest = 0;
    begin();
}

TestSuite(machine, .init = begin, .fini = end, .timeout = 300);
TestSuite(reserve, .init = begin, .fini = end, .timeout = 300);
TestSuite(bracket, .init = begin, .fini = end, .timeout = 300);
TestSuite(decide, .init = begin, .fini = end, .timeout = 300);
TestSuite(real, .init = begin, .fini = end, .timeout = 300);

/* The kernel's list of a thread's allowed CPUs, for example "0-1,4". */
static void allowed_list(pid_t thread, char *out, size_t bytes)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", (long)thread);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    out[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0)
            snprintf(out, bytes, "%.*s", (int)bytes - 1, line + 18 + strspn(line + 18, "\t "));
    }
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
    cr_assert_neq(out[0], '\0');
}

static bool list_has(const char *list, uint32_t cpu)
{
    for (const char *at = list; *at;) {
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

static void create_on_two_cores_at_least(void)
{
    topology = create(COX_RESERVE_ON, 0);
    if (host(topology).cores >= 2)
        return;
    end();
    cr_skip("skipped, because this process has one core only");
}

/* ---- which core ---- */

Test(cores, the_last_one_near_most_gpus_of_the_least_kind)
{
    static const char last[] = "the last core", efficient[] = "an efficiency core";
    static const struct {
        const char *what;
        size_t count;
        int kinds[8];
        uint32_t near_gpus[8];
        size_t expect;
        const char *why;
    } cases[] = {
        {"one", 1, {0}, {0}, 0, last},
        {"equal ones", 8, {0}, {0}, 7, last},
        {"equal ones of unknown kind", 8, {-1, -1, -1, -1, -1, -1, -1, -1}, {0}, 7, last},
        {"an efficiency core wherever it stands", 6, {1, 0, 0, 1, 2, 2}, {0}, 2, efficient},
        {"kinds that are not all known", 3, {0, -1, 1}, {0}, 2, last},
        {"near most GPUs", 6, {0}, {1, 2, 2, 1, 0, 0}, 2, "the last core near the GPU"},
        {"equally near, which says nothing", 6, {0}, {3, 3, 3, 3, 3, 3}, 5, last},
        {"kind before nearness", 4, {1, 0, 0, 1}, {1, 1, 0, 1}, 1, "an efficiency core near the GPU"},
        {"a kind without nearness", 4, {1, 0, 0, 1}, {1, 0, 0, 1}, 2, efficient},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cox__core cores[8];
        char why[48];
        for (size_t c = 0; c < 8; c++)
            cores[c] = (struct cox__core){.kind = cases[i].kinds[c], .near_gpus = cases[i].near_gpus[c]};
        memset(why, '#', sizeof why);
        cr_assert_eq(cox__cores_choose(cores, cases[i].count, why, sizeof why), cases[i].expect, "%s: %s",
                     cases[i].what, why);
        cr_assert_str_eq(why, cases[i].why, "%s", cases[i].what);
    }
}

/* ---- reading machines ---- */

Test(machine, counts_cores_and_their_hardware_threads)
{
    simulate((struct machine){.packages = 2, .cores = 4, .pus = 2}, 0);
    topology = create(COX_RESERVE_ON, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.cores, 8);
    cr_assert_eq(info.cpus, 16);
    cr_assert_eq(info.kind_count, 0);
    cr_assert_eq(info.reserved_cpu, 14);
    cr_assert_eq(cox__topology_worker_cpus(topology), 16, "nothing is reserved before the decision");
    cox__topology_decide(topology, true, false);
    cr_assert_eq(cox__topology_worker_cpus(topology), 14, "both hardware threads of the core are reserved");
}

Test(machine, only_the_cpus_of_this_process_count)
{
    create_on(4, 2, 0x4e, COX_RESERVE_ON); /* CPUs 1, 2, 3 and 6 */
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.cores, 3);
    cr_assert_eq(info.cpus, 4);
    cr_assert_eq(info.reserved_cpu, 6);
    enter(0x0e);
    leave(0x4e);
    cox__topology_decide(topology, true, false);
    cr_assert_eq(cox__topology_worker_cpus(topology), 3);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0x40, "bound to a CPU that is not this process's");
}

Test(machine, an_efficiency_core_is_chosen_and_kinds_are_named)
{
    simulate((struct machine){.packages = 1, .cores = 6, .pus = 1, .efficient_from = 4}, 0);
    topology = create(COX_RESERVE_AUTO, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.kind_count, 2);
    cr_assert_eq(info.kind_cores[0], 2);
    cr_assert_str_eq(info.kind_name[0], "IntelAtom");
    cr_assert_eq(info.kind_cores[1], 4);
    cr_assert_str_eq(info.kind_name[1], "IntelCore");
    cr_assert_eq(info.reserved_cpu, 5);
}

Test(machine, a_mask_with_one_kind_left_has_no_kinds)
{
    simulate((struct machine){.packages = 1, .cores = 6, .pus = 1, .efficient_from = 4}, 0x0f);
    topology = create(COX_RESERVE_AUTO, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.kind_count, 0);
    cr_assert_eq(info.kind_cores[0], 0);
    cr_assert_str_empty(info.kind_name[0]);
    cr_assert_eq(info.reserved_cpu, 3);
}

/* The CPU that is chosen on two packages of three cores, with the CPUs 0-2 and 3-5. */
Test(machine, the_core_is_near_the_gpu)
{
    static const struct {
        const char *what, *class, *vendor, *local_cpulist;
        uint32_t cpu;
    } cases[] = {{"a GPU", "0x030200", "0x10de", "0-2", 2},
                 {"a list of CPUs is read in full", "0x030000", "0x8086", "0,2-3,9000", 3},
                 {"an accelerator counts as a GPU", "0x120000", "0x1002", "0-2", 2},
                 {"another PCI device", "0x020000", "0x8086", "0-2", 5},
                 {"a server's VGA", "0x030000", "0x1a03", "0-2", 5},
                 {"a GPU as far from all cores", "0x030000", "0x1002", "0-5", 5},
                 {"a damaged list of CPUs", "0x030000", "0x1002", "what?", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_again();
        plug_in(cases[i].class, cases[i].vendor, cases[i].local_cpulist);
        simulate((struct machine){.packages = 2, .cores = 3, .pus = 1}, 0);
        topology = create(COX_RESERVE_ON, 0);
        cr_assert_eq(host(topology).reserved_cpu, cases[i].cpu, "%s", cases[i].what);
    }
}

Test(machine, the_users_core_is_taken_with_all_its_hardware_threads)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 2}, 0);
    topology = create(COX_RESERVE_CORE, 3);
    cr_assert_eq(host(topology).reserved_cpu, 2, "the first hardware thread of its core");
    enter(0xf3);
    cox__topology_leave(topology);
}

Test(machine, a_cpu_outside_the_mask_or_an_unknown_way_to_reserve_is_refused)
{
    const uint32_t cpus[] = {3, 4, 1000, 8191, 8192, UINT32_MAX};
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0x7);
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        topology = (struct cox__topology *)&topology;
        logged[0] = '\0';
        cr_assert_eq(cox__topology_create(&topology, COX_RESERVE_CORE, cpus[i], &log_all), COX_E_INVALID);
        cr_assert_null(topology);
        cr_assert_not_null(strstr(logged, "does not exist, or this process may not use it"));
    }
    cr_assert_eq(cox__topology_create(&topology, (enum cox_reserve)4, 0, &log_all), COX_E_INVALID);
    cr_assert_eq(cox__topology_create(&topology, (enum cox_reserve) - 1, 0, NULL), COX_E_INVALID);
    cr_assert_null(topology);
}

/* ---- whether a core is reserved ---- */

/* No core is reserved, no mask changes, and no error is returned. */
Test(reserve, nothing_where_it_cannot_be_or_is_not_worth_it)
{
    static const struct {
        const char *what;
        uint32_t cores, pus;
        uint64_t mask;
        enum cox_reserve reserve;
        bool other_machine, mask_unknown;
        const char *reason;
        enum cox_log_level level; /* the most severe that is logged; 0: any */
    } cases[] = {
        /* An application that forces the reservation must learn that it is impossible. */
        {"one core", 1, 2, 0, COX_RESERVE_ON, false, false, "only one core", COX_LOG_WARN},
        {"a mask of one CPU", 8, 1, 0x10, COX_RESERVE_ON, false, false, "only one core", 0},
        {"the only CPU can be named", 8, 1, 0x01, COX_RESERVE_CORE, false, false, "only one core", 0},
        {"two cores", 2, 2, 0, COX_RESERVE_AUTO, false, false, "2 cores, and a core is reserved only if there are 3",
         COX_LOG_INFO},
        {"switched off", 8, 1, 0, COX_RESERVE_OFF, false, false, "switched off", 0},
        {"hwloc describes another machine", 8, 1, 0, COX_RESERVE_ON, true, false, "another machine", COX_LOG_WARN},
        {"the mask cannot be read", 8, 1, 0, COX_RESERVE_CORE, false, true, "does not list", 0},
        {"hwloc finds none of the CPUs", 4, 1, 0xf00, COX_RESERVE_ON, false, false, "none of the CPUs", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *what = cases[i].what;
        begin_again();
        another_machine = cases[i].other_machine;
        simulated.get_fails = cases[i].mask_unknown;
        create_on(cases[i].cores, cases[i].pus, cases[i].mask, cases[i].reserve);
        const uint64_t before = own_mask();
        enter(before);
        cox__topology_leave(topology);
        cox__topology_decide(topology, true, true);
        bind_scheduler(before);
        struct cox_host_info info = host(topology);
        cr_assert_not(info.reserved, "%s", what);
        cr_assert_not(info.workers_kept_off, "%s", what);
        cr_assert_not(cox__topology_reserved(topology), "%s", what);
        cr_assert_eq(cox__topology_worker_cpus(topology), info.cpus, "%s", what);
        cr_assert_geq(info.cpus, 1, "%s", what);
        cr_assert_not_null(strstr(info.reserve_reason, cases[i].reason), "%s: %s", what, info.reserve_reason);
        cr_assert(!cases[i].level || loudest == cases[i].level, "%s", what);
        cr_assert(cases[i].reserve != COX_RESERVE_OFF || !logged[0], "%s: %s", what, logged);
    }
}

/* ---- brackets on a simulated machine ---- */

Test(bracket, brackets_of_one_thread_nest)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    cox__topology_enter(topology);
    enter(0x7);
    leave(0x7);
    leave(0xf);
    cox__topology_leave(topology); /* one call too many does nothing */
    cr_assert_eq(own_mask(), 0xf);
}

static void *bracket_elsewhere(void *arg)
{
    simulated_add(0, 0xc);
    cox__topology_enter(arg);
    uint64_t inside = own_mask();
    cox__topology_leave(arg);
    return inside == 0x4 && own_mask() == 0xc ? arg : NULL;
}

Test(bracket, each_thread_gets_its_own_mask_back)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    cox__topology_enter(topology);
    cr_assert_eq(in_other_thread(bracket_elsewhere, topology), topology);
    cr_assert_eq(own_mask(), 0x7);
    leave(0xf);
}

Test(bracket, a_caller_with_a_wider_mask_leaves_the_whole_core)
{
    create_on(4, 2, 0x7f, COX_RESERVE_ON);
    cr_assert_eq(host(topology).reserved_cpu, 6);
    *simulated_mask(0) = 0xff; /* CPU 7, of the same core, was not in the process's mask before */
    enter(0x3f);
    leave(0xff);
}

Test(bracket, a_caller_bound_to_the_core_stays_where_it_is)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    *simulated_mask(0) = 0x8;
    enter(0x8);
    leave(0x8);
    cr_assert_eq(loudest, COX_LOG_WARN);
}

Test(bracket, a_refusing_system_is_a_log_line)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    simulated.set_fails = true;
    cox__topology_enter(topology);
    cr_assert_not_null(strstr(logged, "refuses to move"));
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, false);
    cox__topology_bind_scheduler(topology);
    cr_assert_not_null(strstr(logged, "refuses to bind"));
    cr_assert_eq(own_mask(), 0xf);
}

/* ---- the decision ---- */

/* Start workers in the first bracket, then decide. */
static void decide_with_workers(size_t count, bool async, bool cpu_device)
{
    cox__topology_enter(topology);
    start_workers(count);
    cox__topology_leave(topology);
    cox__topology_decide(topology, async, cpu_device);
}

Test(decide, a_core_is_kept_from_workers_for_an_asynchronous_device_beside_a_cpu_device)
{
    static const struct {
        const char *what;
        uint32_t cores, pus;
        uint64_t mask;
        enum cox_reserve reserve;
        size_t before, inside; /* workers before the bracket, workers started in it */
        int odd;               /* one worker has this mask, unless it is 0 */
        uint64_t odd_mask;
        bool async, cpu_device, no_proc;
        bool reserved, kept_off; /* expected results, with the fields below */
        const char *logged;
        enum cox_log_level level; /* the most severe; 0: any */
        uint32_t worker_cpus;
        uint64_t worker_masks, scheduler_mask; /* 0: any */
    } cases[] = {
        {"both devices", 4, 1, 0, COX_RESERVE_AUTO, 0, 4, 0, 0, true, true, false, true, true, "CPU 3 (the last core)",
         0, 3, 0x7, 0x8},
        {"a worker for each CPU that is left", 4, 1, 0, COX_RESERVE_ON, 0, 3, 0, 0, true, true, false, true, true, "",
         0, 3, 0x7, 0x8},
        {"no asynchronous device", 4, 2, 0x7f, COX_RESERVE_AUTO, 0, 4, 0, 0, false, true, false, false, false, "", 0, 7,
         0x7f, 0},
        {"no CPU device", 4, 2, 0x7f, COX_RESERVE_AUTO, 0, 4, 0, 0, true, false, false, false, false, "", 0, 7, 0x7f,
         0},
        {"forced it needs neither", 2, 1, 0, COX_RESERVE_ON, 0, 4, 0, 0, false, false, false, true, true, "", 0, 1, 0,
         0},
        /* The scheduler thread is not bound to a core that workers keep busy. */
        {"workers that were there before", 4, 1, 0, COX_RESERVE_ON, 4, 0, 0, 0, true, true, false, true, false,
         "another library started workers before", COX_LOG_WARN, 3, 0xf, 0xf},
        {"a few threads of a driver beside them", 4, 1, 0, COX_RESERVE_ON, 4, 2, 0, 0, true, true, false, true, false,
         "", 0, 3, 0, 0},
        /* Mesa's disk cache resets its own mask to all CPUs. Meanwhile a thread of the application may start
         * elsewhere. */
        {"a thread with all CPUs is no worker", 4, 1, 0, COX_RESERVE_ON, 0, 5, 2, 0xf, true, true, false, true, true,
         "", 0, 3, 0, 0},
        {"a worker that binds itself to the core", 4, 1, 0, COX_RESERVE_ON, 0, 4, 3, 0x8, true, true, false, true,
         false, "", COX_LOG_WARN, 3, 0, 0xf},
        {"without /proc nothing is claimed", 4, 1, 0, COX_RESERVE_ON, 0, 4, 0, 0, true, true, true, true, false,
         "/proc", 0, 3, 0x7, 0x8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *what = cases[i].what;
        begin_again();
        simulate((struct machine){.packages = 1, .cores = cases[i].cores, .pus = cases[i].pus}, cases[i].mask);
        start_workers(cases[i].before);
        topology = create(cases[i].reserve, 0);
        simulated.no_proc = cases[i].no_proc;
        cox__topology_enter(topology);
        start_workers(cases[i].inside);
        if (cases[i].odd_mask)
            *worker_mask((size_t)cases[i].odd) = cases[i].odd_mask;
        cox__topology_leave(topology);
        cox__topology_decide(topology, cases[i].async, cases[i].cpu_device);
        struct cox_host_info info = host(topology);
        cr_assert_eq(info.reserved, cases[i].reserved, "%s", what);
        cr_assert_eq(cox__topology_reserved(topology), cases[i].reserved, "%s", what);
        cr_assert_eq(info.workers_kept_off, cases[i].kept_off, "%s: %s", what, info.reserve_reason);
        cr_assert(strstr(info.reserve_reason, cases[i].logged) || strstr(logged, cases[i].logged), "%s: %s, %s", what,
                  info.reserve_reason, logged);
        cr_assert(!cases[i].level || loudest == cases[i].level, "%s", what);
        cr_assert_eq(cox__topology_worker_cpus(topology), cases[i].worker_cpus, "%s", what);
        if (cases[i].worker_masks)
            expect_worker_masks(cases[i].worker_masks);
        if (!info.reserved) { /* brackets still work after the reservation was given up */
            enter(0x7f);
            leave(0x7f);
        }
        if (cases[i].scheduler_mask)
            bind_scheduler(cases[i].scheduler_mask);
        cox__topology_destroy(&topology);
        if (cases[i].worker_masks)
            expect_worker_masks(cases[i].worker_masks); /* another runtime may rely on it */
    }
}

Test(decide, destroyed_undecided_workers_get_the_core_back)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    cox__topology_enter(topology);
    start_workers(2);
    *worker_mask(1) = 0x2; /* has bound itself to another CPU meanwhile */
    cox__topology_leave(topology);
    cox__topology_destroy(&topology);
    cr_assert_eq(*worker_mask(0), 0xf);
    cr_assert_eq(own_mask(), 0xf);
}

Test(decide, a_second_runtime_finds_the_workers_of_the_first_off_the_core)
{
    create_on(4, 1, 0, COX_RESERVE_ON);
    decide_with_workers(4, true, true);
    struct cox__topology *second = create(COX_RESERVE_ON, 0);
    logged[0] = '\0';
    cox__topology_enter(second);
    cox__topology_leave(second);
    cox__topology_decide(second, true, true);
    struct cox_host_info info = host(second);
    cr_assert(info.reserved);
    cr_assert_not(info.workers_kept_off, "another runtime keeps them off");
    cr_assert_eq(info.reserved_cpu, host(topology).reserved_cpu);
    cr_assert_not_null(strstr(logged, "workers had started already"), "%s", logged);
    cr_assert_eq(loudest, COX_LOG_INFO);
    cox__topology_bind_scheduler(second);
    cr_assert_eq(own_mask(), 0x8);
    cox__topology_destroy(&second);
}

/* On two cores a scheduler thread's mask looks like that of workers that are kept off the other core. Its name
 * tells them apart. */
Test(decide, the_scheduler_of_another_runtime_is_not_taken_for_a_worker)
{
    char name[32];
    simulate((struct machine){.packages = 1, .cores = 2, .pus = 1}, 0);
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_setname_np(pthread_self(), COX__SCHEDULER_NAME); /* inherited */
    start_workers(1);
    pthread_setname_np(pthread_self(), name);
    *worker_mask(0) = 0x1;
    topology = create(COX_RESERVE_ON, 0);
    decide_with_workers(0, true, true);
    cr_assert_not_null(strstr(host(topology).reserve_reason, "another library started workers before"));
}

Test(decide, only_the_first_decision_counts)
{
    create_on(4, 1, 0, COX_RESERVE_AUTO);
    decide_with_workers(0, true, true);
    cox__topology_decide(topology, false, false);
    cr_assert(cox__topology_reserved(topology));
}

/* ---- the real machine ---- */

Test(real, threads_born_in_a_bracket_stay_off_the_core_and_the_caller_gets_its_mask_back)
{
    char before[256], inside[256], after[256], born[256], later[256];
    create_on_two_cores_at_least();
    const uint32_t cpu = host(topology).reserved_cpu;
    allowed_list(self_id(), before, sizeof before);
    cox__topology_enter(topology);
    allowed_list(self_id(), inside, sizeof inside);
    start_workers(1); /* started inside the bracket */
    cox__topology_leave(topology);
    allowed_list(self_id(), after, sizeof after);
    start_workers(1); /* started after it */
    allowed_list(workers[0].id, born, sizeof born);
    allowed_list(workers[1].id, later, sizeof later);
    cr_assert(list_has(before, cpu));
    cr_assert_not(list_has(inside, cpu));
    cr_assert_not(list_has(born, cpu));
    cr_assert_str_eq(after, before);
    cr_assert_str_eq(later, before);
    cox__topology_destroy(&topology);
    allowed_list(workers[0].id, born, sizeof born);
    cr_assert_str_eq(born, before, "undecided, so the core is given back");
}

static void *scheduler_main(void *arg)
{
    char list[256], name[32] = "";
    cox__topology_bind_scheduler(arg);
    allowed_list(self_id(), list, sizeof list);
    pthread_getname_np(pthread_self(), name, sizeof name);
    struct cox_host_info info = host(arg);
    uint32_t allowed = 0;
    for (uint32_t cpu = 0; cpu < 8192; cpu++)
        allowed += list_has(list, cpu);
    return strcmp(name, COX__SCHEDULER_NAME) == 0 && list_has(list, info.reserved_cpu) &&
                   allowed == info.cpus - cox__topology_worker_cpus(arg)
               ? arg
               : NULL;
}

Test(real, the_scheduler_thread_may_run_on_the_reserved_core_only)
{
    create_on_two_cores_at_least();
    cox__topology_decide(topology, false, false);
    cr_assert_lt(cox__topology_worker_cpus(topology), host(topology).cpus);
    cr_assert_eq(in_other_thread(scheduler_main, topology), topology);
}

Test(real, null_is_accepted_everywhere)
{
    struct cox__topology *none = NULL;
    struct cox_host_info info;
    cox__topology_destroy(&none);
    cox__topology_destroy(NULL);
    cox__topology_enter(NULL);
    cox__topology_leave(NULL);
    cox__topology_decide(NULL, true, true);
    cox__topology_bind_scheduler(NULL);
    cox__topology_host_info(NULL, &info);
    cr_assert_eq(info.cores, 0);
    cr_assert_not(cox__topology_reserved(NULL));
    cr_assert_geq(cox__topology_worker_cpus(NULL), 1);
}
