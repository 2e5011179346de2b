/* What a run computes: pictures or video tone-mapped, or arithmetic with more work on one device.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_KERNELS_H
#define COX_EXAMPLES_LAB_KERNELS_H

#include <coxswain/session.h>

enum lab_kernel_kind { LAB_KERNEL_TONEMAP, LAB_KERNEL_VIDEO, LAB_KERNEL_WORK };

/* "tonemap", "video", "work"; false for any other name. */
bool lab_kernel_find(const char *name, enum lab_kernel_kind *kind);
const char *lab_kernel_name(enum lab_kernel_kind kind);

enum { LAB_SIZE_MIN = 16, LAB_SIZE_MAX = 16384 };

struct lab_kernel_params {
    enum lab_kernel_kind kind;
    uint32_t columns, rows; /* 0 = the kind's default */
    /* Sessions, each with buffers of its own: what the library keeps of a buffer's bands is then one session's, as in
     * an application. */
    uint32_t lanes;
    uint32_t slots; /* frames that may be under way in each */
    uint32_t ratio; /* work: work per row of device 1 over that of the others */
    bool delayed;   /* there will be artificial delays: each launch gets a kernel before it that may wait */
    uint32_t delay_device;
};

struct lab_kernel;

/* Buffers filled, the pipeline described. False with a sentence in `why`. */
bool lab_kernel_open(cox_runtime *runtime, const struct lab_kernel_params *params, struct lab_kernel **out, char *why,
                     size_t why_bytes);
void lab_kernel_close(struct lab_kernel **kernel);

/* What its buffers take of the machine's memory. */
double lab_kernel_gigabytes(const struct lab_kernel *kernel);

uint32_t lab_kernel_columns(const struct lab_kernel *kernel);
uint32_t lab_kernel_rows(const struct lab_kernel *kernel);

/* A session's pipeline; valid while the kernel lives. */
void lab_kernel_pipeline(const struct lab_kernel *kernel, struct cox_session_params *session);

/* Frame number `index` of a session: its buffers and parameters, valid until the next call. */
struct cox_frame lab_kernel_frame(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* work: rounds of arithmetic in each item of the frames to come. */
bool lab_kernel_has_work(const struct lab_kernel *kernel);
int32_t lab_kernel_work(const struct lab_kernel *kernel);
void lab_kernel_set_work(struct lab_kernel *kernel, int32_t work);

/* Steps of waiting in each launch on the delayed device, in the frames to come. What one lasts is to be measured. */
void lab_kernel_set_delay(struct lab_kernel *kernel, int32_t steps);

#endif
