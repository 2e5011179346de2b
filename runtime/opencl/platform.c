/* Platforms and devices: found, described, selected, partitioned into sub-devices.
 *
 * Runs once, on the application thread that creates the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif
#ifndef CL_DEVICE_PCI_BUS_INFO_KHR
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410F
#endif
#define PCI_BUS_ID_NV 0x4008
#define PCI_SLOT_ID_NV 0x4009
#define PCI_DOMAIN_ID_NV 0x400A

enum { ROOTS_MAX = COX__CL_LEFT_OUT_MAX };

/* A device as a platform lists it. */
struct root {
    cl_platform_id platform;
    cl_device_id id;
    struct cox_device_info info;
    char platform_version[128];
    char place[64];       /* PCI address or UUID; "" = unknown */
    bool duplicate;       /* an earlier root is the same silicon (is_duplicate) */
    bool costly;          /* using it would deny fma to all devices (find_costly) */
    bool used;            /* an entry of the selection has taken it */
    const char *left_out; /* why `all` does not take it; NULL = it does */
    char failed[100];     /* the query that failed, for left_out */
};

struct discovery {
    struct cox__cl_backend *backend;
    const struct cox__cl_options *options;
    uint32_t root_count;
    struct root roots[ROOTS_MAX];
    char failed[200]; /* the last platform that could not list its devices, and why */
};

/* Copy a driver's text without the blanks around it. */
static void copy_trimmed(char *out, size_t bytes, const char *text)
{
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ')
        length--;
    snprintf(out, bytes, "%.*s", (int)cox__min_u64(length, bytes - 1), text);
}

static void platform_text(cl_platform_id platform, cl_platform_info what, char *out, size_t bytes)
{
    char text[1024] = "";
    if (clGetPlatformInfo(platform, what, sizeof text, text, NULL))
        text[0] = 0;
    copy_trimmed(out, bytes, text);
}

static void device_text(cl_device_id device, cl_device_info what, char *out, size_t bytes)
{
    char text[1024] = "";
    if (clGetDeviceInfo(device, what, sizeof text, text, NULL))
        text[0] = 0;
    copy_trimmed(out, bytes, text);
}

/* 0 if the device does not answer. */
static uint32_t device_uint(cl_device_id device, cl_device_info what)
{
    cl_uint value = 0;
    if (clGetDeviceInfo(device, what, sizeof value, &value, NULL))
        return 0;
    return value;
}

/* A property that every device has. A device that does not answer is left out. */
static void ask(struct root *root, cl_device_info what, void *value, size_t bytes)
{
    const cl_int code = clGetDeviceInfo(root->id, what, bytes, value, NULL);
    if (!code)
        return;

    snprintf(root->failed, sizeof root->failed, "clGetDeviceInfo failed: %s (%d)",
             cox__cl_error_name(code), code);
    root->left_out = root->failed;
}

/* Where the device sits. Only drivers that list the extension are asked. */
static void find_place(struct root *root)
{
    char extensions[8192] = "";
    if (clGetDeviceInfo(root->id, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL))
        extensions[0] = 0;

    struct {
        cl_uint domain, bus, device, function;
    } pci;
    cl_uchar uuid[16];

    if (strstr(extensions, "cl_khr_pci_bus_info") &&
        !clGetDeviceInfo(root->id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof pci, &pci, NULL)) {
        snprintf(root->place, sizeof root->place, "pci %04x:%02x:%02x.%x", pci.domain, pci.bus,
                 pci.device, pci.function);
    } else if (strstr(extensions, "cl_nv_device_attribute_query")) {
        uint32_t slot = device_uint(root->id, PCI_SLOT_ID_NV);
        snprintf(root->place, sizeof root->place, "pci %04x:%02x:%02x.%x",
                 device_uint(root->id, PCI_DOMAIN_ID_NV), device_uint(root->id, PCI_BUS_ID_NV),
                 slot >> 3, slot & 7);
    } else if (strstr(extensions, "cl_khr_device_uuid") &&
               !clGetDeviceInfo(root->id, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL)) {
        char *to = root->place + snprintf(root->place, sizeof root->place, "uuid ");
        for (int i = 0; i < 16; i++)
            to += snprintf(to, 3, "%02x", uuid[i]);
    }
}

