/* A fake NVML library with the functions that telemetry calls, and two GPUs. One answers everything, the other has
 * no power sensor. The load rises by one per cent with each query.
 * SPDX-License-Identifier: Apache-2.0 */
#define NVML_FUNCTION __attribute__((visibility("default")))

#include <stdio.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, CLOCK_SM = 1, TEMPERATURE_GPU = 0 };

struct utilization {
    unsigned gpu, memory;
};

static int devices[2];
static unsigned load;

NVML_FUNCTION int nvmlInit_v2(void)
{
    load = 10;
    return SUCCESS;
}

NVML_FUNCTION int nvmlShutdown(void)
{
    return SUCCESS;
}

NVML_FUNCTION int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return SUCCESS;
}

NVML_FUNCTION int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **device)
{
    *device = &devices[index];
    return SUCCESS;
}

NVML_FUNCTION int nvmlDeviceGetName(const int *device, char *name, unsigned bytes)
{
    snprintf(name, bytes, "NVIDIA GeForce RTX 40%s", device == devices ? "60" : "50");
    return SUCCESS;
}

NVML_FUNCTION int nvmlDeviceGetPowerUsage(const int *device, unsigned *milliwatts)
{
    *milliwatts = 61500;
    return device == devices ? SUCCESS : NOT_SUPPORTED;
}

NVML_FUNCTION int nvmlDeviceGetClockInfo(const int *device, int kind, unsigned *mhz)
{
    (void)device;
    *mhz = kind == CLOCK_SM ? 2370 : 8001;
    return SUCCESS;
}

NVML_FUNCTION int nvmlDeviceGetTemperature(const int *device, int sensor, unsigned *degrees)
{
    (void)device;
    *degrees = 66;
    return sensor == TEMPERATURE_GPU ? SUCCESS : NOT_SUPPORTED;
}

NVML_FUNCTION int nvmlDeviceGetUtilizationRates(const int *device, struct utilization *out)
{
    (void)device;
    *out = (struct utilization){++load, 5};
    return SUCCESS;
}
