/* The pipeline of a kernel of the user's own, what its buffers are filled with, and what it wrote compared with what
 * one device alone wrote.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_USER_PIPELINE_H
#define COX_EXAMPLES_LAB_USER_PIPELINE_H

#include "bindings.h"

/* The constants among the arguments are the first bytes of a frame's parameters: four for each argument. */
enum { LAB_USER_PARAMS_BYTES = 4 * LAB_ARGUMENTS_MAX };

struct lab_user_pipeline {
    const struct lab_user_kernel *kernel;
    uint32_t columns, rows;
    struct cox_binding bindings[COX_BINDINGS_MAX];
    struct cox_arg args[LAB_ARGUMENTS_MAX];
    struct cox_variant variants[LAB_STAGES_MAX];
    struct cox_stage stages[LAB_STAGES_MAX];
    struct cox_use uses[COX_PASSES_MAX][COX_BINDINGS_MAX];
    struct cox_pass passes[COX_PASSES_MAX];
    size_t bytes[COX_BINDINGS_MAX];  /* of each buffer; scratch: 0 */
    void *initial[COX_BINDINGS_MAX]; /* READ_WRITE: what the buffer holds before each frame */
    unsigned char *reference
        [COX_BINDINGS_MAX]; /* written ones: what one device alone made of it; NULL = unknown */
};

/* Fill `pipeline` and the session's part of it, which is valid while the pipeline lives, and the constants.
 * `kernel` must live as long. */
void lab_user_pipeline_fill(struct lab_user_pipeline *pipeline,
                            const struct lab_user_kernel *kernel, const cox_runtime *runtime,
                            uint32_t columns, uint32_t rows, struct cox_session_params *session,
                            unsigned char constants[LAB_USER_PARAMS_BYTES]);
void lab_user_pipeline_free(struct lab_user_pipeline *pipeline);

/* Whether it reads what it writes: then each frame needs its buffers as they were. */
bool lab_user_in_place(const struct lab_user_pipeline *pipeline);

/* What the buffer of binding `b` holds at first; padding is zero. False with a sentence in `why`: a file that is
 * missing or of another size. */
bool lab_user_fill(struct lab_user_pipeline *pipeline, uint32_t b, void *data, char *why,
                   size_t why_bytes);

/* Before a frame of a pipeline in place: the buffer as it was at first. Nothing for other bindings. */
void lab_user_restore(const struct lab_user_pipeline *pipeline, uint32_t b, void *data);

/* Keep what the buffer holds as what is right. False: out of memory. */
bool lab_user_keep(struct lab_user_pipeline *pipeline, uint32_t b, const void *data);

/* Make every byte of what is only written another one than the right one, so that rows that no device writes show. */
void lab_user_spoil(const struct lab_user_pipeline *pipeline, uint32_t b, void *data);

/* Whether the buffer holds what is right; if not, the first place where it does not in `why`. True for bindings that
 * are only read, and where nothing was kept. */
bool lab_user_compare(const struct lab_user_pipeline *pipeline, uint32_t b, const void *data,
                      char *why, size_t why_bytes);

#endif
