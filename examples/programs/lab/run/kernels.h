/* What a run computes: pictures or video tone-mapped, arithmetic with more work on one device, pictures blurred in two
 * passes, or a kernel of the user's own.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_KERNELS_H
#define COX_EXAMPLES_LAB_KERNELS_H

#include "bindings.h"

enum lab_kernel_kind {
    LAB_KERNEL_TONEMAP,
    LAB_KERNEL_VIDEO,
    LAB_KERNEL_WORK,
    LAB_KERNEL_BLUR,
    LAB_KERNEL_USER
};

/* "tonemap", "video", "work", "blur"; false for any other name. */
bool lab_kernel_find(const char *name, enum lab_kernel_kind *kind);

struct lab_kernel_params {
    enum lab_kernel_kind kind;
    const struct lab_user_kernel *user; /* LAB_KERNEL_USER; lives as long as what is opened */
    uint32_t columns, rows;             /* 0 = the kind's default */
    /* Sessions, each with buffers of its own: what the library keeps of a buffer's bands is then one session's, as in
     * an application. */
    uint32_t lanes;
    uint32_t slots; /* frames that may be under way in each */
    uint32_t ratio; /* work: work per row of device 1 over that of the others */
    bool
        delayed; /* there will be artificial delays: each launch gets a kernel before it that may wait */
    uint32_t delay_device;
};

struct lab_kernel;

/* Buffers filled, the pipeline described. False with a sentence in `why`. */
bool lab_kernel_open(cox_runtime *runtime, const struct lab_kernel_params *params,
                     struct lab_kernel **out, char *why, size_t why_bytes);
void lab_kernel_close(struct lab_kernel **kernel);

/* What its buffers take of the machine's memory. */
double lab_kernel_gigabytes(const struct lab_kernel *kernel);

/* "tonemap", or the name of the user's file. */
const char *lab_kernel_name(const struct lab_kernel *kernel);

uint32_t lab_kernel_columns(const struct lab_kernel *kernel);
uint32_t lab_kernel_rows(const struct lab_kernel *kernel);

/* A session's pipeline; valid while the kernel lives. */
void lab_kernel_pipeline(const struct lab_kernel *kernel, struct cox_session_params *session);

/* Frame number `index` of a session: its buffers and parameters, valid until the next call. A kernel in place finds its
 * buffers as they were at first. */
struct cox_frame lab_kernel_frame(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* work: rounds of arithmetic in each item of the frames to come. */
bool lab_kernel_has_work(const struct lab_kernel *kernel);
int32_t lab_kernel_work(const struct lab_kernel *kernel);
void lab_kernel_set_work(struct lab_kernel *kernel, int32_t work);

/* What frame number `index` of the session wrote, the padding of rows left out; of a kernel of the user's own nothing.
 * And all of it made wrong. Not while a frame is under way. */
uint64_t lab_kernel_hash(const struct lab_kernel *kernel, uint32_t lane, uint64_t index);
void lab_kernel_wipe(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* Steps of waiting in each launch on the delayed device, in the frames to come. What one lasts is to be measured. */
void lab_kernel_set_delay(struct lab_kernel *kernel, int32_t steps);

/* --- What a kernel of the user's own writes; not while a frame is under way, nothing for other kernels ---------- */

/* What frame number `index` of the session wrote is right from now on. False: out of memory. */
bool lab_kernel_keep(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* Make all that is right in the session's outputs wrong. */
void lab_kernel_spoil(struct lab_kernel *kernel, uint32_t lane);

/* Whether `count` frames from `first` on, the latest of the session, left in its outputs what is right: the last frame
 * of each set of buffers. If not, a place in `why`. */
bool lab_kernel_compare(const struct lab_kernel *kernel, uint32_t lane, uint64_t first,
                        uint64_t count, char *why, size_t why_bytes);

#endif
