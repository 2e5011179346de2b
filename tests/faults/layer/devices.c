/* Devices: discovery, identity, and vanishing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdio.h>
#include <string.h>

struct device devices[DEVICES_MAX];
uint32_t device_count;
static uint32_t root_count;

/* Under the lock: the index of the device in `devices`, which is added if it is new. */
static uint32_t device_entry(uint32_t number, int sub, cl_device_type type, const char *name)
{
    for (uint32_t d = 0; d < device_count; d++)
        if (devices[d].number == number && devices[d].sub == sub)
            return d;
    if (device_count == DEVICES_MAX)
        return DEVICES_MAX - 1;
    struct device *device = &devices[device_count];
    *device = (struct device){.number = number, .sub = sub, .type = type};
    snprintf(device->name, sizeof device->name, "%s", name);
    device->gateless = pocl_has_no_threads(name) || !strncmp(name, "Oclgrind", 8);
    plans_learn(device_count);
    return device_count++;
}

static void describe(cl_device_id id, cl_device_type *type, char *name, size_t bytes)
{
    *type = 0;
    name[0] = 0;
    next.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof *type, type, NULL);
    if (next.clGetDeviceInfo(id, CL_DEVICE_NAME, bytes, name, NULL) != CL_SUCCESS)
        name[0] = 0;
}

static void add_root(cl_device_id id)
{
    cl_device_type type;
    char name[256];
    describe(id, &type, name, sizeof name);
    pthread_mutex_lock(&lock);
    if (!find_object(id, TYPE_DEVICE)) {
        uint32_t d = device_entry(root_count++, -1, type, name);
        enter_object(id, TYPE_DEVICE, bit(d), NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* Add all devices of all platforms, in the loader's order. */
static void discover(void)
{
    cl_platform_id platforms[32];
    cl_uint count = 0;
    if (next.clGetPlatformIDs(32, platforms, &count) != CL_SUCCESS)
        return;
    for (cl_uint p = 0; p < count && p < 32; p++) {
        cl_device_id ids[DEVICES_MAX];
        cl_uint found = 0;
        if (next.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &found) == CL_SUCCESS)
            for (cl_uint i = 0; i < found && i < DEVICES_MAX; i++)
                add_root(ids[i]);
    }
}

uint64_t set_of(const cl_device_id *ids, cl_uint count)
{
    uint64_t set = 0;
    for (cl_uint i = 0; ids && i < count; i++) {
        for (int attempt = 0; attempt < 3; attempt++) {
            pthread_mutex_lock(&lock);
            struct object *object = find_object(ids[i], TYPE_DEVICE);
            set |= object ? object->devices : 0;
            pthread_mutex_unlock(&lock);
            if (object || !ids[i])
                break;
            if (attempt == 0)
                discover();
            else
                add_root(ids[i]);
        }
    }
    return set;
}

/* --- Vanishing ------------------------------------------------------------------------------------------- */

/* Under the lock: whether the device is gone now. */
static bool is_gone(struct device *device)
{
    if (device->gone && device->back_ns != FAULT_FOREVER && now_ns() >= device->back_ns)
        device->gone = false;
    return device->gone;
}

void vanish(uint64_t set, const struct fault_line *line)
{
    uint64_t now = now_ns();
    for (uint32_t d = 0; d < device_count; d++)
        if (set & bit(d)) {
            devices[d].gone = true;
            devices[d].back_ns = line->time_ns == FAULT_FOREVER ? FAULT_FOREVER : now + line->time_ns;
            devices[d].code = line->code;
        }
    doom_objects(set, line->code);
    doom_jobs(set, line->code);
    doom_callbacks(set, line->code);
}

cl_int gone_code(int call, uint64_t set, const struct context *context)
{
    const uint32_t works = FAULT_COMMAND | FAULT_CREATE | FAULT_BUILD | FAULT_FLUSH;
    cl_int code = 0;
    if (!set ||
        (!(fault_call_classes(call) & works) && call != FAULT_CALL_clSetKernelArg && call != FAULT_CALL_clFinish))
        return 0; /* releases and event queries still work */
    for (uint32_t d = 0; d < device_count; d++) {
        if (!(set & bit(d)))
            continue;
        if (!is_gone(&devices[d]) && !(context && context->dead & bit(d)))
            return 0;
        code = devices[d].code;
    }
    if (code)
        return code;
    return call == FAULT_CALL_clCreateContext || call == FAULT_CALL_clCreateCommandQueue ||
                   call == FAULT_CALL_clCreateCommandQueueWithProperties
               ? CL_DEVICE_NOT_AVAILABLE
               : CL_OUT_OF_RESOURCES;
}

/* --- Calls ----------------------------------------------------------------------------------------------- */

cl_int CL_API_CALL fault_clGetPlatformIDs(cl_uint n, cl_platform_id *platforms, cl_uint *count)
{
    cl_int code = arrive_at(FAULT_CALL_clGetPlatformIDs, NULL);
    return code ? code : next.clGetPlatformIDs(n, platforms, count);
}

cl_int CL_API_CALL fault_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *ids,
                                        cl_uint *count)
{
    cl_int code = arrive_at(FAULT_CALL_clGetDeviceIDs, NULL);
    return code ? code : next.clGetDeviceIDs(platform, type, n, ids, count);
}

cl_int CL_API_CALL fault_clGetDeviceInfo(cl_device_id id, cl_device_info info, size_t bytes, void *value, size_t *got)
{
    const uint64_t set = set_of(&id, 1);
    cl_int code = arrive_on(FAULT_CALL_clGetDeviceInfo, set, NULL);
    if (code)
        return code;
    code = next.clGetDeviceInfo(id, info, bytes, value, got);
    if (code == CL_SUCCESS && info == CL_DEVICE_AVAILABLE && value) {
        pthread_mutex_lock(&lock);
        for (uint32_t d = 0; d < device_count; d++)
            if (set & bit(d) && is_gone(&devices[d]))
                *(cl_bool *)value = CL_FALSE;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

cl_int CL_API_CALL fault_clCreateSubDevices(cl_device_id parent, const cl_device_partition_property *how, cl_uint room,
                                            cl_device_id *out, cl_uint *count)
{
    cl_uint got = 0;
    const uint64_t set = set_of(&parent, 1);
    cl_int code = arrive_on(FAULT_CALL_clCreateSubDevices, set, NULL);
    if (code)
        return code;
    code = next.clCreateSubDevices(parent, how, room, out, &got);
    if (code)
        return code;
    for (cl_uint i = 0; out && i < got && i < room; i++) {
        cl_device_type type;
        char name[256];
        describe(out[i], &type, name, sizeof name);
        pthread_mutex_lock(&lock);
        uint64_t own = 0;
        for (uint32_t d = 0; d < device_count && !own; d++)
            if (set & bit(d)) /* a sub-device of a sub-device counts as that sub-device */
                own = bit(devices[d].sub >= 0 ? d : device_entry(devices[d].number, (int)i, type, name));
        enter_object(out[i], TYPE_DEVICE, own, NULL);
        pthread_mutex_unlock(&lock);
    }
    if (count)
        *count = got;
    return code;
}
