/* A stream of small frames whose every bit is known: a pipeline with every access contract, integer arithmetic only,
 * and a count of everything that may go wrong on the way of a frame. Each frame's output is compared in its callback,
 * and once more just before its buffers are used anew, since a device that was late may have come by in between.
 *
 * Thread-safety: one thread opens, submits and closes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_STREAM_H
#define COX_TESTS_REF_STREAM_H

#include "specs.h"
#include "fake_backend.h"

#include <coxswain/coxswain.h>

enum { REF_STREAM_ROWS = 256, REF_STREAM_COLUMNS = 250, REF_STREAM_STATUSES = 20 };

struct ref_stream_counts {
    uint64_t frames;  /* that the session took */
    uint64_t refused; /* that it did not take, for lack of devices */
    uint64_t callbacks;
    uint64_t lost;       /* no callback; known after ref_stream_close */
    uint64_t duplicated; /* callbacks beyond a frame's first */
    uint64_t unordered;  /* callbacks that came before that of an earlier frame */
    uint64_t wrong;      /* frames that were said to be good and were not, in their callback or later */
    uint64_t errors;     /* frames whose callback said an error */
    uint64_t errors_by[REF_STREAM_STATUSES]; /* the same by -status */
};

struct ref_stream;

/* The kernel of the pipeline for scripted devices, and that of its first pass if it has two. */
extern const struct fake_kernel ref_stream_kernel, ref_stream_copy_kernel;

/* A session on `runtime`; its shape is set here, the other fields of `extra` are kept. NULL after setting `*status`. */
struct ref_stream *ref_stream_open(cox_runtime *runtime, const struct cox__session_spec *extra, cox_status *status);

/* The same in two passes: what the kernel reads of neighbouring rows comes from scratch, to which the first pass copies
 * it. */
struct ref_stream *ref_stream_open_passes(cox_runtime *runtime, const struct cox__session_spec *extra,
                                          cox_status *status);

/* One more frame. Waits for a set of buffers; while no device is there, tries again for `timeout_ns` and then counts it
 * as refused. COX_OK, COX_E_NO_DEVICE, or what else the session said. */
cox_status ref_stream_submit(struct ref_stream *stream, uint64_t timeout_ns);

/* From now on no buffers are used again that were there when a device was lost: one that was given up may still
 * write them. */
void ref_stream_renew_buffers(struct ref_stream *stream);

/* From now on each set of buffers keeps its inputs, so that frames cost the host little. */
void ref_stream_keep_inputs(struct ref_stream *stream);

/* Wait for what is under way; then `info` as the session ends, and the counts. Either may be NULL. Frees the stream. */
void ref_stream_close(struct ref_stream **stream, struct ref_stream_counts *counts, struct cox_session_info *info);

#endif
