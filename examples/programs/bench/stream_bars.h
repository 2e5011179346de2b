/* What the streams must reach: ratios within a round, compared with fixed bars.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_BARS_H
#define BENCH_STREAM_BARS_H

#include "stream_state.h"

/* Add the results of the entrants that have run. */
void stream_judge(struct stream *stream);
bool stream_met(const struct stream *stream);

/* Which results are missing, and why; "" if all are present. */
void stream_left_out(const struct stream *stream, char *text, size_t bytes);

#endif
