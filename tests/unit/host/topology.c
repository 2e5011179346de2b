/* The reserved core: which one is chosen, whose masks change, and what is reported.
 *
 * Two kinds of tests. On the real machine masks are read back from /proc/self/task/ * /status. On a simulated machine
 * hwloc reads a topology from a file and the affinity calls of this program (which replace the C library's) keep a
 * table, so that machines with many cores, refused calls and a missing /proc can be had on any machine.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "host/cores.h"
#include "host/topology.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the simulated machine ---- */

enum { SIMULATED_THREADS_MAX = 32, SIMULATED_CPUS_MAX = 64 };

static struct {
    bool on;
    bool get_fails, set_fails;
    bool no_proc;
    size_t count;
    pid_t thread[SIMULATED_THREADS_MAX];
    uint64_t mask[SIMULATED_THREADS_MAX];
} simulated;

static pid_t self_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static uint64_t *simulated_mask(pid_t thread)
{
    thread = thread ? thread : self_id();
    for (size_t i = 0; i < simulated.count; i++) {
        if (simulated.thread[i] == thread)
            return &simulated.mask[i];
    }
    return NULL;
}

static void simulated_add(pid_t thread, uint64_t mask)
{
    simulated.thread[simulated.count] = thread ? thread : self_id();
    simulated.mask[simulated.count++] = mask;
}

int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    if (!simulated.on) {
        long got = syscall(SYS_sched_getaffinity, thread, bytes, set);
        return got < 0 ? -1 : 0;
    }
    const uint64_t *mask = simulated_mask(thread);
    if (simulated.get_fails || !mask) {
        errno = simulated.get_fails ? EPERM : ESRCH;
        return -1;
    }
    for (size_t cpu = 0; cpu < SIMULATED_CPUS_MAX; cpu++) {
        if (*mask >> cpu & 1)
            CPU_SET_S(cpu, bytes, set);
    }
    return 0;
}

int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set)
{
    if (!simulated.on)
        return (int)syscall(SYS_sched_setaffinity, thread, bytes, set);
    uint64_t *mask = simulated_mask(thread);
    if (simulated.set_fails || !mask) {
        errno = simulated.set_fails ? EPERM : ESRCH;
        return -1;
    }
    *mask = 0;
    for (size_t cpu = 0; cpu < SIMULATED_CPUS_MAX; cpu++)
        *mask |= CPU_ISSET_S(cpu, bytes, set) ? UINT64_C(1) << cpu : 0;
    return 0;
}

/* Files of the simulated machine: /sys/bus/pci/devices is a folder of the test, /proc can be missing. */
static char pci_path[64];

static const char *simulated_path(const char *path, char *buffer, size_t bytes)
{
    static const char pci[] = "/sys/bus/pci/devices";
    if (simulated.no_proc && strncmp(path, "/proc/", 6) == 0)
        return NULL;
    if (!simulated.on || strncmp(path, pci, sizeof pci - 1) != 0)
        return path;
    snprintf(buffer, bytes, "%s%s", pci_path[0] ? pci_path : "/nonexistent", path + sizeof pci - 1);
    return buffer;
}

DIR *opendir(const char *path)
{
    static DIR *(*real)(const char *);
    char buffer[512];
    path = simulated_path(path, buffer, sizeof buffer);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    errno = ENOENT;
    return path ? real(path) : NULL;
}

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    char buffer[512];
    path = simulated_path(path, buffer, sizeof buffer);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    errno = ENOENT;
    return path ? real(path, mode) : NULL;
}

static char xml_path[64];

static void remove_files(void)
{
    static const char *const names[] = {"/0000:01:00.0/class", "/0000:01:00.0/vendor", "/0000:01:00.0/local_cpulist"};
    char path[128];
    unlink(xml_path);
    if (!pci_path[0])
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s%s", pci_path, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/0000:01:00.0", pci_path);
    rmdir(path);
    rmdir(pci_path);
}

/* A machine of `packages` with `cores` cores each and `pus` hardware threads per core. Cores from `efficient_from` on
 * are of a lesser kind (0 = all are alike). */
