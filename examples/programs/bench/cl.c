/* SPDX-License-Identifier: Apache-2.0 */
#include "cl.h"
#include "message.h"

#include <string.h>

enum { PLATFORMS_MAX = 16, DEVICES_MAX = 64 };

bool bench_cl_failed(cl_int code, const char *call)
{
    if (code == CL_SUCCESS)
        return false;
    bench_fail("hand-written OpenCL: %s failed with error %d", call, code);
    return true;
}

/* Parts of devices that the library works on: a sub-device, or all cores except the reserved one.
 * They exist until the program ends: PoCL 3.1 crashes if a sub-device is released while one of its
 * threads still cleans up after the last command, and no call waits for that. */
static struct part {
    cl_device_id parent, id;
    cl_uint units, number;
} parts[DEVICES_MAX];
static uint32_t part_count;

static bool find_part(const struct cox_device_info *info, cl_device_id parent, cl_device_id *device)
{
    cl_uint number = 1;

    if (info->subdevice)
        number = info->subdevice;

    for (uint32_t p = 0; p < part_count; p++)
        if (parts[p].parent == parent && parts[p].units == info->compute_units &&
            parts[p].number == number) {
            *device = parts[p].id;
            return true;
        }

    cl_device_id ids[DEVICES_MAX];
    cl_device_partition_property properties[DEVICES_MAX + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    cl_uint made = number;
    if (number > DEVICES_MAX || part_count + number > DEVICES_MAX)
        return bench_fail("hand-written OpenCL: too many sub-devices: %u", number);

    for (cl_uint i = 0; i < number; i++)
        properties[1 + i] = (cl_device_partition_property)info->compute_units;
    if (bench_cl_failed(clCreateSubDevices(parent, properties, number, ids, &made),
                        "clCreateSubDevices"))
        return false;

    for (cl_uint i = 0; i < made; i++)
        parts[part_count++] = (struct part){
            .parent = parent, .id = ids[i], .units = info->compute_units, .number = i + 1};

    *device = ids[made - 1];

    return true;
}

bool bench_cl_find_device(const struct cox_device_info *info, cl_device_id *device)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_device_id devices[DEVICES_MAX];
    cl_uint count = 0;

    if (bench_cl_failed(clGetPlatformIDs(PLATFORMS_MAX, platforms, &count), "clGetPlatformIDs"))
        return false;
    if (info->platform_index >= count)
        return bench_fail("hand-written OpenCL: platform %u was not found", info->platform_index);

    cl_platform_id platform = platforms[info->platform_index];
    if (bench_cl_failed(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count),
                        "clGetDeviceIDs"))
        return false;
    if (info->device_index >= count)
        return bench_fail("hand-written OpenCL: device %u was not found", info->device_index);
    *device = devices[info->device_index];
    char name[128] = "";
    clGetDeviceInfo(*device, CL_DEVICE_NAME, sizeof name, name, NULL);
    name[sizeof name - 1] = '\0';

    /* A sub-device's name has a number after it. */
    if (strncmp(name, info->name, strlen(name)) != 0)
        return bench_fail("hand-written OpenCL: device %u.%u is %s, not %s", info->platform_index,
                          info->device_index, name, info->name);

    return info->compute_units == info->parent_units || find_part(info, *device, device);
}

double bench_cl_event_ns(cl_event event)
{
    cl_ulong start = 0, end = 0;

    if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) ||
        end <= start)
        return 0;

    return (double)(end - start);
}
