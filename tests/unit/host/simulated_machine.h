/* A simulated machine:
 *   Hwloc reads its topology from a file.
 *   The test program's affinity calls, which replace those of the C library, keep a table.
 *   /sys and /proc hold what the test has written there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SIMULATED_MACHINE_H
#define COX_TESTS_SIMULATED_MACHINE_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Files of the simulated machine: /sys/bus/pci/devices is a folder of the test, and /proc can be missing. */
static char folder[64];

static const char *simulated_path(const char *path, char *buffer, size_t bytes)
{
    static const char pci[] = "/sys/bus/pci/devices";
    if (simulated.no_proc && strncmp(path, "/proc/", 6) == 0)
        return NULL;
    if (!simulated.on || strncmp(path, pci, sizeof pci - 1) != 0)
        return path;
    snprintf(buffer, bytes, "%s%s", folder, path + sizeof pci - 1);
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

__attribute__((format(printf, 2, 3))) static void write_file(const char *name, const char *format, ...)
{
    char path[128];
    va_list args;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "a");
    cr_assert_not_null(file, "%s", path);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

/* Add a PCI device near these CPUs. */
static void plug_in(const char *class, const char *vendor, const char *local_cpulist)
{
    char path[128];
    snprintf(path, sizeof path, "%s/0000:01:00.0", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file("0000:01:00.0/class", "%s\n", class);
    write_file("0000:01:00.0/vendor", "%s\n", vendor);
    write_file("0000:01:00.0/local_cpulist", "%s\n", local_cpulist);
}

/* A machine of `packages` packages with `cores` cores each and `pus` hardware threads per core. Cores from
 * `efficient_from` on are efficiency cores (0: all cores are alike). */
struct machine {
    uint32_t packages, cores, pus, efficient_from;
};

/* The lowest `count` CPUs. */
static uint64_t cpus_to(uint32_t count)
{
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* Write a hwloc object with `more` attributes in its tag; `end` closes the tag. */
static void describe_object(const char *type, uint32_t index, uint64_t cpus, const char *more, const char *end)
{
    static uint32_t id = 1;
    const unsigned high = (unsigned)(cpus >> 32), low = (unsigned)cpus;
    write_file("machine.xml",
               "<object type=\"%s\" os_index=\"%u\" cpuset=\"0x%08x,0x%08x\" complete_cpuset=\"0x%08x,0x%08x\" "
               "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"%u\"%s%s>\n",
               type, index, high, low, high, low, id++, more, end);
}

static void describe_kind(uint64_t cpus, int efficiency, const char *type)
{
    write_file("machine.xml",
               "<cpukind cpuset=\"0x%08x,0x%08x\" forced_efficiency=\"%d\"><info name=\"CoreType\" "
               "value=\"%s\"/></cpukind>\n",
               (unsigned)(cpus >> 32), (unsigned)cpus, efficiency, type);
}

static bool another_machine; /* hwloc describes another machine than this one */

static void describe(struct machine machine)
{
    const uint32_t per_package = machine.cores * machine.pus;
    const uint64_t all = cpus_to(machine.packages * per_package);
    uint64_t efficient = 0;
    char allowed[100], path[128];
    write_file("machine.xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                              "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n");
    snprintf(allowed, sizeof allowed, " allowed_cpuset=\"0x%08x,0x%08x\" allowed_nodeset=\"0x1\"",
             (unsigned)(all >> 32), (unsigned)all);
    describe_object("Machine", 0, all, allowed, "");
    describe_object("NUMANode", 0, all, " local_memory=\"1073741824\"", "/");
    for (uint32_t p = 0; p < machine.packages; p++) {
        describe_object("Package", p, cpus_to(per_package) << p * per_package, "", "");
        for (uint32_t core = p * machine.cores; core < (p + 1) * machine.cores; core++) {
            const uint64_t cpus = cpus_to(machine.pus) << core * machine.pus;
            if (machine.efficient_from && core >= machine.efficient_from)
                efficient |= cpus;
            describe_object("Core", core, cpus, "", "");
            for (uint32_t pu = core * machine.pus; pu < (core + 1) * machine.pus; pu++)
                describe_object("PU", pu, UINT64_C(1) << pu, "", "/");
            write_file("machine.xml", "</object>\n");
        }
        write_file("machine.xml", "</object>\n");
    }
    write_file("machine.xml", "</object>\n");
    if (efficient) {
        describe_kind(all & ~efficient, 1, "IntelCore");
        describe_kind(efficient, 0, "IntelAtom");
    }
    write_file("machine.xml", "</topology>\n");
    snprintf(path, sizeof path, "%s/machine.xml", folder);
    setenv("HWLOC_XMLFILE", path, 1);
    setenv("HWLOC_THISSYSTEM", another_machine ? "0" : "1", 1);
}

/* Run on a machine of this shape, with the mask `mask` (0: all CPUs). */
static void simulate(struct machine machine, uint64_t mask)
{
    describe(machine);
    simulated_add(0, mask ? mask : cpus_to(machine.packages * machine.cores * machine.pus));
    simulated.on = true;
}

static uint64_t own_mask(void)
{
    return *simulated_mask(0);
}

#endif