struct machine {
    uint32_t packages, cores, pus, efficient_from;
};

static void write_line(const char *folder, const char *name, const char *line)
{
    char path[128];
    snprintf(path, sizeof path, "%s/0000:01:00.0/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "%s\n", line);
    fclose(file);
}

/* A PCI device beside the machine, near these CPUs. */
static void plug_in(const char *class, const char *vendor, const char *local_cpulist)
{
    char path[128];
    snprintf(pci_path, sizeof pci_path, "/tmp/test_topology.%ld.pci", (long)getpid());
    mkdir(pci_path, 0700);
    snprintf(path, sizeof path, "%s/0000:01:00.0", pci_path);
    mkdir(path, 0700);
    write_line(pci_path, "class", class);
    write_line(pci_path, "vendor", vendor);
    write_line(pci_path, "local_cpulist", local_cpulist);
}

static void describe(struct machine machine)
{
    snprintf(xml_path, sizeof xml_path, "/tmp/test_topology.%ld.xml", (long)getpid());
    FILE *file = fopen(xml_path, "w");
    cr_assert_not_null(file);
    atexit(remove_files);
    uint32_t per_package = machine.cores * machine.pus, id = 1;
    uint64_t all = machine.packages * per_package == 64 ? UINT64_MAX
                                                        : (UINT64_C(1) << machine.packages * per_package) - 1;
#define SETS \
    "cpuset=\"0x%08x,0x%08x\" complete_cpuset=\"0x%08x,0x%08x\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"%u\""
#define SETS_OF(mask) (unsigned)((mask) >> 32), (unsigned)(mask), (unsigned)((mask) >> 32), (unsigned)(mask), id++
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
            "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" " SETS
            " allowed_cpuset=\"0x%08x,0x%08x\" allowed_nodeset=\"0x1\">\n",
            SETS_OF(all), (unsigned)(all >> 32), (unsigned)all);
    fprintf(file, "<object type=\"NUMANode\" os_index=\"0\" " SETS " local_memory=\"1073741824\"/>\n", SETS_OF(all));
    uint64_t efficient = 0;
    for (uint32_t p = 0; p < machine.packages; p++) {
        uint64_t package = ((UINT64_C(1) << per_package) - 1) << p * per_package;
        fprintf(file, "<object type=\"Package\" os_index=\"%u\" " SETS ">\n", p, SETS_OF(package));
        for (uint32_t c = 0; c < machine.cores; c++) {
            uint32_t number = p * machine.cores + c;
            uint64_t core = ((UINT64_C(1) << machine.pus) - 1) << number * machine.pus;
            if (machine.efficient_from && number >= machine.efficient_from)
                efficient |= core;
            fprintf(file, "<object type=\"Core\" os_index=\"%u\" " SETS ">\n", number, SETS_OF(core));
            for (uint32_t u = 0; u < machine.pus; u++) {
                uint64_t pu = UINT64_C(1) << (number * machine.pus + u);
                fprintf(file, "<object type=\"PU\" os_index=\"%u\" " SETS "/>\n", number * machine.pus + u,
                        SETS_OF(pu));
            }
            fprintf(file, "</object>\n");
        }
        fprintf(file, "</object>\n");
    }
    fprintf(file, "</object>\n");
    if (efficient) {
        uint64_t strong = all & ~efficient;
        fprintf(file,
                "<cpukind cpuset=\"0x%08x,0x%08x\" forced_efficiency=\"1\"><info name=\"CoreType\" "
                "value=\"IntelCore\"/></cpukind>\n",
                (unsigned)(strong >> 32), (unsigned)strong);
        fprintf(file,
                "<cpukind cpuset=\"0x%08x,0x%08x\" forced_efficiency=\"0\"><info name=\"CoreType\" "
                "value=\"IntelAtom\"/></cpukind>\n",
                (unsigned)(efficient >> 32), (unsigned)efficient);
    }
    fprintf(file, "</topology>\n");
    fclose(file);
    setenv("HWLOC_XMLFILE", xml_path, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
}

/* Run on a machine of that shape, with a mask of `mask` (0 = all CPUs). */
static void simulate(struct machine machine, uint64_t mask)
{
    uint32_t cpus = machine.packages * machine.cores * machine.pus;
    describe(machine);
    simulated_add(0, mask ? mask : cpus == 64 ? UINT64_MAX : (UINT64_C(1) << cpus) - 1);
    simulated.on = true;
}

static uint64_t own_mask(void)
{
    return *simulated_mask(0);
}

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

static struct cox__topology *create(enum cox_reserve reserve, uint32_t cpu)
{
    struct cox__topology *topology = NULL;
    cr_assert_eq(cox__topology_create(&topology, reserve, cpu, &log_all), COX_OK, "%s", logged);
    cr_assert_not_null(topology);
    return topology;
}

static struct cox_host_info host(const struct cox__topology *topology)
{
    struct cox_host_info info;
    memset(&info, 0xff, sizeof info);
    cox__topology_host_info(topology, &info);
    cr_assert_not_null(memchr(info.reserve_reason, '\0', sizeof info.reserve_reason));
    return info;
}

/* A thread that stands still until the end of the test, like a worker without work. */
struct worker {
    pthread_t thread;
    _Atomic pid_t id;
};
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

static void start_workers(struct worker *workers, size_t count)
{
    pthread_mutex_lock(&gate);
    for (size_t i = 0; i < count; i++) {
        workers[i].id = 0;
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
        while (workers[i].id == 0)
            pthread_cond_wait(&gate_moves, &gate);
        if (simulated.on)
            simulated_add(workers[i].id, own_mask());
    }
    pthread_mutex_unlock(&gate);
}

static void stop_workers(struct worker *workers, size_t count)
{
    pthread_mutex_lock(&gate);
    gate_open = true;
    pthread_cond_broadcast(&gate_moves);
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    gate_open = false;
}

/* The kernel's own word on a thread: "0-1,4". */
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

static void need_two_cores(void)
{
    struct cox__topology *topology = create(COX_RESERVE_OFF, 0);
    uint32_t cores = host(topology).cores;
    cox__topology_destroy(&topology);
    if (cores < 2)
        cr_skip("skipped, because this process has one core only");
}

/* ---- the choice ---- */

static void chosen(const struct cox__core *cores, size_t count, size_t expect, const char *expect_why)
{
    char why[48];
    memset(why, '#', sizeof why);
    size_t got = cox__cores_choose(cores, count, why, sizeof why);
    cr_assert_eq(got, expect, "core %zu instead of %zu (%s)", got, expect, why);
    cr_assert_str_eq(why, expect_why);
}

Test(cores, the_last_of_equal_cores)
{
    struct cox__core cores[8] = {{0}};
    chosen(cores, 1, 0, "the last core");
    chosen(cores, 8, 7, "the last core");
    for (int i = 0; i < 8; i++)
        cores[i].kind = -1;
    chosen(cores, 8, 7, "the last core");
}

Test(cores, an_efficiency_core_wherever_it_stands)
{
    struct cox__core cores[6] = {{.kind = 1}, {.kind = 0}, {.kind = 0}, {.kind = 1}, {.kind = 2}, {.kind = 2}};
    chosen(cores, 6, 2, "an efficiency core");
}

Test(cores, kinds_count_only_if_all_are_known)
{
    struct cox__core cores[3] = {{.kind = 0}, {.kind = -1}, {.kind = 1}};
    chosen(cores, 3, 2, "the last core");
}

Test(cores, the_last_core_near_most_gpus)
{
    struct cox__core cores[6] = {{.near_gpus = 1}, {.near_gpus = 2}, {.near_gpus = 2}, {.near_gpus = 1}, {0}, {0}};
    chosen(cores, 6, 2, "the last core near the GPU");
    for (int i = 0; i < 6; i++)
        cores[i].near_gpus = 3; /* equally near: says nothing */
    chosen(cores, 6, 5, "the last core");
}

Test(cores, kind_comes_before_nearness_and_nearness_decides_within_the_kind)
{
    struct cox__core cores[4] = {
        {.kind = 1, .near_gpus = 1}, {.kind = 0, .near_gpus = 1}, {.kind = 0}, {.kind = 1, .near_gpus = 1}};
    chosen(cores, 4, 1, "an efficiency core near the GPU");
    cores[1].near_gpus = 0;
    chosen(cores, 4, 2, "an efficiency core");
}

/* ---- reading machines ---- */

Test(machine, counts_cores_and_their_hardware_threads)
{
    simulate((struct machine){.packages = 2, .cores = 4, .pus = 2}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.cores, 8);
    cr_assert_eq(info.cpus, 16);
    cr_assert_eq(info.kind_count, 0);
    cr_assert_eq(info.reserved_cpu, 14);
    cr_assert_eq(cox__topology_worker_cpus(topology), 16, "nothing is reserved before the decision");
    cox__topology_decide(topology, true, false);
    cr_assert_eq(cox__topology_worker_cpus(topology), 14, "both hardware threads of the core are reserved");
    cox__topology_destroy(&topology);
    cr_assert_null(topology);
}

Test(machine, only_the_cpus_of_this_process_count)
{
    /* CPUs 1, 2, 3 and 6 of four cores with two hardware threads each */
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 2}, 0x4e);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.cores, 3);
    cr_assert_eq(info.cpus, 4);
    cr_assert_eq(info.reserved_cpu, 6);
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0x0e);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0x4e);
    cox__topology_decide(topology, true, false);
    cr_assert_eq(cox__topology_worker_cpus(topology), 3);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0x40, "bound to a CPU that is not this process's");
    cox__topology_destroy(&topology);
}

