/* The pipeline of a user's own kernel, the content of its buffers, and the comparison of its
 * output with that of one device alone.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_USER_PIPELINE_H
#define COX_EXAMPLES_LAB_USER_PIPELINE_H

#include "bindings.h"

/* A frame's constants: four bytes each. */
enum { LAB_USER_CONSTANTS_BYTES = 4 * LAB_CONSTANTS_MAX };

struct lab_user_pipeline {
    const struct lab_user_kernel *kernel;
    uint32_t columns, rows;
    struct cox_buffer_layout buffers[COX_BUFFERS_MAX + 1];
    struct cox_argument arguments[LAB_ARGUMENTS_MAX + LAB_PASSES_MAX]; /* a list for each pass */
    struct cox_pass passes[LAB_PASSES_MAX + 1];
    struct cox_field fields[LAB_CONSTANTS_MAX + 1];

    /* The buffers of a frame: those that are not scratch. */
    uint32_t count;
    const struct lab_buffer *of[COX_BUFFERS_MAX];
    size_t pitch_bytes[COX_BUFFERS_MAX];
    size_t bytes[COX_BUFFERS_MAX];
    void *initial[COX_BUFFERS_MAX];            /* READ_WRITE: the content before each frame */
    unsigned char *reference[COX_BUFFERS_MAX]; /* output of one device alone; NULL = unknown */
};

/* Fill `pipeline`, the session's pipeline and the constants. The session's part is valid while
 * `pipeline` exists; `kernel` must exist as long. */
void lab_user_pipeline_fill(struct lab_user_pipeline *pipeline,
                            const struct lab_user_kernel *kernel, const cox_runtime *runtime,
                            uint32_t columns, uint32_t rows, struct cox_session_params *session,
                            unsigned char constants[LAB_USER_CONSTANTS_BYTES]);
void lab_user_pipeline_free(struct lab_user_pipeline *pipeline);

/* Whether the pipeline reads a buffer that it writes. Then the buffers must be restored before each
 * frame. */
bool lab_user_in_place(const struct lab_user_pipeline *pipeline);

/* Write the first content of the frame's buffer `b`; padding is zero. False with a sentence in
 * `why` if a file is missing or has the wrong size. */
bool lab_user_fill(struct lab_user_pipeline *pipeline, uint32_t b, void *data, char *why,
                   size_t why_bytes);

/* Restore the first content, before a frame of a pipeline in place. Does nothing for other
 * buffers. */
void lab_user_restore(const struct lab_user_pipeline *pipeline, uint32_t b, void *data);

/* Keep the buffer's content as the right output. False if out of memory. */
bool lab_user_keep(struct lab_user_pipeline *pipeline, uint32_t b, const void *data);

/* Change every byte of a buffer that is only written, so that the comparison finds rows that no
 * device writes. */
void lab_user_spoil(const struct lab_user_pipeline *pipeline, uint32_t b, void *data);

/* Whether the buffer has the right output; if not, `why` names the first difference. True for
 * buffers without a kept output. */
bool lab_user_compare(const struct lab_user_pipeline *pipeline, uint32_t b, const void *data,
                      char *why, size_t why_bytes);

#endif
