/* The processor, the reserved core and the masks that follow from it.
 *
 * How the core is kept free. A CPU platform starts its worker threads inside its first call, and a thread is born with
 * the mask of the thread that creates it. So the calling thread leaves the core before that call (enter), and the
 * workers never run on it; afterwards it gets its own mask back (leave). Nothing else in the process is touched,
 * except that workers born in such a bracket get the core back if the reservation is given up.
 *
 * hwloc is asked once, at creation; from then on everything is a table of cores and three masks, and the system calls
 * are plain sched_setaffinity, which restores a mask bit by bit as it was.
 *
 * Lock order: `lock` is the only lock; the logger is never called with it held.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_*_S, sched_getaffinity */
#endif
#include "topology.h"

#include "cores.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    CPUS_MAX = 8192, /* what the largest Linux kernels are built for */
    AUTO_CORES_MIN = 3,
    PCI_CLASS_DISPLAY = 0x03,
    PCI_CLASS_ACCELERATOR = 0x12,
};

#define PCI_DIR "/sys/bus/pci/devices"

struct mask {
    cpu_set_t set[CPUS_MAX / CPU_SETSIZE];
};

/* Where a thread stood when it entered. */
struct bracket {
    struct bracket *next;
    pid_t thread;
    uint32_t depth;
    bool narrowed; /* the mask was changed and must be put back */
    struct mask before;
};

/* Thread numbers, ascending. `known` is false if /proc could not be read. */
struct threads {
    bool known;
    size_t count;
    pid_t *ids;
};

struct cox__topology {
    struct cox__log log;
    enum cox_reserve reserve;

    uint32_t cpus;
    uint32_t core_count;
    uint32_t kind_count;
    uint32_t kind_cores[COX_CORE_KINDS_MAX];
    char kind_name[COX_CORE_KINDS_MAX][32];

    uint32_t chosen_cpu;
    uint32_t chosen_cpu_count;
    char chosen_why[48];
    struct mask allowed; /* what this process may use */
    struct mask core;    /* hardware threads of the chosen core that this process may use */
    struct mask whole;   /* all hardware threads of the chosen core */

    pthread_mutex_t lock; /* guards what follows */
    bool active;          /* enter leaves the core */
    bool decided;
    bool reserved;
    bool bind;
    bool kept_off;
    char reason[160];
    struct bracket *brackets; /* threads between enter and leave */
    bool noted;               /* the first bracket is over */
    bool note_known;          /* ... and /proc could be read before and after */
    bool note_narrowed;
    pid_t note_thread; /* the thread of the first bracket; 0 = no bracket yet */
    struct threads before;
    struct threads born; /* threads that appeared during the first bracket */
};

/* ---- masks ---- */

static bool mask_get(pid_t thread, struct mask *mask)
{
    memset(mask, 0, sizeof *mask);
    return sched_getaffinity(thread, sizeof mask->set, mask->set) == 0;
}

static bool mask_set(pid_t thread, const struct mask *mask)
{
    return sched_setaffinity(thread, sizeof mask->set, mask->set) == 0;
}

static bool mask_has(const struct mask *mask, uint32_t cpu)
{
    return cpu < CPUS_MAX && CPU_ISSET_S(cpu, sizeof mask->set, mask->set);
}

static void mask_add(struct mask *mask, uint32_t cpu)
{
    if (cpu < CPUS_MAX)
        CPU_SET_S(cpu, sizeof mask->set, mask->set);
}

static uint32_t mask_count(const struct mask *mask)
{
    return (uint32_t)CPU_COUNT_S(sizeof mask->set, mask->set);
}

/* a and b overlap */
static bool mask_meets(const struct mask *a, const struct mask *b)
{
    struct mask both;
    CPU_AND_S(sizeof both.set, both.set, a->set, b->set);
    return mask_count(&both) > 0;
}

/* a without b */
static struct mask mask_without(const struct mask *a, const struct mask *b)
{
    struct mask both, rest;
    CPU_AND_S(sizeof both.set, both.set, a->set, b->set);
    CPU_XOR_S(sizeof rest.set, rest.set, a->set, both.set);
    return rest;
}

/* ---- threads ---- */