Test(machine, an_efficiency_core_is_chosen_and_kinds_are_named)
{
    simulate((struct machine){.packages = 1, .cores = 6, .pus = 1, .efficient_from = 4}, 0);
    struct cox__topology *topology = create(COX_RESERVE_AUTO, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.kind_count, 2);
    cr_assert_eq(info.kind_cores[0], 2);
    cr_assert_str_eq(info.kind_name[0], "IntelAtom");
    cr_assert_eq(info.kind_cores[1], 4);
    cr_assert_str_eq(info.kind_name[1], "IntelCore");
    cr_assert_eq(info.reserved_cpu, 5);
    cox__topology_destroy(&topology);
}

Test(machine, a_mask_with_one_kind_left_has_no_kinds)
{
    simulate((struct machine){.packages = 1, .cores = 6, .pus = 1, .efficient_from = 4}, 0x0f);
    struct cox__topology *topology = create(COX_RESERVE_AUTO, 0);
    struct cox_host_info info = host(topology);
    cr_assert_eq(info.kind_count, 0);
    cr_assert_eq(info.kind_cores[0], 0);
    cr_assert_str_empty(info.kind_name[0]);
    cr_assert_eq(info.reserved_cpu, 3);
    cox__topology_destroy(&topology);
}

/* The CPU chosen on two packages of three cores, CPUs 0-2 and 3-5. */
static uint32_t chosen_cpu_with(const char *class, const char *vendor, const char *local_cpulist)
{
    plug_in(class, vendor, local_cpulist);
    simulate((struct machine){.packages = 2, .cores = 3, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    uint32_t cpu = host(topology).reserved_cpu;
    cox__topology_destroy(&topology);
    return cpu;
}

Test(machine, the_core_is_near_the_gpu)
{
    cr_assert_eq(chosen_cpu_with("0x030200", "0x10de", "0-2"), 2);
}

Test(machine, lists_of_cpus_are_read_in_full)
{
    cr_assert_eq(chosen_cpu_with("0x030000", "0x8086", "0,2-3,9000"), 3);
}

Test(machine, an_accelerator_counts_as_a_gpu)
{
    cr_assert_eq(chosen_cpu_with("0x120000", "0x1002", "0-2"), 2);
}

Test(machine, other_pci_devices_draw_nothing)
{
    cr_assert_eq(chosen_cpu_with("0x020000", "0x8086", "0-2"), 5);
}

Test(machine, a_console_chip_draws_nothing)
{
    cr_assert_eq(chosen_cpu_with("0x030000", "0x1a03", "0-2"), 5, "a server's VGA");
}

Test(machine, a_gpu_as_far_from_all_cores_draws_nothing)
{
    cr_assert_eq(chosen_cpu_with("0x030000", "0x1002", "0-5"), 5);
}

Test(machine, a_damaged_list_of_cpus_draws_nothing)
{
    cr_assert_eq(chosen_cpu_with("0x030000", "0x1002", "what?"), 5);
}

Test(machine, the_users_core_is_taken_with_all_its_hardware_threads)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 2}, 0);
    struct cox__topology *topology = create(COX_RESERVE_CORE, 3);
    cr_assert_eq(host(topology).reserved_cpu, 2, "the first hardware thread of its core");
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0xf3);
    cox__topology_leave(topology);
    cox__topology_destroy(&topology);
}

