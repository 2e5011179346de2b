/* The output of cox-bench stream as text or JSON, part by part while it runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_PRINT_H
#define BENCH_STREAM_PRINT_H

#include "stream_state.h"

void stream_print_head(struct stream *stream);
void stream_print_entrants(struct stream *stream);
void stream_print_tail(struct stream *stream);

#endif