static int compare_threads(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

static bool threads_have(const struct threads *threads, pid_t id)
{
    return threads->count > 0 && bsearch(&id, threads->ids, threads->count, sizeof id, compare_threads);
}

static void threads_free(struct threads *threads)
{
    free(threads->ids);
    *threads = (struct threads){0};
}

/* The threads of this process, without those of `except` (may be NULL). Free with threads_free. */
static struct threads threads_list(const struct threads *except)
{
    struct threads list = {0};
    size_t room = 0;
    DIR *dir = opendir("/proc/self/task");
    if (!dir)
        return list;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *end;
        long id = strtol(entry->d_name, &end, 10);
        if (id <= 0 || *end != '\0' || (except && threads_have(except, (pid_t)id)))
            continue;
        if (list.count == room) {
            room = room ? 2 * room : 64;
            pid_t *ids = realloc(list.ids, room * sizeof *ids);
            if (!ids)
                goto fail;
            list.ids = ids;
        }
        list.ids[list.count++] = (pid_t)id;
    }
    closedir(dir);
    if (list.count > 0)
        qsort(list.ids, list.count, sizeof *list.ids, compare_threads);
    list.known = true;
    return list;
fail:
    closedir(dir);
    threads_free(&list);
    return list;
}

/* Whether `id` is a living thread of this process: numbers are used again, by other processes too. */
static bool thread_is_ours(pid_t id)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%ld", (long)id);
    return access(path, F_OK) == 0;
}

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* ---- reading hwloc ---- */

/* Display chips of servers and of virtual machines, which compute nothing. */
static bool only_a_console(unsigned long vendor)
{
    static const unsigned long consoles[] = {0x1a03 /* ASPEED */, 0x102b /* Matrox */, 0x1013 /* Cirrus */,
                                             0x1234 /* Bochs */,  0x15ad /* VMware */, 0x1af4 /* virtio */};
    for (size_t i = 0; i < sizeof consoles / sizeof consoles[0]; i++) {
        if (vendor == consoles[i])
            return true;
    }
    return false;
}

/* One line of a file of a PCI device in sysfs, without its newline. */
static bool pci_line(const char *device, const char *file, char *line, size_t bytes)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s/%s", PCI_DIR, device, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return false;
    bool got = fgets(line, (int)bytes, stream) != NULL;
    fclose(stream);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

/* "0-3,8,10-11" into a mask; stops at what it does not understand. */
static void mask_read(struct mask *mask, const char *list)
{
    memset(mask, 0, sizeof *mask);
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
            mask_add(mask, (uint32_t)cpu);
        list = *end == ',' ? end + 1 : end;
    }
}

/* Count for each core the GPUs in whose neighbourhood it is. From sysfs and not through hwloc, whose PCI discovery sits
 * in a plugin that often is not installed. */
static void count_near_gpus(struct cox__core *cores, size_t count)
{
    DIR *dir = opendir(PCI_DIR);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char line[1024];
        if (entry->d_name[0] == '.' || !pci_line(entry->d_name, "class", line, sizeof line))
            continue;
        unsigned long class = strtoul(line, NULL, 16) >> 16;
        if (class != PCI_CLASS_DISPLAY && class != PCI_CLASS_ACCELERATOR)
            continue;
        if (!pci_line(entry->d_name, "vendor", line, sizeof line) || only_a_console(strtoul(line, NULL, 16)))
            continue;
        struct mask near;
        if (!pci_line(entry->d_name, "local_cpulist", line, sizeof line))
            continue;
        mask_read(&near, line);
        for (size_t i = 0; i < count; i++)
            cores[i].near_gpus += mask_has(&near, cores[i].first_cpu);
    }
    closedir(dir);
}

/* Rank of the kind of `cpuset` among all kinds of the machine; -1 = unknown. */
static int kind_of(hwloc_topology_t topology, hwloc_const_cpuset_t cpuset)
{
    int kind = hwloc_cpukinds_get_by_cpuset(topology, cpuset, 0);
    int efficiency = -1;
    if (kind < 0 || hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0) != 0)
        return -1;
    return efficiency < 0 ? -1 : kind; /* kinds of known efficiency come in its order */
}