Test(machine, a_cpu_outside_the_mask_is_refused)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0x7);
    const uint32_t cpus[] = {3, 4, 1000, 8191, 8192, UINT32_MAX};
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        struct cox__topology *topology = (struct cox__topology *)&topology;
        logged[0] = '\0';
        cr_assert_eq(cox__topology_create(&topology, COX_RESERVE_CORE, cpus[i], &log_all), COX_E_INVALID);
        cr_assert_null(topology);
        cr_assert_not_null(strstr(logged, "does not exist or is not among those of this process"));
    }
}

Test(machine, an_unknown_way_to_reserve_is_refused)
{
    struct cox__topology *topology;
    cr_assert_eq(cox__topology_create(&topology, (enum cox_reserve)4, 0, &log_all), COX_E_INVALID);
    cr_assert_eq(cox__topology_create(&topology, (enum cox_reserve) - 1, 0, NULL), COX_E_INVALID);
    cr_assert_null(topology);
}

/* ---- reservation given or not ---- */

/* With the file of the machine and the modes of the call: no core is reserved, nobody's mask changes, no error. */
static void nothing_reserved(enum cox_reserve reserve, const char *reason)
{
    uint64_t before = simulated.get_fails ? 0 : own_mask();
    struct cox__topology *topology = create(reserve, 0);
    cox__topology_enter(topology);
    if (!simulated.get_fails)
        cr_assert_eq(own_mask(), before);
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    cox__topology_bind_scheduler(topology);
    if (!simulated.get_fails)
        cr_assert_eq(own_mask(), before);
    struct cox_host_info info = host(topology);
    cr_assert_not(info.reserved);
    cr_assert_not(info.workers_kept_off);
    cr_assert_not(cox__topology_reserved(topology));
    cr_assert_eq(cox__topology_worker_cpus(topology), info.cpus);
    cr_assert_geq(info.cpus, 1);
    cr_assert_not_null(strstr(info.reserve_reason, reason), "the reason is: %s", info.reserve_reason);
    cox__topology_destroy(&topology);
}

