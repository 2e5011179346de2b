/* NVIDIA's graphics processors, by the library that comes with their driver (NVML API Reference). It is opened when the
 * program runs and needs no header: the functions below are what its reference documents, and its ABI is stable.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "sysfs.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

enum { DEVICES_MAX = 8, SUCCESS = 0, CLOCK_SM = 1, TEMPERATURE_GPU = 0, NAME_BYTES = 96 };

enum { POWER, CLOCK, TEMPERATURE, LOAD };

struct utilization {
    unsigned gpu, memory; /* per cent */
};

typedef struct nvmlDevice_st *device_handle;

struct lab__nvml {
    void *library;
    int (*shutdown)(void);
    int (*power)(device_handle, unsigned *milliwatts);
    int (*clock)(device_handle, int kind, unsigned *mhz);
    int (*temperature)(device_handle, int sensor, unsigned *degrees);
    int (*utilization)(device_handle, struct utilization *out);
    device_handle devices[DEVICES_MAX];
};

static double read_value(void *user, uint32_t device, int what)
{
    struct lab__nvml *nvml = user;
    struct utilization utilization;
    unsigned value;
    int result;
    switch (what) {
    case POWER:
        result = nvml->power(nvml->devices[device], &value);
        return result == SUCCESS ? value / 1e3 : NAN;
    case CLOCK:
        result = nvml->clock(nvml->devices[device], CLOCK_SM, &value);
        return result == SUCCESS ? value : NAN;
    case TEMPERATURE:
        result = nvml->temperature(nvml->devices[device], TEMPERATURE_GPU, &value);
        return result == SUCCESS ? value : NAN;
    default:
        result = nvml->utilization(nvml->devices[device], &utilization);
        return result == SUCCESS ? utilization.gpu : NAN;
    }
}

static void add_device(struct lab_telemetry *telemetry, struct lab__nvml *nvml, uint32_t device,
                       const char *name)
{
    static const struct {
        enum lab_telemetry_kind kind;
        enum lab__pace pace; /* each call goes to the driver: those of slow values are spared */
        const char *what, *origin;
    } values[] = {
        [POWER] = {LAB_POWER, LAB__QUICK, "power of ", "NVML: nvmlDeviceGetPowerUsage"},
        [CLOCK] = {LAB_CLOCK, LAB__QUICK, "clock of ", "NVML: nvmlDeviceGetClockInfo"},
        [TEMPERATURE] = {LAB_TEMPERATURE, LAB__SLOW, "temperature of ",
                         "NVML: nvmlDeviceGetTemperature"},
        [LOAD] = {LAB_LOAD, LAB__SLOW, "load of ", "NVML: nvmlDeviceGetUtilizationRates"}};
    for (int i = 0; i < 4; i++) {
        if (isnan(read_value(nvml, device, i)))
            continue;
        struct lab__source *source = lab__source_add(telemetry, values[i].kind, LAB__MEAN,
                                                     values[i].pace, values[i].what, "%.36s #%u",
                                                     name, device);
        lab__source_call(telemetry, source, read_value, nvml, device, i, values[i].origin);
        lab__source_end(telemetry, source);
    }
}

/* A symbol of a library is a function here, as POSIX has it. */
static bool find_function(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

/* Returns how many devices there are; 0 after a note. */
static unsigned start(struct lab_telemetry *telemetry, struct lab__nvml *nvml)
{
    int (*init)(void), (*get_count)(unsigned *), (*get_handle)(unsigned, device_handle *);
    unsigned count = 0;
    if (!find_function(nvml->library, "nvmlInit_v2", &init) ||
        !find_function(nvml->library, "nvmlDeviceGetCount_v2", &get_count) ||
        !find_function(nvml->library, "nvmlDeviceGetHandleByIndex_v2", &get_handle) ||
        !find_function(nvml->library, "nvmlShutdown", &nvml->shutdown) ||
        !find_function(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power) ||
        !find_function(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock) ||
        !find_function(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature) ||
        !find_function(nvml->library, "nvmlDeviceGetUtilizationRates", &nvml->utilization)) {
        lab__note(
            telemetry,
            "NVIDIA's processors: their library has not the functions that are needed: it is too old");
        nvml->shutdown = NULL;
        return 0;
    }
    int result = init();
    if (result != SUCCESS) {
        lab__note(telemetry, "NVIDIA's processors: nvmlInit fails with %d: the driver does not run",
                  result);
        nvml->shutdown = NULL;
        return 0;
    }
    if (get_count(&count) != SUCCESS)
        return 0;
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    for (unsigned i = 0; i < count; i++)
        if (get_handle(i, &nvml->devices[i]) != SUCCESS)
            return i;
    return count;
}

struct lab__nvml *lab__find_nvml(struct lab_telemetry *telemetry, const char *root,
                                 const char *library)
{
    char text[8], name[NAME_BYTES];
    int (*get_name)(device_handle, char *, unsigned);
    struct lab__nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        if (sysfs_text(root, text, sizeof text, "module/nvidia/refcnt"))
            lab__note(telemetry,
                      "NVIDIA's processors: the driver's library %s is missing; install what the "
                      "distribution calls libnvidia-compute or nvidia-utils",
                      library);
        free(nvml);
        return NULL;
    }
    unsigned count = start(telemetry, nvml);
    for (unsigned i = 0; i < count; i++) {
        bool named = find_function(nvml->library, "nvmlDeviceGetName", &get_name) &&
                     get_name(nvml->devices[i], name, sizeof name) == SUCCESS;
        add_device(telemetry, nvml, i, named ? name : "NVIDIA");
    }
    if (count == 0)
        lab__nvml_close(&nvml);
    return nvml;
}

void lab__nvml_close(struct lab__nvml **nvml)
{
    struct lab__nvml *n = *nvml;
    *nvml = NULL;
    if (!n)
        return;
    if (n->shutdown)
        n->shutdown();
    dlclose(n->library);
    free(n);
}