/* A simulator may claim several types at once: the first that matches counts. */
static enum cox_device_type device_type(cl_device_type type)
{
    if (type & CL_DEVICE_TYPE_CPU)
        return COX_DEVICE_CPU;
    if (type & CL_DEVICE_TYPE_GPU)
        return COX_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_ACCELERATOR)
        return COX_DEVICE_ACCELERATOR;
    return COX_DEVICE_OTHER;
}

static void describe(struct root *root, const struct cox_platform_info *platform,
                     uint32_t platform_index, uint32_t device_index)
{
    struct cox_device_info *info = &root->info;
    char name[1024] = "unnamed device";
    cl_device_type type = 0;
    cl_uint units = 0, align_bits = 0;
    cl_ulong global_bytes = 0, max_alloc_bytes = 0;
    size_t group = 0;

    ask(root, CL_DEVICE_NAME, name, sizeof name);
    ask(root, CL_DEVICE_TYPE, &type, sizeof type);
    ask(root, CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof units);
    ask(root, CL_DEVICE_MAX_WORK_GROUP_SIZE, &group, sizeof group);
    ask(root, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits, sizeof align_bits);
    ask(root, CL_DEVICE_GLOBAL_MEM_SIZE, &global_bytes, sizeof global_bytes);
    ask(root, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &max_alloc_bytes, sizeof max_alloc_bytes);

    copy_trimmed(info->name, sizeof info->name, name);
    device_text(root->id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    snprintf(info->platform, sizeof info->platform, "%s", platform->name);
    snprintf(root->platform_version, sizeof root->platform_version, "%s", platform->version);

    info->type = device_type(type);
    info->platform_index = platform_index;
    info->device_index = device_index;

    info->compute_units = info->parent_units = units;
    info->max_work_group = (uint32_t)group;
    info->vector_width_float = device_uint(root->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    info->base_align_bytes = align_bits / 8;
    info->global_bytes = global_bytes;
    info->max_alloc_bytes = max_alloc_bytes;

    info->unified = info->type == COX_DEVICE_CPU ||
                    device_uint(root->id, CL_DEVICE_HOST_UNIFIED_MEMORY);
    info->fma = cox__cl_arithmetic_fma_of(root->id, info);

    find_place(root);
    snprintf(info->id, sizeof info->id, "%.60s/%.60s/%.60s", info->platform, info->name,
             root->place[0] ? root->place : "-");
}

/* The same silicon twice: one PCI address or UUID under two drivers, one driver registered twice,
 * or a second platform for the one CPU. */
static bool is_duplicate(const struct discovery *found, const struct root *root)
{
    for (uint32_t i = 0; i < found->root_count; i++) {
        const struct root *other = &found->roots[i];
        if (other->platform == root->platform)
            continue;

        if (root->place[0] && strcmp(root->place, other->place) == 0)
            return true;
        if (root->info.type == COX_DEVICE_CPU && other->info.type == COX_DEVICE_CPU)
            return true;
        if (strcmp(root->platform_version, other->platform_version) == 0 &&
            strcmp(root->info.id, other->info.id) == 0 &&
            root->info.device_index == other->info.device_index)
            return true;
    }
    return false;
}

/* ---- devices that are left out ---- */

static void log_left_out(const struct discovery *found, const struct root *root,
                         enum cox_log_level level)
{
    cox__log(found->backend->log, level, "%s (%s) is left out: %s", root->info.name,
             root->info.platform, root->left_out);
}

static void note_left_out(struct cox__cl_backend *backend, const struct root *root)
{
    if (backend->left_out_count == COX__CL_LEFT_OUT_MAX)
        return;

    struct cox_left_out *to = &backend->left_out[backend->left_out_count++];
    to->platform_index = root->info.platform_index;
    to->device_index = root->info.device_index;
    memcpy(to->name, root->info.name, sizeof to->name);
    memcpy(to->platform, root->info.platform, sizeof to->platform);
    snprintf(to->reason, sizeof to->reason, "%s", root->left_out);
}

/* Whether a program can be built for a device. If not, root->left_out says why. */
static bool is_usable(struct root *root)
{
    cl_bool available = CL_TRUE, compiler = CL_TRUE;
    ask(root, CL_DEVICE_AVAILABLE, &available, sizeof available);
    ask(root, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler);

    if (!available)
        root->left_out = "it is not available";
    else if (!compiler)
        root->left_out = "it has no compiler for OpenCL C";
    return !root->left_out;
}

/* ---- the devices of a platform ---- */

static void list_devices(struct discovery *found, cl_platform_id platform, uint32_t platform_index)
{
    struct cox_platform_info *info = &found->backend->platforms[platform_index];
    cl_device_id ids[ROOTS_MAX];
    cl_uint count = 0;

    platform_text(platform, CL_PLATFORM_NAME, info->name, sizeof info->name);
    platform_text(platform, CL_PLATFORM_VENDOR, info->vendor, sizeof info->vendor);
    platform_text(platform, CL_PLATFORM_VERSION, info->version, sizeof info->version);

    const cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, ROOTS_MAX, ids, &count);
    if (code && code != CL_DEVICE_NOT_FOUND) {
        snprintf(found->failed, sizeof found->failed, "%.100s: clGetDeviceIDs failed: %s (%d)",
                 info->name, cox__cl_error_name(code), code);
        cox__log(found->backend->log, COX_LOG_WARN, "%s", found->failed);
    }
    if (code)
        return;

    info->devices = count;
    for (cl_uint i = 0; i < count && i < ROOTS_MAX && found->root_count < ROOTS_MAX; i++) {
        struct root *root = &found->roots[found->root_count];

        root->platform = platform;
        root->id = ids[i];
        describe(root, info, platform_index, i);

        if (!is_usable(root)) {
            log_left_out(found, root, COX_LOG_WARN);
            note_left_out(found->backend, root);
            memset(root, 0, sizeof *root);
            continue;
        }

        root->duplicate = is_duplicate(found, root);
        if (root->duplicate) {
            root->left_out =
                "another driver offers the same device; select it by its number to use it";
            log_left_out(found, root, COX_LOG_INFO);
        }

        found->root_count++;
    }
}

/* Mesa's drivers that compute on the processor. */
static bool is_software(const struct root *root)
{
    return strncmp(root->info.name, "llvmpipe", 8) == 0 ||
           strncmp(root->info.name, "softpipe", 8) == 0;
}

/* Mark software GPUs without fma if the CPU has fma. Such a device computes on the CPU, only
 * slower, and with it all kernels would have to do without fma. */
static void find_costly(struct discovery *found)
{
    bool processor = false;
    for (uint32_t r = 0; r < found->root_count; r++)
        processor |= found->roots[r].info.type == COX_DEVICE_CPU &&
                     found->roots[r].info.fma == COX_FMA_FAST;

    for (uint32_t r = 0; r < found->root_count; r++) {
        struct root *root = &found->roots[r];
        root->costly = processor && is_software(root) && root->info.fma != COX_FMA_FAST;
        if (!root->costly)
            continue;

        root->left_out = "it is a software GPU without fma, and the CPU has fma; select it by its "
                         "name to use it";
        log_left_out(found, root, COX_LOG_INFO);
    }
}

/* There is no device at all: say why the first one cannot be used. */
static void log_no_device(const struct discovery *found, cl_uint platforms)
{
    const struct cox__cl_backend *backend = found->backend;
    const char *be = platforms == 1 ? " is" : "s are";
    const struct cox_left_out *first = &backend->left_out[0];

    if (backend->left_out_count)
        cox__log(backend->log, COX_LOG_ERROR,
                 "%u OpenCL platform%s installed, but no device that can be used; %s: %s",
                 platforms, be, first->name, first->reason);
    else
        cox__log(backend->log, COX_LOG_ERROR, "%u OpenCL platform%s installed, but no device%s%s",
                 platforms, be, found->failed[0] ? "; " : "", found->failed);
}

static cox_status list_platforms(struct discovery *found)
{
    cl_platform_id ids[COX__CL_PLATFORMS_MAX];
    cl_uint count = 0;
    cl_int code = clGetPlatformIDs(COX__CL_PLATFORMS_MAX, ids, &count);

    if (code && code != CL_PLATFORM_NOT_FOUND_KHR) {
        cox__log(found->backend->log, COX_LOG_ERROR, "clGetPlatformIDs failed: %s (%d)",
                 cox__cl_error_name(code), code);
        return COX_E_NO_PLATFORM;
    }
    if (code || !count) {
        cox__log(found->backend->log, COX_LOG_ERROR,
                 "no OpenCL platform is installed (for the CPU: Debian's package pocl-opencl-icd)");
        return COX_E_NO_PLATFORM;
    }

    found->backend->platform_count = cox__min_u64(count, COX__CL_PLATFORMS_MAX);
    for (uint32_t p = 0; p < found->backend->platform_count; p++)
        list_devices(found, ids[p], p);

    find_costly(found);
    if (!found->root_count) {
        log_no_device(found, count);
        return COX_E_NO_DEVICE;
    }

    return COX_OK;
}

/* ---- selection ---- */

static cox_status add_device(struct discovery *found, const struct root *root, cl_device_id id,
                             uint32_t subdevice, uint32_t units, enum cox_memory_mode mode)
{
    struct cox__cl_backend *backend = found->backend;

    if (backend->device_count == COX_DEVICES_MAX) {
        cox__log(backend->log, COX_LOG_ERROR, "too many devices are selected; at most %d",
                 COX_DEVICES_MAX);
        return COX_E_INVALID;
    }

    struct cox__cl_device *device = &backend->devices[backend->device_count++];
    device->info = root->info;
    device->info.compute_units = units;
    device->info.subdevice = subdevice;
    device->info.mode = mode;
    device->platform = root->platform;
    device->id = id;
    device->is_subdevice = id != root->id;
    memcpy(device->platform_version, root->platform_version, sizeof device->platform_version);

    if (subdevice) {
        size_t used = strlen(device->info.id);
        snprintf(device->info.id + used, sizeof device->info.id - used, "#%u", subdevice);
        used = strlen(device->info.name);
        snprintf(device->info.name + used, sizeof device->info.name - used, " #%u", subdevice);
    }

    return COX_OK;
}

static cox_status partition(struct discovery *found, const struct root *root, uint32_t count,
                            uint32_t units, cl_device_id *ids)
{
    cl_device_partition_property properties[COX_DEVICES_MAX + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    cl_uint made = 0;

    for (uint32_t i = 0; i < count; i++)
        properties[1 + i] = units; /* closed by CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0 */

    cl_int code = clCreateSubDevices(root->id, properties, count, ids, &made);
    if (code == CL_SUCCESS && made == count)
        return COX_OK;

    if (code == CL_SUCCESS)
        code = CL_DEVICE_PARTITION_FAILED;
    return cox__cl_error_check(found->backend->log, code, "clCreateSubDevices", root->info.name);
}

static cox_status add_subdevices(struct discovery *found, const struct root *root,
                                 const struct cox__select_entry *entry)
{
    cl_device_id ids[COX_DEVICES_MAX];

    if (entry->subdevices > COX_DEVICES_MAX ||
        (uint64_t)entry->subdevices * entry->units > root->info.compute_units) {
        cox__log(found->backend->log, COX_LOG_ERROR, "'%s': %s has only %u compute units",
                 entry->written, root->info.name, root->info.compute_units);
        return COX_E_INVALID;
    }

    cox_status status = partition(found, root, entry->subdevices, entry->units, ids);
    if (status)
        return status;

    for (uint32_t i = 0; i < entry->subdevices; i++) {
        if (status == COX_OK)
            status = add_device(found, root, ids[i], i + 1, entry->units, entry->mode);
        if (status)
            clReleaseDevice(ids[i]);
    }

    return status;
}

/* Add a whole device. A CPU with a reserved core is used through a sub-device without that core. */
static cox_status add_whole(struct discovery *found, const struct root *root,
                            const struct cox__select_entry *entry)
{
    struct cox__topology *topology = found->options->topology;
    uint32_t cpus = cox__topology_worker_cpus(topology);
    cl_device_id id;

    if (root->info.type == COX_DEVICE_CPU && cox__topology_reserved(topology) && cpus &&
        cpus < root->info.compute_units && partition(found, root, 1, cpus, &id) == COX_OK)
        return add_device(found, root, id, 0, cpus, entry->mode);
    return add_device(found, root, root->id, 0, root->info.compute_units, entry->mode);
}

static bool entry_takes(const struct cox__select_entry *entry, const struct root *root)
{
    bool generic = entry->kind == COX__SELECT_ALL || entry->kind == COX__SELECT_TYPE;
    return !root->used && !(generic && root->duplicate) &&
           !(entry->kind == COX__SELECT_ALL && root->costly) &&
           cox__cl_select_match(entry, &root->info);
}

/* First pass of the selection: find out whether it holds an asynchronous device and a CPU. Both
 * decide on the reservation of a core. */
static cox_status survey(struct discovery *found, const struct cox__selection *selection,
                         bool *async, bool *cpu)
{
    *async = *cpu = false;

    for (uint32_t e = 0; e < selection->count; e++) {
        const struct cox__select_entry *entry = &selection->entries[e];
        bool any = false;

        for (uint32_t r = 0; r < found->root_count; r++) {
            const struct root *root = &found->roots[r];
            any |= cox__cl_select_match(entry, &root->info);
            if (!entry_takes(entry, root))
                continue;

            *cpu |= root->info.type == COX_DEVICE_CPU;
            *async |= root->info.type != COX_DEVICE_CPU || entry->mode == COX_MODE_STAGED;
        }

        if (!any) {
            cox__log(found->backend->log, COX_LOG_ERROR, "no device matches '%s'", entry->written);
            for (uint32_t r = 0; r < found->root_count; r++)
                cox__log(found->backend->log, COX_LOG_ERROR, "available: %u.%u: %s (%s)",
                         found->roots[r].info.platform_index, found->roots[r].info.device_index,
                         found->roots[r].info.name,
                         cox_device_type_name(found->roots[r].info.type));
            return COX_E_NOT_FOUND;
        }
    }

    return COX_OK;
}

static cox_status take(struct discovery *found, const struct cox__selection *selection)
{
    for (uint32_t e = 0; e < selection->count; e++)
        for (uint32_t r = 0; r < found->root_count; r++) {
            const struct cox__select_entry *entry = &selection->entries[e];
            struct root *root = &found->roots[r];

            if (!entry_takes(entry, root))
                continue;

            root->used = true;

            cox_status status;
            if (entry->subdevices)
                status = add_subdevices(found, root, entry);
            else
                status = add_whole(found, root, entry);
            if (status)
                return status;
        }

    return found->backend->device_count ? COX_OK : COX_E_NO_DEVICE;
}

cox_status cox__cl_platforms_discover(struct cox__cl_backend *backend,
                                      const struct cox__cl_options *options)
{
    struct cox__selection selection;
    char why[256];
    cox_status status = cox__cl_select_parse(options->devices, &selection, why, sizeof why);

    if (status) {
        cox__log(backend->log, COX_LOG_ERROR, "device selection: %s", why);
        return status;
    }

    struct discovery *found = calloc(1, sizeof *found);
    if (!found)
        return COX_E_NOMEM;

    found->backend = backend;
    found->options = options;
    bool async, cpu;

    cox__topology_enter(options->topology);
    status = list_platforms(found);
    cox__topology_leave(options->topology);

    if (status == COX_OK)
        status = survey(found, &selection, &async, &cpu);
    if (status == COX_OK) {
        cox__topology_decide(options->topology, async, cpu);
        status = take(found, &selection);
    }

    for (uint32_t r = 0; r < found->root_count; r++)
        if (found->roots[r].left_out && !found->roots[r].used)
            note_left_out(backend, &found->roots[r]);

    free(found);
    return status;
}