Test(reserve, nothing_with_one_core)
{
    simulate((struct machine){.packages = 1, .cores = 1, .pus = 2}, 0);
    nothing_reserved(COX_RESERVE_ON, "only one core");
    cr_assert_eq(loudest, COX_LOG_WARN, "who forces it must learn that it cannot be");
}

Test(reserve, nothing_with_a_mask_of_one_cpu)
{
    simulate((struct machine){.packages = 1, .cores = 8, .pus = 1}, 0x10);
    nothing_reserved(COX_RESERVE_ON, "only one core");
}

Test(reserve, the_only_cpu_can_be_named_but_not_reserved)
{
    simulate((struct machine){.packages = 1, .cores = 8, .pus = 1}, 0x01);
    nothing_reserved(COX_RESERVE_CORE, "only one core");
}

Test(reserve, nothing_by_itself_with_two_cores)
{
    simulate((struct machine){.packages = 1, .cores = 2, .pus = 2}, 0);
    nothing_reserved(COX_RESERVE_AUTO, "2 cores, and it is worth one only with 3");
    cr_assert_eq(loudest, COX_LOG_INFO);
}

Test(reserve, nothing_when_switched_off)
{
    simulate((struct machine){.packages = 1, .cores = 8, .pus = 1}, 0);
    nothing_reserved(COX_RESERVE_OFF, "switched off");
    cr_assert_str_empty(logged);
}