/* Load what hwloc knows, or NULL with the reason in `why`. */
static hwloc_topology_t load_hwloc(char *why, size_t why_bytes)
{
    /* The OpenCL component calls into the ICDs before the bracket, the others start drivers or an X connection or read
     * what is not needed. Naming one that is not there fails harmlessly. */
    static const char *const unwanted[] = {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl", "pci"};
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        snprintf(why, why_bytes, "hwloc does not start");
        return NULL;
    }
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
    if (hwloc_topology_load(topology) != 0) {
        snprintf(why, why_bytes, "hwloc cannot read this machine");
        goto fail;
    }
    if (!hwloc_topology_is_thissystem(topology)) {
        snprintf(why, why_bytes, "hwloc was told to describe another machine");
        goto fail;
    }
    return topology;
fail:
    hwloc_topology_destroy(topology);
    return NULL;
}

/* Number the kinds that occur in the table from 0, in order of power; forget them if there is only one. */
static void count_kinds(struct cox__topology *self, hwloc_topology_t topology, struct cox__core *cores, size_t count)
{
    int machine_kinds = hwloc_cpukinds_get_nr(topology, 0);
    for (size_t i = 0; i < count; i++) {
        if (cores[i].kind < 0)
            return;
    }
    for (int kind = 0; kind < machine_kinds && self->kind_count < COX_CORE_KINDS_MAX; kind++) {
        uint32_t members = 0;
        for (size_t i = 0; i < count; i++)
            members += cores[i].kind == kind;
        if (members == 0)
            continue;
        struct hwloc_info_s *infos = NULL;
        unsigned info_count = 0;
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, NULL, &info_count, &infos, 0);
        for (unsigned i = 0; i < info_count; i++) {
            if (strcmp(infos[i].name, "CoreType") == 0)
                snprintf(self->kind_name[self->kind_count], sizeof self->kind_name[0], "%s", infos[i].value);
        }
        self->kind_cores[self->kind_count++] = members;
    }
    if (self->kind_count == 1) {
        self->kind_count = 0;
        self->kind_cores[0] = 0;
        self->kind_name[0][0] = '\0';
    }
}

/* Fill in the counts and choose the core. Returns false if no core can be chosen, with the reason in `why`. */
static bool read_cores(struct cox__topology *self, uint32_t reserve_cpu, char *why, size_t why_bytes)
{
    bool found = false;
    struct cox__core *cores = NULL;
    hwloc_obj_t *objects = NULL;
    hwloc_topology_t topology = load_hwloc(why, why_bytes);
    if (!topology)
        return false;

    /* Some virtual machines have no cores, only processing units. */
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int object_count = hwloc_get_nbobjs_by_type(topology, type);
    if (object_count <= 0) {
        snprintf(why, why_bytes, "hwloc knows no core of this machine");
        goto done;
    }
    cores = calloc((size_t)object_count, sizeof *cores);
    objects = calloc((size_t)object_count, sizeof(hwloc_obj_t));
    if (!cores || !objects) {
        snprintf(why, why_bytes, "no memory for the table of cores");
        goto done;
    }

    size_t count = 0, chosen = SIZE_MAX;
    uint32_t cpus = 0;
    for (int i = 0; i < object_count; i++) {
        hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, (unsigned)i);
        struct cox__core core = {.kind = kind_of(topology, object->cpuset)};
        for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(object->cpuset, cpu)) {
            if (!mask_has(&self->allowed, (uint32_t)cpu))
                continue;
            if (core.cpu_count++ == 0)
                core.first_cpu = (uint32_t)cpu;
            if (self->reserve == COX_RESERVE_CORE && (uint32_t)cpu == reserve_cpu)
                chosen = count;
        }
        if (core.cpu_count == 0)
            continue;
        cpus += core.cpu_count;
        objects[count] = object;
        cores[count++] = core;
    }
    if (count == 0) {
        snprintf(why, why_bytes, "hwloc knows none of the CPUs that this process may use");
        goto done;
    }
    self->core_count = (uint32_t)count;
    self->cpus = cpus;
    count_kinds(self, topology, cores, count);
    count_near_gpus(cores, count);

    if (self->reserve != COX_RESERVE_CORE) {
        chosen = cox__cores_choose(cores, count, self->chosen_why, sizeof self->chosen_why);
    } else if (chosen == SIZE_MAX) {
        snprintf(why, why_bytes, "hwloc does not know CPU %u", reserve_cpu);
        goto done;
    } else {
        snprintf(self->chosen_why, sizeof self->chosen_why, "as asked for");
    }
    self->chosen_cpu = cores[chosen].first_cpu;
    self->chosen_cpu_count = cores[chosen].cpu_count;
    hwloc_const_cpuset_t cpuset = objects[chosen]->cpuset;
    for (int cpu = hwloc_bitmap_first(cpuset); cpu >= 0; cpu = hwloc_bitmap_next(cpuset, cpu)) {
        mask_add(&self->whole, (uint32_t)cpu);
        if (mask_has(&self->allowed, (uint32_t)cpu))
            mask_add(&self->core, (uint32_t)cpu);
    }
    found = true;
