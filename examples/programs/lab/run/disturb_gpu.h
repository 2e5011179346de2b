/* The process of a GPU hog: runs its own frames without a pause on one device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_GPU_H
#define COX_EXAMPLES_LAB_DISTURB_GPU_H

#include "disturb_child.h"

#include <coxswain/runtime.h>

extern const struct lab_child_job lab_gpu_hog_job;

/* Set the device in the child's memory, before the child prepares itself. */
void lab_gpu_hog_choose(void *memory, const struct cox_device_info *gpu);

#endif