Test(reserve, nothing_when_hwloc_describes_another_machine)
{
    simulate((struct machine){.packages = 1, .cores = 8, .pus = 1}, 0);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    nothing_reserved(COX_RESERVE_ON, "another machine");
    cr_assert_eq(loudest, COX_LOG_WARN);
}

Test(reserve, nothing_when_the_mask_cannot_be_read)
{
    simulate((struct machine){.packages = 1, .cores = 8, .pus = 1}, 0);
    simulated.get_fails = true;
    nothing_reserved(COX_RESERVE_CORE, "does not tell");
}

Test(reserve, nothing_when_hwloc_knows_none_of_the_cpus)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0xf00);
    nothing_reserved(COX_RESERVE_ON, "none of the CPUs");
}

/* ---- brackets on a simulated machine ---- */

Test(bracket, brackets_of_one_thread_nest)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0x7);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0x7);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0xf);
    cox__topology_leave(topology); /* one too many does nothing */
    cr_assert_eq(own_mask(), 0xf);
    cox__topology_destroy(&topology);
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
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    pthread_t thread;
    void *result = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, bracket_elsewhere, topology), 0);
    pthread_join(thread, &result);
    cr_assert_eq(result, topology);
    cr_assert_eq(own_mask(), 0x7);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0xf);
    cox__topology_destroy(&topology);
}

Test(bracket, a_caller_with_a_wider_mask_leaves_the_whole_core)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 2}, 0x7f);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cr_assert_eq(host(topology).reserved_cpu, 6);
    *simulated_mask(0) = 0xff; /* CPU 7, of the same core, was none of the process's before */
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0x3f);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0xff);
    cox__topology_destroy(&topology);
}

Test(bracket, a_caller_bound_to_the_core_stays_where_it_is)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    *simulated_mask(0) = 0x8;
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0x8);
    cox__topology_leave(topology);
    cr_assert_eq(own_mask(), 0x8);
    cr_assert_eq(loudest, COX_LOG_WARN);
    cox__topology_destroy(&topology);
}

Test(bracket, a_refusing_system_is_a_log_line)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    simulated.set_fails = true;
    cox__topology_enter(topology);
    cr_assert_not_null(strstr(logged, "refuses to move"));
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, false);
    cox__topology_bind_scheduler(topology);
    cr_assert_not_null(strstr(logged, "refuses to bind"));
    cr_assert_eq(own_mask(), 0xf);
    cox__topology_destroy(&topology);
}

/* ---- the decision ---- */

/* Workers born in the first bracket of a four-core machine, then the decision. */
static struct cox__topology *with_workers(enum cox_reserve reserve, struct worker *workers, size_t count, bool async,
                                          bool cpu_device)
{
    struct cox__topology *topology = create(reserve, 0);
    cox__topology_enter(topology);
    start_workers(workers, count);
    cox__topology_leave(topology);
    cox__topology_decide(topology, async, cpu_device);
    return topology;
}

Test(decide, a_core_is_kept_for_an_asynchronous_device_beside_a_cpu_device)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = with_workers(COX_RESERVE_AUTO, workers, 4, true, true);
    struct cox_host_info info = host(topology);
    cr_assert(info.reserved);
    cr_assert(info.workers_kept_off);
    cr_assert_eq(info.reserved_cpu, 3);
    cr_assert_not_null(strstr(info.reserve_reason, "CPU 3 (the last core)"), "%s", info.reserve_reason);
    cr_assert_eq(cox__topology_worker_cpus(topology), 3);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(*simulated_mask(workers[i].id), 0x7);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0x8);
    cox__topology_destroy(&topology);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(*simulated_mask(workers[i].id), 0x7, "another runtime may count on it");
    stop_workers(workers, 4);
}