done:
    free(objects);
    free(cores);
    hwloc_topology_destroy(topology);
    return found;
}

/* ---- creation ---- */

cox_status cox__topology_create(struct cox__topology **out, enum cox_reserve reserve, uint32_t reserve_cpu,
                                const struct cox__log *log)
{
    *out = NULL;
    if ((int)reserve < COX_RESERVE_AUTO || reserve > COX_RESERVE_CORE) {
        cox__log(log, COX_LOG_ERROR, "reserve: %d is none of the ways to reserve a core", (int)reserve);
        return COX_E_INVALID;
    }
    struct mask allowed;
    bool mask_known = mask_get(0, &allowed);
    if (reserve == COX_RESERVE_CORE && mask_known && !mask_has(&allowed, reserve_cpu)) {
        cox__log(log, COX_LOG_ERROR, "reserve: CPU %u does not exist or is not among those of this process",
                 reserve_cpu);
        return COX_E_INVALID;
    }

    struct cox__topology *self = calloc(1, sizeof *self);
    if (!self)
        return COX_E_NOMEM;
    if (log)
        self->log = *log;
    self->reserve = reserve;
    self->allowed = allowed;
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        return COX_E_SYSTEM;
    }

    char why[96] = "the system does not tell this process's CPUs";
    bool chosen = mask_known && read_cores(self, reserve_cpu, why, sizeof why);
    if (!chosen && self->core_count == 0) { /* the counts are still worth something */
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        self->cpus = mask_known ? mask_count(&allowed) : online > 0 ? (uint32_t)online : 1;
        self->core_count = self->cpus;
    }

    if (reserve == COX_RESERVE_OFF)
        snprintf(self->reason, sizeof self->reason, "none: switched off");
    else if (!chosen)
        snprintf(self->reason, sizeof self->reason, "none: %s", why);
    else if (self->core_count < 2)
        snprintf(self->reason, sizeof self->reason, "none: there is only one core");
    else if (reserve == COX_RESERVE_AUTO && self->core_count < AUTO_CORES_MIN)
        snprintf(self->reason, sizeof self->reason,
                 "none: %u cores, and it is worth one only with %d or more; it would be CPU %u (%s)", self->core_count,
                 AUTO_CORES_MIN, self->chosen_cpu, self->chosen_why);
    else
        self->active = true;

    if (!self->active && reserve != COX_RESERVE_OFF) {
        bool unwelcome = reserve != COX_RESERVE_AUTO || !chosen;
        cox__log(&self->log, unwelcome ? COX_LOG_WARN : COX_LOG_INFO, "reserved core: %s", self->reason);
    }
    *out = self;
    return COX_OK;
}

/* ---- brackets ---- */

void cox__topology_enter(struct cox__topology *self)
{
    if (!self)
        return;
    const char *trouble = NULL;
    pid_t thread = this_thread();
    pthread_mutex_lock(&self->lock);
    struct bracket *bracket = self->brackets;
    while (bracket && bracket->thread != thread)
        bracket = bracket->next;
    if (bracket) {
        bracket->depth++;
        goto done;
    }
    if (!self->active)
        goto done;
    bracket = calloc(1, sizeof *bracket);
    if (!bracket) {
        trouble = "no memory to leave the reserved core";
        goto done;
    }
    bracket->thread = thread;
    bracket->depth = 1;
    bracket->next = self->brackets;
    self->brackets = bracket;

    if (!mask_get(0, &bracket->before)) {
        trouble = "the calling thread's mask cannot be read";
    } else {
        struct mask narrow = mask_without(&bracket->before, &self->whole);
        if (mask_count(&narrow) == 0)
            trouble = "the calling thread may run on the reserved core only, so may the workers born in it";
        else if (mask_meets(&bracket->before, &self->whole)) {
            bracket->narrowed = mask_set(0, &narrow);
            if (!bracket->narrowed)
                trouble = "the system refuses to move the calling thread off the reserved core";
        }
    }
    if (self->note_thread == 0) {
        self->note_thread = thread;
        self->before = threads_list(NULL);
    }
done:
    pthread_mutex_unlock(&self->lock);
    if (trouble)
        cox__log(&self->log, COX_LOG_WARN, "reserved core: %s", trouble);
}

