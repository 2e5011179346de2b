/* The kernels of a run, and their frames. The kernel is tone mapping of pictures or video,
 * arithmetic with more work on one device, a blur in two passes, or a user's own kernel.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_KERNELS_H
#define COX_EXAMPLES_LAB_KERNELS_H

#include "bindings.h"
#include "common/sha256.h"

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
    const struct lab_user_kernel *user; /* LAB_KERNEL_USER; must outlive the kernel */
    uint32_t columns, rows;             /* 0 = the kind's default */
    /* Sessions. Each has its own buffers, as in an application: the library's state of a
     * buffer's bands then belongs to one session. */
    uint32_t lanes;
    uint32_t slots; /* frames under way in each session */
    uint32_t ratio; /* work: work per row of device 1 over that of the others */
    bool delayed;   /* add a kernel before each launch that may wait, for artificial delays */
    uint32_t delay_device;
};

struct lab_kernel;

/* Describe the pipeline, and create and fill the buffers. False with a sentence in `why`. */
bool lab_kernel_open(cox_runtime *runtime, const struct lab_kernel_params *params,
                     struct lab_kernel **out, char *why, size_t why_bytes);
void lab_kernel_close(struct lab_kernel **kernel);

/* The size of all buffers. */
double lab_kernel_gigabytes(const struct lab_kernel *kernel);

/* "tonemap", or the name of the user's file. */
const char *lab_kernel_name(const struct lab_kernel *kernel);

/* SHA-256 of the user's file, or of all kernels of the library if it is one of them. */
void lab_kernel_sha256(const struct lab_kernel *kernel, char text[SHA256_TEXT_BYTES]);

uint32_t lab_kernel_columns(const struct lab_kernel *kernel);
uint32_t lab_kernel_rows(const struct lab_kernel *kernel);

/* The parameters of a session with only the pipeline set; valid while the kernel exists. */
const struct cox_session_params *lab_kernel_session(const struct lab_kernel *kernel);

/* A pass of the session, and what is fused with it. */
struct lab_kernel_pass {
    const char *name; /* NULL = none */
    uint32_t rows;
    uint32_t stages; /* kernels */
};
uint32_t lab_kernel_passes(const struct lab_kernel *kernel,
                           struct lab_kernel_pass passes[COX_PASSES_MAX]);

/* Frame `index` of a session: its buffers and constants, valid while the kernel exists. The buffers
 * of a kernel that works in place are restored first. */
struct cox_frame lab_kernel_frame(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* Kernel `work`: rounds of arithmetic in each item of later frames. */
bool lab_kernel_has_work(const struct lab_kernel *kernel);
int32_t lab_kernel_work(const struct lab_kernel *kernel);
void lab_kernel_set_work(struct lab_kernel *kernel, int32_t work);

/* A hash of the output of frame `index`, without the padding of rows; and overwrite that output.
 * Only for the kernels of this program that have no scratch buffers. No frame may be under way. */
uint64_t lab_kernel_hash(const struct lab_kernel *kernel, uint32_t lane, uint64_t index);
void lab_kernel_wipe(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* Set the steps of waiting in each launch on the delayed device, for later frames. The caller
 * measures the time of a step. */
void lab_kernel_set_delay(struct lab_kernel *kernel, int32_t steps);

/* --- The output of a user's own kernel -------------------------------------------------------- */

/* No frame may be under way. These functions do nothing for other kernels. */

/* Keep the output of frame `index` as the right one. False if out of memory. */
bool lab_kernel_keep(struct lab_kernel *kernel, uint32_t lane, uint64_t index);

/* Overwrite the session's outputs with wrong values. */
void lab_kernel_spoil(struct lab_kernel *kernel, uint32_t lane);

/* Whether the outputs of `count` frames from `first` on, the latest of the session, are right:
 * the last frame of each set of buffers. If not, `why` names a place. */
bool lab_kernel_compare(const struct lab_kernel *kernel, uint32_t lane, uint64_t first,
                        uint64_t count, char *why, size_t why_bytes);

#endif