static void given_back(bool async, bool cpu_device)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 2}, 0x7f);
    struct cox__topology *topology = with_workers(COX_RESERVE_AUTO, workers, 4, async, cpu_device);
    cr_assert_not(cox__topology_reserved(topology));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(*simulated_mask(workers[i].id), 0x7f, "worker %d has mask %#lx", i,
                     (unsigned long)*simulated_mask(workers[i].id));
    cox__topology_enter(topology);
    cr_assert_eq(own_mask(), 0x7f, "brackets go on after the reservation was given up");
    cox__topology_leave(topology);
    cr_assert_eq(cox__topology_worker_cpus(topology), 7);
    cox__topology_destroy(&topology);
    stop_workers(workers, 4);
}

Test(decide, without_an_asynchronous_device_workers_get_the_core_back)
{
    given_back(false, true);
}

Test(decide, without_a_cpu_device_workers_get_the_core_back)
{
    given_back(true, false);
}

Test(decide, destroyed_undecided_workers_get_the_core_back)
{
    struct worker workers[2];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    start_workers(workers, 2);
    *simulated_mask(workers[1].id) = 0x2; /* has bound itself elsewhere meanwhile */
    cox__topology_leave(topology);
    cox__topology_destroy(&topology);
    cr_assert_eq(*simulated_mask(workers[0].id), 0xf);
    cr_assert_eq(own_mask(), 0xf);
    stop_workers(workers, 2);
}

Test(decide, forced_it_needs_neither_device)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 2, .pus = 1}, 0);
    struct cox__topology *topology = with_workers(COX_RESERVE_ON, workers, 4, false, false);
    cr_assert(cox__topology_reserved(topology));
    cox__topology_destroy(&topology);
    stop_workers(workers, 4);
}

Test(decide, workers_that_were_there_before_are_reported)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    start_workers(workers, 4);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    struct cox_host_info info = host(topology);
    cr_assert(info.reserved);
    cr_assert_not(info.workers_kept_off);
    cr_assert_not_null(strstr(logged, "started before, by another library"), "%s", logged);
    cr_assert_eq(loudest, COX_LOG_WARN);
    cr_assert_eq(cox__topology_worker_cpus(topology), 3);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0xf, "bound to a core that workers keep busy");
    for (int i = 0; i < 4; i++)
        cr_assert_eq(*simulated_mask(workers[i].id), 0xf);
    cox__topology_destroy(&topology);
    stop_workers(workers, 4);
}

Test(decide, a_second_runtime_finds_the_workers_of_the_first_off_the_core)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *first = with_workers(COX_RESERVE_ON, workers, 4, true, true);
    struct cox__topology *second = create(COX_RESERVE_ON, 0);
    logged[0] = '\0';
    cox__topology_enter(second);
    cox__topology_leave(second);
    cox__topology_decide(second, true, true);
    struct cox_host_info info = host(second);
    cr_assert(info.reserved);
    cr_assert_not(info.workers_kept_off, "it was not this runtime that kept them off");
    cr_assert_eq(info.reserved_cpu, host(first).reserved_cpu);
    cr_assert_not_null(strstr(logged, "workers were there already"), "%s", logged);
    cr_assert_eq(loudest, COX_LOG_INFO);
    cox__topology_bind_scheduler(second);
    cr_assert_eq(own_mask(), 0x8);
    cox__topology_destroy(&second);
    cox__topology_destroy(&first);
    stop_workers(workers, 4);
}

