/* The samples of a frame in y4m and raw streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"
#include "video_rows.h"

#include <inttypes.h>

enum video_read video_fail_truncated(const struct video_input *input, uint64_t begin,
                                     uint64_t missing, struct error *error)
{
    error_set(error,
              "frame %" PRIu64 " (the first is 0), which begins at byte %" PRIu64
              ", is incomplete: the stream ends at byte %" PRIu64 ", %" PRIu64 " bytes are missing",
              input->next_frame, begin, input->source.offset, missing);
    return VIDEO_READ_ERROR;
}

static enum video_read read_rows(struct video_input *input, void *const memory[],
                                 const size_t pitch_bytes[], struct error *error)
{
    struct video_rows rows = {0};
    struct iovec pieces[VIDEO_PIECES];
    size_t count;
    uint64_t got;

    while ((count = video_rows_next(&rows, &input->planes, memory, pitch_bytes, pieces))) {
        const enum video_read result = video_source_read(&input->source, pieces, count, &got,
                                                         error);
        if (result != VIDEO_READ_FRAME)
            return result;
    }
    video_source_ahead(&input->source, input->planes.frame_bytes);
    return VIDEO_READ_FRAME;
}

enum video_read video_read_samples(struct video_input *input, uint64_t begin, void *const memory[],
                                   const size_t pitch_bytes[], struct error *error)
{
    struct video_source *source = &input->source;
    const uint64_t first = source->offset, frame_bytes = input->planes.frame_bytes;
    enum video_read result;
    uint64_t got;

    input->samples = first;
    if (memory)
        result = read_rows(input, memory, pitch_bytes, error);
    else
        result = video_source_skip(source, frame_bytes, &got, error);

    const uint64_t came = source->offset - first;
    if (result != VIDEO_READ_END || (!came && begin == first))
        return result;
    return video_fail_truncated(input, begin, frame_bytes - came, error);
}
