/* The processor as hwloc sees it, and where its GPUs are. The only file that uses hwloc.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_mask.h */
#endif
#include "machine.h"
#include "cores.h"

#include <dirent.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCI_CLASS_DISPLAY = 0x03, PCI_CLASS_ACCELERATOR = 0x12 };

#define PCI_DIR "/sys/bus/pci/devices"

/* Display chips of servers and of virtual machines, which compute nothing. */
static bool only_a_console(unsigned long vendor)
{
    static const unsigned long consoles[] = {0x1a03 /* ASPEED */, 0x102b /* Matrox */,
                                             0x1013 /* Cirrus */, 0x1234 /* Bochs */,
                                             0x15ad /* VMware */, 0x1af4 /* virtio */};

    for (size_t i = 0; i < sizeof consoles / sizeof consoles[0]; i++)
        if (vendor == consoles[i])
            return true;
    return false;
}

/* Read one line of a PCI device's file in sysfs, without its newline. */
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

/* Count for each core the GPUs near it. Reads sysfs: hwloc discovers PCI devices in a plugin that
 * often is not installed. */
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

        if (!pci_line(entry->d_name, "vendor", line, sizeof line) ||
            only_a_console(strtoul(line, NULL, 16)))
            continue;

        struct cox__cpu_mask near;
        if (!pci_line(entry->d_name, "local_cpulist", line, sizeof line))
            continue;

        cox__cpu_mask_read(&near, line);
        for (size_t i = 0; i < count; i++)
            cores[i].near_gpus += cox__cpu_mask_has(&near, cores[i].first_cpu);
    }
    closedir(dir);
}

/* Rank of the kind of `cpuset` among all kinds of the machine; -1 = unknown. */
static int kind_of(hwloc_topology_t topology, hwloc_const_cpuset_t cpuset)
{
    int kind = hwloc_cpukinds_get_by_cpuset(topology, cpuset, 0);
    int efficiency = -1;

    if (kind < 0 ||
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0) != 0 ||
        efficiency < 0)
        return -1;
    return kind; /* kinds of known efficiency are numbered in its order */
}

/* Load what hwloc knows, or return NULL with the reason in `why`. */
static hwloc_topology_t load_hwloc(char *why, size_t why_bytes)
{
    /* The OpenCL component would call the ICDs before the bracket. The others start drivers or an X
     * connection, or read what is not needed. An unknown name does no harm. */
    static const char *const unwanted[] = {"opencl",    "cuda", "nvml", "rsmi",
                                           "levelzero", "gl",   "pci"};

    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        snprintf(why, why_bytes, "hwloc does not start");
        return NULL;
    }

    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      unwanted[i]);

    if (hwloc_topology_load(topology) != 0) {
        snprintf(why, why_bytes, "hwloc cannot read this machine");
        goto fail;
    }

    if (!hwloc_topology_is_thissystem(topology)) {
        snprintf(why, why_bytes, "hwloc describes another machine");
        goto fail;
    }

    return topology;

fail:
    hwloc_topology_destroy(topology);
    return NULL;
}

/* Number the kinds that occur in the table from 0, in order of power. A single kind is
 * forgotten. */
static void count_kinds(struct cox__machine *machine, hwloc_topology_t topology,
                        struct cox__core *cores, size_t count)
{
    int machine_kinds = hwloc_cpukinds_get_nr(topology, 0);
    for (size_t i = 0; i < count; i++)
        if (cores[i].kind < 0)
            return;

    for (int kind = 0; kind < machine_kinds && machine->kind_count < COX_CORE_KINDS_MAX; kind++) {
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
                snprintf(machine->kind_name[machine->kind_count], sizeof machine->kind_name[0],
                         "%s", infos[i].value);
        }

        machine->kind_cores[machine->kind_count++] = members;
    }

    if (machine->kind_count == 1) {
        machine->kind_count = 0;
        machine->kind_cores[0] = 0;
        machine->kind_name[0][0] = '\0';
    }
}

/* Fill in which hardware threads of a core this process may use. Returns whether `*wanted_cpu` is
 * one of them; `wanted_cpu` may be NULL. */
static bool read_core(hwloc_const_cpuset_t cpuset, const struct cox__cpu_mask *allowed,
                      const uint32_t *wanted_cpu, struct cox__core *core)
{
    bool wanted = false;
    for (int cpu = hwloc_bitmap_first(cpuset); cpu >= 0; cpu = hwloc_bitmap_next(cpuset, cpu)) {
        if (!cox__cpu_mask_has(allowed, (uint32_t)cpu))
            continue;

        if (core->cpu_count++ == 0)
            core->first_cpu = (uint32_t)cpu;
        if (wanted_cpu && (uint32_t)cpu == *wanted_cpu)
            wanted = true;
    }
    return wanted;
}

static void set_chosen(struct cox__machine *machine, const struct cox__core *core,
                       hwloc_const_cpuset_t cpuset, const struct cox__cpu_mask *allowed)
{
    machine->chosen_cpu = core->first_cpu;
    machine->chosen_cpu_count = core->cpu_count;

    for (int cpu = hwloc_bitmap_first(cpuset); cpu >= 0; cpu = hwloc_bitmap_next(cpuset, cpu)) {
        cox__cpu_mask_add(&machine->whole, (uint32_t)cpu);
        if (cox__cpu_mask_has(allowed, (uint32_t)cpu))
            cox__cpu_mask_add(&machine->core, (uint32_t)cpu);
    }
}

bool cox__machine_read(struct cox__machine *machine, const struct cox__cpu_mask *allowed,
                       const uint32_t *wanted_cpu, char *why, size_t why_bytes)
{
    bool found = false;
    struct cox__core *cores = NULL;
    hwloc_obj_t *objects = NULL;
    hwloc_topology_t topology = load_hwloc(why, why_bytes);
    if (!topology)
        return false;

    /* Some virtual machines have no cores, only processing units. */
    hwloc_obj_type_t type = HWLOC_OBJ_CORE;
    if (hwloc_get_nbobjs_by_type(topology, type) <= 0)
        type = HWLOC_OBJ_PU;
    int object_count = hwloc_get_nbobjs_by_type(topology, type);
    if (object_count <= 0) {
        snprintf(why, why_bytes, "hwloc finds no core on this machine");
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
        if (read_core(object->cpuset, allowed, wanted_cpu, &core))
            chosen = count;
        if (core.cpu_count == 0)
            continue;

        cpus += core.cpu_count;
        objects[count] = object;
        cores[count++] = core;
    }

    if (count == 0) {
        snprintf(why, why_bytes, "hwloc finds none of the CPUs that this process may use");
        goto done;
    }

    machine->core_count = (uint32_t)count;
    machine->cpus = cpus;
    count_kinds(machine, topology, cores, count);
    count_near_gpus(cores, count);

    if (!wanted_cpu) {
        chosen = cox__cores_choose(cores, count, machine->chosen_why, sizeof machine->chosen_why);
    } else if (chosen == SIZE_MAX) {
        snprintf(why, why_bytes, "hwloc does not know CPU %u", *wanted_cpu);
        goto done;
    } else {
        snprintf(machine->chosen_why, sizeof machine->chosen_why, "as requested");
    }

    set_chosen(machine, &cores[chosen], objects[chosen]->cpuset, allowed);
    found = true;

done:
    free(objects);
    free(cores);
    hwloc_topology_destroy(topology);
    return found;
}