/* On two cores a scheduler's mask looks like that of workers kept off the other core; its name tells. */
Test(decide, the_scheduler_of_another_runtime_is_not_taken_for_a_worker)
{
    simulate((struct machine){.packages = 1, .cores = 2, .pus = 1}, 0);
    char name[32];
    pthread_getname_np(pthread_self(), name, sizeof name);
    struct worker scheduler;
    pthread_setname_np(pthread_self(), COX__SCHEDULER_NAME); /* inherited */
    start_workers(&scheduler, 1);
    pthread_setname_np(pthread_self(), name);
    *simulated_mask(scheduler.id) = 0x1;
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    cr_assert_not_null(strstr(host(topology).reserve_reason, "started before, by another library"));
    cox__topology_destroy(&topology);
    stop_workers(&scheduler, 1);
}

Test(decide, a_few_threads_of_a_driver_are_not_taken_for_workers)
{
    struct worker workers[4], drivers[2];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    start_workers(workers, 4);
    struct cox__topology *topology = with_workers(COX_RESERVE_ON, drivers, 2, true, true);
    cr_assert_not(host(topology).workers_kept_off);
    cox__topology_destroy(&topology);
    stop_workers(drivers, 2);
    stop_workers(workers, 4);
}

/* Mesa's disk cache takes every CPU by itself; an application's thread may be born elsewhere meanwhile. */
Test(decide, threads_with_all_cpus_are_not_taken_for_workers)
{
    struct worker workers[5];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    start_workers(workers, 5);
    *simulated_mask(workers[2].id) = 0xf;
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    cr_assert(host(topology).workers_kept_off);
    cox__topology_destroy(&topology);
    stop_workers(workers, 5);
}

Test(decide, a_worker_that_binds_itself_to_the_core_is_reported)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_enter(topology);
    start_workers(workers, 4);
    *simulated_mask(workers[3].id) = 0x8;
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    cr_assert_not(host(topology).workers_kept_off);
    cr_assert_eq(loudest, COX_LOG_WARN);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0xf);
    cox__topology_destroy(&topology);
    stop_workers(workers, 4);
}

Test(decide, without_proc_it_reserves_and_claims_nothing)
{
    struct worker workers[4];
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    simulated.no_proc = true;
    cox__topology_enter(topology);
    start_workers(workers, 4);
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    struct cox_host_info info = host(topology);
    cr_assert(info.reserved);
    cr_assert_not(info.workers_kept_off);
    cr_assert_not_null(strstr(info.reserve_reason, "/proc"));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(*simulated_mask(workers[i].id), 0x7);
    cox__topology_bind_scheduler(topology);
    cr_assert_eq(own_mask(), 0x8);
    cox__topology_destroy(&topology);
    stop_workers(workers, 4);
}

Test(decide, only_the_first_decision_counts)
{
    simulate((struct machine){.packages = 1, .cores = 4, .pus = 1}, 0);
    struct cox__topology *topology = create(COX_RESERVE_AUTO, 0);
    cox__topology_enter(topology);
    cox__topology_leave(topology);
    cox__topology_decide(topology, true, true);
    cox__topology_decide(topology, false, false);
    cr_assert(cox__topology_reserved(topology));
    cox__topology_destroy(&topology);
}

/* ---- the real machine ---- */

Test(real, threads_born_in_a_bracket_stay_off_the_core_and_the_caller_gets_its_mask_back)
{
    need_two_cores();
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    uint32_t cpu = host(topology).reserved_cpu;
    char before[256], inside[256], after[256], born[256], later[256];
    struct worker workers[2]; /* born inside, born after */
    allowed_list(self_id(), before, sizeof before);
    cox__topology_enter(topology);
    allowed_list(self_id(), inside, sizeof inside);
    start_workers(&workers[0], 1);
    cox__topology_leave(topology);
    allowed_list(self_id(), after, sizeof after);
    start_workers(&workers[1], 1);
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
    stop_workers(workers, 2);
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
    need_two_cores();
    struct cox__topology *topology = create(COX_RESERVE_ON, 0);
    cox__topology_decide(topology, false, false);
    cr_assert_lt(cox__topology_worker_cpus(topology), host(topology).cpus);
    pthread_t thread;
    void *result = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, scheduler_main, topology), 0);
    pthread_join(thread, &result);
    cr_assert_eq(result, topology);
    cox__topology_destroy(&topology);
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
