/* A stream of small frames with known results. Its pipeline uses every access contract and integer arithmetic only.
 * It counts every fault in the handling of frames. Each output is compared in its callback, and once more before
 * its buffers are used again, since a late device may have written to them in between.
 *
 * Thread-safety: open, submit and close from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_STREAM_H
#define COX_TESTS_REF_STREAM_H

#include "specs.h"
#include "fake_backend.h"

#include <coxswain/coxswain.h>

enum { REF_STREAM_ROWS = 256, REF_STREAM_COLUMNS = 250, REF_STREAM_STATUSES = 20 };

struct ref_stream_counts {
    uint64_t frames;  /* accepted by the session */
    uint64_t refused; /* not accepted, because no device was left */
    uint64_t callbacks;
    uint64_t lost;                           /* without a callback; known after ref_stream_close */
    uint64_t duplicated;                     /* callbacks beyond a frame's first */
    uint64_t unordered;                      /* callbacks before that of an earlier frame */
    uint64_t wrong;                          /* frames with COX_OK and a wrong result, in the callback or later */
    uint64_t errors;                         /* frames whose callback got an error */
    uint64_t errors_by[REF_STREAM_STATUSES]; /* the same by -status */
};

struct ref_stream;

/* For scripted devices: the pipeline's kernel, and the kernel of the first of two passes. */
extern const struct fake_kernel ref_stream_kernel, ref_stream_copy_kernel;

/* Open a session on `runtime`. Its shape is set here; the other fields of `extra` are kept. On failure it sets
 * `*status` and returns NULL. */
struct ref_stream *ref_stream_open(cox_runtime *runtime, const struct cox__session_spec *extra, cox_status *status);

/* The same with two passes. The first one copies rows to scratch, from which the second one reads neighbouring
 * rows. */
struct ref_stream *ref_stream_open_passes(cox_runtime *runtime, const struct cox__session_spec *extra,
                                          cox_status *status);

/* Submit one more frame. Waits for a free set of buffers. While no device is left, it retries for `timeout_ns`,
 * then counts the frame as refused. Returns COX_OK, COX_E_NO_DEVICE, or another status of the session. */
cox_status ref_stream_submit(struct ref_stream *stream, uint64_t timeout_ns);

/* From now on, do not reuse buffers that existed when a device was lost. A device that was given up may still write
 * to them. */
void ref_stream_renew_buffers(struct ref_stream *stream);

/* From now on, each set of buffers keeps its inputs, so that frames cost the host little. */
void ref_stream_keep_inputs(struct ref_stream *stream);

/* Wait for all frames, then fill `info` and `counts`, which may be NULL. Frees the stream. */
void ref_stream_close(struct ref_stream **stream, struct ref_stream_counts *counts, struct cox_session_info *info);

#endif