void cox__topology_leave(struct cox__topology *self)
{
    if (!self)
        return;
    bool stuck = false;
    pid_t thread = this_thread();
    pthread_mutex_lock(&self->lock);
    struct bracket **link = &self->brackets;
    while (*link && (*link)->thread != thread)
        link = &(*link)->next;
    struct bracket *bracket = *link;
    if (bracket && --bracket->depth == 0) {
        if (!self->noted && self->note_thread == thread) {
            self->noted = true;
            self->note_narrowed = bracket->narrowed;
            if (self->before.known)
                self->born = threads_list(&self->before);
            self->note_known = self->born.known;
            threads_free(&self->before);
        }
        if (bracket->narrowed)
            stuck = !mask_set(0, &bracket->before);
        *link = bracket->next;
        free(bracket);
    }
    pthread_mutex_unlock(&self->lock);
    if (stuck)
        cox__log(&self->log, COX_LOG_WARN,
                 "reserved core: the system refuses to give the calling thread its mask back");
}

/* ---- the decision ---- */

/* Give the core back to the threads that the first bracket kept off it. Lock held, or the last user. */
static void release_born(struct cox__topology *self)
{
    if (!self->note_narrowed)
        return;
    for (size_t i = 0; i < self->born.count; i++) {
        struct mask mask;
        pid_t id = self->born.ids[i];
        if (!thread_is_ours(id) || !mask_get(id, &mask) || mask_meets(&mask, &self->whole))
            continue;
        CPU_OR_S(sizeof mask.set, mask.set, mask.set, self->core.set);
        mask_set(id, &mask); /* fails if the thread has ended: then it needs no mask */
    }
}

/* How many of `threads` may not run on the core, and how many are pinned to it or to a part of the machine that holds
 * it. Threads with the run of all CPUs are neither: no worker that was born in a bracket, but an application's
 * or a driver's housekeeping (Mesa's disk cache takes every CPU by itself). Nor are schedulers, which are bound to a
 * core of their own. */
static void count_off(const struct cox__topology *self, const struct threads *threads, uint32_t *off, uint32_t *pinned)
{
    *off = *pinned = 0;
    for (size_t i = 0; i < threads->count; i++) {
        struct mask mask;
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)threads->ids[i]);
        FILE *file = fopen(path, "re");
        if (!file)
            continue; /* it has ended */
        bool named = fgets(name, sizeof name, file) != NULL;
        fclose(file);
        if (named && strcmp(name, COX__SCHEDULER_NAME "\n") == 0)
            continue;
        if (!mask_get(threads->ids[i], &mask))
            continue;
        if (!mask_meets(&mask, &self->whole)) {
            ++*off;
            continue;
        }
        struct mask missing = mask_without(&self->allowed, &mask);
        if (mask_count(&missing) > 0)
            ++*pinned;
    }
}

