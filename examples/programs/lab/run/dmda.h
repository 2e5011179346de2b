/* StarPU 1.3 with its scheduler `dmda` on the devices of a run. Each frame is cut into blocks of
 * rows of nearly equal height. Each block is a task, and each block of each buffer has a data
 * handle. StarPU copies blocks to devices and back; in host memory a frame is in the run's own
 * buffers.
 *
 * Source: the StarPU handbook, 1.3: "OpenCL Support", "Scheduling" (dmda), "Data Management",
 * "Performance Feedback".
 *
 * Thread-safety: from one thread at a time, one at a time in a process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DMDA_H
#define COX_EXAMPLES_LAB_DMDA_H

#include <coxswain/coxswain.h>

enum { LAB_DMDA_BLOCKS_MAX = 64, LAB_DMDA_ANY_DEVICE = -1 };

struct lab_dmda_params {
    const char *kernel; /* for the name of the performance model */
    /* All pointers must stay valid until lab_dmda_close. */
    const struct cox_session_params *session; /* its pipeline */
    uint32_t row_alignment;
    const struct cox_device_info *devices;
    uint32_t device_count;
    enum cox_arithmetic arithmetic; /* the runtime's */
    uint32_t slots;                 /* frames under way at once */
    const struct cox_frame *frames; /* of each slot: buffers and parameters */
};

struct lab_dmda;

/* "1.3.10" */
void lab_dmda_version(char *text, size_t bytes);

/* Start StarPU on these devices and build the kernels on each. Models of earlier runs are not used.
 * False with a sentence in `why`. */
bool lab_dmda_open(const struct lab_dmda_params *params, struct lab_dmda **out, char *why,
                   size_t why_bytes);

/* Wait for the frames under way, then close and set the pointer to NULL. NULL is accepted. */
void lab_dmda_close(struct lab_dmda **dmda);

/* The maximum number of blocks of a frame. */
uint32_t lab_dmda_blocks_most(const struct lab_dmda *dmda);

/* Set the number of blocks. No frame may be under way. */
bool lab_dmda_cut(struct lab_dmda *dmda, uint32_t blocks, char *why, size_t why_bytes);

/* StarPU's threads poll for tasks until they are paused. They are paused at first. */
void lab_dmda_pause(struct lab_dmda *dmda, bool paused);

/* Submit frame `index` in slot index % slots. The slot's previous frame must have been
 * collected. With `device` >= 0 the whole frame runs there, so that the model learns that
 * device's speed. */
bool lab_dmda_submit(struct lab_dmda *dmda, uint64_t index, int device);

/* Wait for frame `index` and fill its report, with a band for each block. The report is valid until
 * the slot's next frame. */
void lab_dmda_collect(struct lab_dmda *dmda, uint64_t index, struct cox_frame_report *report);

#endif
