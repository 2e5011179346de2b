/* What the machine lacks for OpenCL: GPUs on the PCI bus that no OpenCL platform lists, and the
 * Debian packages that add them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_MISSING_H
#define DEVICES_MISSING_H

#include <coxswain/runtime.h>

enum { MISSING_MAX = 16 };

struct missing {
    uint32_t count;
    char text[MISSING_MAX][320]; /* whole sentences */
};

/* What OpenCL offers; all zero if there is no platform. */
struct missing_found {
    const struct cox_platform_info *platforms;
    uint32_t platform_count;
    const struct cox_device_info *devices; /* every device, not a selection */
    uint32_t device_count;
};

/* `pci_dir` is /sys/bus/pci/devices, `dri_dir` is /dev/dri. A folder that does not exist is
 * ignored. */
void missing_find(struct missing *out, const struct missing_found *found, const char *pci_dir,
                  const char *dri_dir);

/* Why a platform may list no device, as a clause; NULL = no particular reason. */
const char *missing_why_empty(const struct cox_platform_info *platform);

#endif
