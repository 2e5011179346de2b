/* What a machine lacks for OpenCL to use all of it: GPUs on the PCI bus that no OpenCL platform
 * lists, and the packages (by their names in Debian) that would change it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_MISSING_H
#define DEVICES_MISSING_H

#include <coxswain/runtime.h>

enum { MISSING_MAX = 16 };

struct missing {
    uint32_t count;
    char text[MISSING_MAX][320]; /* whole sentences */
};

/* What OpenCL was found to offer; all zero where there is no platform. */
struct missing_found {
    const struct cox_platform_info *platforms;
    uint32_t platform_count;
    const struct cox_device_info *devices; /* every device, not a selection */
    uint32_t device_count;
};

/* `pci_dir` is /sys/bus/pci/devices, `dri_dir` /dev/dri; folders that are not there give nothing to
 * say. */
void missing_find(struct missing *out, const struct missing_found *found, const char *pci_dir,
                  const char *dri_dir);

/* Why a platform may list no device, as a clause; NULL if there is no more to say than that it is
 * normal. */
const char *missing_why_empty(const struct cox_platform_info *platform);

#endif
