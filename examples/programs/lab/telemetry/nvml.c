/* GPUs of NVIDIA, through the library of their driver (NVML API Reference). The library is
 * loaded at run time and needs no header: its reference documents these functions, and its ABI
 * is stable.
 * SPDX-License-Identifier: Apache-2.0 */
#include "add_source.h"
#include "discover.h"
#include "sysfs.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

enum { DEVICES_MAX = 8, SUCCESS = 0, CLOCK_SM = 1, TEMPERATURE_GPU = 0, NAME_BYTES = 96 };

enum { POWER, CLOCK, TEMPERATURE, LOAD, VALUES };

struct utilization {
    unsigned gpu, memory; /* per cent */
};

typedef struct nvmlDevice_st *device_handle;

struct nvml {
    void *library;
    int (*shutdown)(void); /* NULL = not initialised */
    int (*power)(device_handle, unsigned *milliwatts);
    int (*clock)(device_handle, int kind, unsigned *mhz);
    int (*temperature)(device_handle, int sensor, unsigned *degrees);
    int (*utilization)(device_handle, struct utilization *out);
    device_handle devices[DEVICES_MAX];
};

static double read_value(void *user, uint32_t device, int what)
{
    struct nvml *nvml = user;
    device_handle handle = nvml->devices[device];
    struct utilization utilization = {0};
    unsigned value = 0;
    double scale = 1;
    int result;

    switch (what) {
    case POWER:
        result = nvml->power(handle, &value);
        scale = 1e-3;
        break;
    case CLOCK:
        result = nvml->clock(handle, CLOCK_SM, &value);
        break;
    case TEMPERATURE:
        result = nvml->temperature(handle, TEMPERATURE_GPU, &value);
        break;
    default:
        result = nvml->utilization(handle, &utilization);
        value = utilization.gpu;
    }

    return result == SUCCESS ? value * scale : NAN;
}

static void add_device(struct lab_telemetry *telemetry, struct nvml *nvml, uint32_t device,
                       const char *name)
{
    /* Each call goes to the driver, so values that change slowly are read slowly. */
    static const struct {
        enum lab_telemetry_kind kind;
        enum lab__pace pace;
        const char *what, *origin;
    } values[VALUES] = {
        [POWER] = {LAB_POWER, LAB__QUICK, "power of ", "NVML: nvmlDeviceGetPowerUsage"},
        [CLOCK] = {LAB_CLOCK, LAB__QUICK, "clock of ", "NVML: nvmlDeviceGetClockInfo"},
        [TEMPERATURE] = {LAB_TEMPERATURE, LAB__SLOW, "temperature of ",
                         "NVML: nvmlDeviceGetTemperature"},
        [LOAD] = {LAB_LOAD, LAB__SLOW, "load of ", "NVML: nvmlDeviceGetUtilizationRates"}};
    char part[52];

    snprintf(part, sizeof part, "%.36s #%u", name, device);
    for (int i = 0; i < VALUES; i++) {
        if (isnan(read_value(nvml, device, i)))
            continue;

        struct lab__source *source = lab__source_add(telemetry, values[i].kind, LAB__MEAN,
                                                     values[i].pace, values[i].what, part);
        lab__source_reading(telemetry, source,
                            &(const struct lab__reading){.form = LAB__CALL,
                                                         .file = -1,
                                                         .call = read_value,
                                                         .user = nvml,
                                                         .device = device,
                                                         .what = i},
                            values[i].origin);
        lab__source_end(telemetry, source);
    }
}

/* POSIX allows a symbol's address to be used as a function. */
static bool find_function(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

/* Initialise the library and get the devices. Returns their number; 0 after a note. */
static unsigned start(struct lab_telemetry *telemetry, struct nvml *nvml)
{
    int (*init)(void), (*get_count)(unsigned *), (*get_handle)(unsigned, device_handle *);
    int (*shutdown)(void);
    unsigned count = 0;

    if (!find_function(nvml->library, "nvmlInit_v2", &init) ||
        !find_function(nvml->library, "nvmlDeviceGetCount_v2", &get_count) ||
        !find_function(nvml->library, "nvmlDeviceGetHandleByIndex_v2", &get_handle) ||
        !find_function(nvml->library, "nvmlShutdown", &shutdown) ||
        !find_function(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power) ||
        !find_function(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock) ||
        !find_function(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature) ||
        !find_function(nvml->library, "nvmlDeviceGetUtilizationRates", &nvml->utilization)) {
        lab__note(telemetry, "NVIDIA GPUs: the driver's library is too old: it lacks functions");
        return 0;
    }

    int result = init();
    if (result != SUCCESS) {
        lab__note(telemetry, "NVIDIA GPUs: nvmlInit returned %d: the driver is not running",
                  result);
        return 0;
    }

    nvml->shutdown = shutdown;
    if (get_count(&count) != SUCCESS)
        return 0;
    if (count > DEVICES_MAX)
        count = DEVICES_MAX;
    for (unsigned i = 0; i < count; i++)
        if (get_handle(i, &nvml->devices[i]) != SUCCESS)
            return i;
    return count;
}

static void stop(void *user)
{
    struct nvml *nvml = user;

    if (nvml->shutdown)
        nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

void lab__find_nvml(struct lab_telemetry *telemetry, const char *root, const char *library)
{
    char text[8], name[NAME_BYTES];
    int (*get_name)(device_handle, char *, unsigned);
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return;

    nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        if (sysfs_text(root, text, sizeof text, "module/nvidia/refcnt"))
            lab__note(telemetry,
                      "NVIDIA GPUs: the driver's library %s is missing; install the "
                      "package libnvidia-compute or nvidia-utils",
                      library);
        free(nvml);
        return;
    }

    unsigned count = start(telemetry, nvml);
    for (unsigned i = 0; i < count; i++) {
        if (!find_function(nvml->library, "nvmlDeviceGetName", &get_name) ||
            get_name(nvml->devices[i], name, sizeof name) != SUCCESS)
            snprintf(name, sizeof name, "NVIDIA");
        add_device(telemetry, nvml, i, name);
    }

    if (count)
        lab__telemetry_on_close(telemetry, stop, nvml);
    else
        stop(nvml);
}
