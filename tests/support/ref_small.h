/* A stream of frames so small that millions of them take minutes: 64 x 64 values, one pass, a constant that differs in
 * every frame. Some values of each result are compared in the callback, and again before its buffers are reused.
 *
 * Thread-safety: open, submit and close from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_SMALL_H
#define COX_TESTS_REF_SMALL_H

#include "support/ref_stream.h"

struct ref_small;

/* NULL on failure; `*status` says why. */
struct ref_small *ref_small_open(cox_runtime *runtime, cox_status *status);

/* Submit one more frame. Waits for a free set of buffers. */
cox_status ref_small_submit(struct ref_small *small);

/* Wait for all frames, then fill `counts` and `info`. Frees the stream. */
void ref_small_close(struct ref_small **small, struct ref_stream_counts *counts, struct cox_session_info *info);

#endif
