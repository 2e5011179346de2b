/* Fuzz target: Dolby Vision's metadata. Reading must not crash. What is read has a valid table, and what is refused
 * changes nothing. An input that begins with byte 25 is of HEVC, any other of AV1. It is read twice: without a frame
 * before, then with that result as the frame before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <coxswain/dolby.h>
#include <math.h>

static cox_status read_frame(const uint8_t *data, size_t size, const struct cox_dolby_frame *before,
                             struct cox_dolby_frame *out)
{
    if (size && data[0] == 25)
        return cox_dolby_read_hevc(data, size, before, out);
    return cox_dolby_read_av1(data, size, before, out);
}

static void check_frame(const struct cox_dolby_frame *frame)
{
    float table[COX_VIDEO_RESHAPE_BYTES / sizeof(float)];
    CHECK(frame->profile <= 8 && frame->mapping <= 15);
    CHECK(frame->has_residual || !frame->is_full_enhancement);
    CHECK(frame->source_peak_nits >= 0 && frame->source_peak_nits <= 10001);
    CHECK(frame->scene_peak_nits >= 0 && frame->scene_peak_nits <= 10001);
    CHECK(cox_video_reshape_table(&frame->reshape, table) == COX_OK);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        CHECK(isfinite(table[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cox_dolby_frame first, untouched, second;
    memset(&first, 0x5a, sizeof first);
    memset(&untouched, 0x5a, sizeof untouched);
    if (read_frame(data, size, NULL, &first) != COX_OK) {
        CHECK(!memcmp(&first, &untouched, sizeof first));
        return 0;
    }

    check_frame(&first);
    CHECK(read_frame(data, size, &first, &second) == COX_OK);
    check_frame(&second);
    CHECK(first.profile == second.profile && first.mapping == second.mapping);
    return 0;
}