void cox__topology_decide(struct cox__topology *self, bool async_device, bool cpu_device)
{
    if (!self)
        return;
    enum cox_log_level level = COX_LOG_INFO;
    pthread_mutex_lock(&self->lock);
    if (self->decided || !self->active) {
        self->decided = true;
        pthread_mutex_unlock(&self->lock);
        return;
    }
    self->decided = true;

    if (self->reserve == COX_RESERVE_AUTO && !(async_device && cpu_device)) {
        self->active = false;
        release_born(self);
        snprintf(self->reason, sizeof self->reason, "none: %s; it would be CPU %u (%s)",
                 async_device ? "no CPU device takes part, so nothing keeps the cores busy"
                              : "no asynchronous device takes part that would have to be fed",
                 self->chosen_cpu, self->chosen_why);
        goto done;
    }

    self->reserved = true;
    char tail[80];
    uint32_t workers = self->cpus - self->chosen_cpu_count, off = 0, pinned = 0;
    count_off(self, &self->born, &off, &pinned);
    if (!cpu_device) {
        self->bind = true;
        self->kept_off = pinned == 0;
        snprintf(tail, sizeof tail, "no CPU device takes part");
    } else if (!self->note_known) {
        /* The bracket has done its work, only nobody can see it. */
        self->bind = self->note_narrowed;
        level = COX_LOG_WARN;
        snprintf(tail, sizeof tail, "whether workers stay off it cannot be told without /proc");
    } else if (pinned > 0) {
        level = COX_LOG_WARN;
        snprintf(tail, sizeof tail, "but a worker bound itself to it (%u in all)", pinned);
    } else if (off >= workers) {
        /* At least one worker for each CPU that is left: fewer would be some driver's own threads. */
        self->bind = true;
        self->kept_off = true;
        snprintf(tail, sizeof tail, "%u worker thread%s off it", off, off == 1 ? " stays" : "s stay");
    } else {
        /* Workers that were there before may be off the core too, if an earlier runtime saw to it. Then it is
         * worth binding to. If not, or if they start later and inherit the scheduler's mask, a bound scheduler
         * would be worse off than a free one. */
        uint32_t earlier = 0;
        struct threads all = threads_list(&self->born);
        count_off(self, &all, &earlier, &pinned);
        threads_free(&all);
        self->bind = earlier >= workers && pinned == 0;
        level = self->bind ? COX_LOG_INFO : COX_LOG_WARN;
        if (self->bind)
            snprintf(tail, sizeof tail, "workers were there already, %u thread%s off it", earlier,
                     earlier == 1 ? " stays" : "s stay");
        else
            snprintf(tail, sizeof tail, "but workers were started by somebody else, or start later");
    }
    snprintf(self->reason, sizeof self->reason, "CPU %u (%s): %s", self->chosen_cpu, self->chosen_why, tail);
done:
    threads_free(&self->born);
    pthread_mutex_unlock(&self->lock);
    cox__log(&self->log, level, "reserved core: %s", self->reason); /* written once, above */
}

void cox__topology_destroy(struct cox__topology **topology)
{
    if (!topology || !*topology)
        return;
    struct cox__topology *self = *topology;
    /* Not decided: whoever wanted the core has failed since, and nothing will ever need it. */
    if (!self->decided)
        release_born(self);
    while (self->brackets) {
        struct bracket *next = self->brackets->next;
        free(self->brackets);
        self->brackets = next;
    }
    threads_free(&self->before);
    threads_free(&self->born);
    pthread_mutex_destroy(&self->lock);
    free(self);
    *topology = NULL;
}

bool cox__topology_reserved(const struct cox__topology *self)
{
    return self && self->reserved;
}

uint32_t cox__topology_worker_cpus(const struct cox__topology *self)
{
    if (!self)
        return 1;
    return self->reserved ? self->cpus - self->chosen_cpu_count : self->cpus;
}

void cox__topology_bind_scheduler(struct cox__topology *self)
{
    if (!self)
        return;
    pthread_setname_np(pthread_self(), COX__SCHEDULER_NAME);
    if (!self->reserved || !self->bind)
        return;
    if (!mask_set(0, &self->core))
        cox__log(&self->log, COX_LOG_WARN, "reserved core: the system refuses to bind the scheduler thread to CPU %u",
                 self->chosen_cpu);
}

void cox__topology_host_info(const struct cox__topology *self, struct cox_host_info *info)
{
    memset(info, 0, sizeof *info);
    if (!self)
        return;
    info->cores = self->core_count;
    info->cpus = self->cpus;
    info->kind_count = self->kind_count;
    memcpy(info->kind_cores, self->kind_cores, sizeof info->kind_cores);
    memcpy(info->kind_name, self->kind_name, sizeof info->kind_name);
    info->reserved = self->reserved;
    info->workers_kept_off = self->kept_off;
    info->reserved_cpu = self->chosen_cpu;
    memcpy(info->reserve_reason, self->reason, sizeof info->reserve_reason);
}
