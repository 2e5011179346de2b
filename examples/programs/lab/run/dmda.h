/* StarPU 1.3 with its scheduler `dmda` on the devices of a run: each frame is cut into blocks of rows of nearly equal
 * height, a task each, with a data handle for each block of each buffer. StarPU copies blocks to a device and back as
 * it does for any program; the frames' memory is the buffers' own.
 *
 * Facts: the StarPU handbook, 1.3: "OpenCL Support", "Scheduling" (dmda), "Data Management", "Performance Feedback".
 * Thread-safety: from one thread at a time, one at a time in a process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DMDA_H
#define COX_EXAMPLES_LAB_DMDA_H

#include <coxswain/coxswain.h>

enum { LAB_DMDA_BLOCKS_MAX = 64, LAB_DMDA_ANY_DEVICE = -1 };

struct lab_dmda_params {
    const char *kernel; /* for the name of the performance model */
    const struct cox_session_params
        *session; /* its pipeline; lives as long as what is opened, as all below */
    uint32_t granule;
    const struct cox_device_info *devices;
    uint32_t device_count;
    enum cox_arithmetic arithmetic; /* the runtime's */
    uint32_t slots;                 /* frames under way at once */
    const struct cox_frame *frames; /* of each slot: buffers and parameters */
};

struct lab_dmda;

/* "1.3.10" */
void lab_dmda_version(char *text, size_t bytes);

/* StarPU started on these devices, the kernels built on each. Models of earlier runs are not used. False with a
 * sentence in `why`. */
bool lab_dmda_open(const struct lab_dmda_params *params, struct lab_dmda **out, char *why,
                   size_t why_bytes);

/* Waits for what is under way; sets to NULL, NULL is accepted. */
void lab_dmda_close(struct lab_dmda **dmda);

/* Into how many blocks a frame can be cut. */
uint32_t lab_dmda_blocks_most(const struct lab_dmda *dmda);

/* From the next frame on; no frame may be under way. */
bool lab_dmda_cut(struct lab_dmda *dmda, uint32_t blocks, char *why, size_t why_bytes);

/* StarPU's threads poll for tasks until they are paused. Paused at first. */
void lab_dmda_pause(struct lab_dmda *dmda, bool paused);

/* Frame `index`, in slot index % slots, whose frame before has been collected. `device` >= 0: all of it there, so that
 * the model learns of that device. */
bool lab_dmda_submit(struct lab_dmda *dmda, uint64_t index, int device);

/* Wait for frame `index` and tell of it, with a band for each block; valid until the slot's next frame. */
void lab_dmda_collect(struct lab_dmda *dmda, uint64_t index, struct cox_frame_report *report);

#endif
