/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "missing.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A maker of GPUs: the names of its devices and platforms in OpenCL, and what to install. */
static const struct maker {
    unsigned long pci_vendor;
    const char *name;
    const char *words[4]; /* parts of a device's or platform's name, lower case */
    const char *platform; /* part of the name of the maker's own platform */
    const char *rusticl;  /* Mesa's driver, where Debian has no other; else NULL */
    const char *package;
} makers[] = {
    {0x8086, "Intel", {"intel"}, "intel", NULL, "intel-opencl-icd"},
    {0x1002,
     "AMD",
     {"amd", "radeon", "gfx"},
     "amd accelerated",
     "radeonsi",
     "mesa-opencl-icd (and set RUSTICL_ENABLE=radeonsi), or AMD's own ROCm"},
    {0x10de, "NVIDIA", {"nvidia", "nv1"}, "nvidia", NULL, "nvidia-opencl-icd (section non-free)"},
};

__attribute__((format(printf, 2, 3))) static void add(struct missing *out, const char *format, ...)
{
    if (out->count == MISSING_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(out->text[out->count++], sizeof out->text[0], format, args);
    va_end(args);
}

static bool has_word(const char *text, const char *word)
{
    return strcasestr(text, word);
}

static const struct cox_platform_info *find_platform(const struct missing_found *found,
                                                     const char *word)
{
    for (uint32_t i = 0; i < found->platform_count; i++)
        if (has_word(found->platforms[i].name, word))
            return &found->platforms[i];

    return NULL;
}

/* Whether OpenCL lists a GPU of this maker. */
static bool listed(const struct missing_found *found, const struct maker *maker)
{
    const size_t words = sizeof maker->words / sizeof maker->words[0];
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct cox_device_info *device = &found->devices[i];
        if (device->type == COX_DEVICE_CPU)
            continue;

        for (size_t w = 0; w < words && maker->words[w]; w++)
            if (has_word(device->name, maker->words[w]) ||
                has_word(device->platform, maker->words[w]))
                return true;
    }

    return false;
}

/* A hexadecimal number in a file of a PCI device; 0 = it cannot be read. */
static unsigned long pci_number(const char *dir, const char *device, const char *file)
{
    char path[512], line[32] = "";
    unsigned long value = 0;
    snprintf(path, sizeof path, "%s/%s/%s", dir, device, file);
    FILE *stream = fopen(path, "r");
    if (!stream)
        return 0;

    if (fgets(line, sizeof line, stream))
        value = strtoul(line, NULL, 16);
    fclose(stream);
    return value;
}

/* An installed driver that lists no device usually means that the user may not open the render
 * node. */
static bool render_node_is_closed(const char *dri_dir)
{
    bool closed = false;
    DIR *dir = opendir(dri_dir);
    if (!dir)
        return false;

    for (struct dirent *entry; (entry = readdir(dir)) != NULL && !closed;) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dri_dir, entry->d_name);
        closed = strncmp(entry->d_name, "renderD", 7) == 0 && access(path, R_OK | W_OK) != 0;
    }

    closedir(dir);
    return closed;
}

enum { MAKERS = sizeof makers / sizeof makers[0] };

/* Count the GPUs and accelerators of each maker on the PCI bus. */
static void count_gpus(const char *pci_dir, uint32_t gpus[MAKERS])
{
    DIR *dir = opendir(pci_dir);
    if (!dir)
        return;

    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        const unsigned long class = pci_number(pci_dir, entry->d_name, "class") >> 16;
        const unsigned long vendor = pci_number(pci_dir, entry->d_name, "vendor");
        for (size_t m = 0; m < MAKERS && (class == 0x03 || class == 0x12); m++)
            gpus[m] += vendor == makers[m].pci_vendor;
    }
    closedir(dir);
}

/* There is a GPU of this maker that OpenCL does not list. */
static void add_gpu(struct missing *out, const struct missing_found *found,
                    const struct maker *maker)
{
    const struct cox_platform_info *rusticl = find_platform(found, "rusticl");
    if (find_platform(found, maker->platform))
        add(out, "%s GPU found, but its installed OpenCL platform lists no device.", maker->name);
    else if (rusticl && rusticl->devices == 0 && maker->rusticl)
        add(out,
            "%s GPU found, and Mesa's OpenCL is installed: set RUSTICL_ENABLE=%s in the environment.",
            maker->name, maker->rusticl);
    else
        add(out, "%s GPU found, but no OpenCL platform lists it: install %s.", maker->name,
            maker->package);
}

static void find_gpus(struct missing *out, const struct missing_found *found, const char *pci_dir,
                      const char *dri_dir)
{
    uint32_t gpus[MAKERS] = {0};
    bool any = false;
    count_gpus(pci_dir, gpus);
    for (size_t m = 0; m < MAKERS; m++) {
        if (gpus[m] == 0 || listed(found, &makers[m]))
            continue;
        any = true;
        add_gpu(out, found, &makers[m]);
    }

    if (any && render_node_is_closed(dri_dir))
        add(out,
            "This user cannot open the GPU's render node in %s: add the user to the group render.",
            dri_dir);
}

void missing_find(struct missing *out, const struct missing_found *found, const char *pci_dir,
                  const char *dri_dir)
{
    bool cpu = false;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < found->device_count; i++)
        cpu = cpu || found->devices[i].type == COX_DEVICE_CPU;

    if (!cpu && found->platform_count > 0) /* without a platform the library prints it */
        add(out,
            "No OpenCL platform lists the CPU: install pocl-opencl-icd. If it is installed, make its "
            "cache folder writable (~/.cache/pocl, $XDG_CACHE_HOME or $POCL_CACHE_DIR).");
    find_gpus(out, found, pci_dir, dri_dir);
}

const char *missing_why_empty(const struct cox_platform_info *platform)
{
    const char *enabled = getenv("RUSTICL_ENABLE");
    if (has_word(platform->name, "rusticl") && (!enabled || !*enabled))
        return "enable its drivers with RUSTICL_ENABLE";

    if (has_word(platform->name, "clover"))
        return "superseded by rusticl";
    return NULL;
}
