/* SPDX-License-Identifier: Apache-2.0 */
#include "still.h"

#include <stdlib.h>
#include <string.h>

void still_describe(struct still *still, const struct video_format *format)
{
    const bool across = format->turn.transposed;
    *still = (struct still){.width = across ? format->height : format->width,
                            .height = across ? format->width : format->height,
                            .turn = format->turn,
                            .pixel_bytes = format->pixel.depth > 8 ? 8 : 4,
                            .aspect = format->aspect};
    if (format->colours.has_transfer)
        still->colours = PICTURE_PQ;
    else if (format->colours.has_primaries)
        still->colours = PICTURE_WIDE;
    if (across)
        still->aspect = (struct video_rational){format->aspect.den, format->aspect.num};
}

enum cox_pixel_out still_pixel(const struct still *still)
{
    return still->pixel_bytes == 8 ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8;
}

void still_say_format(const struct still *still, struct picture_output *output)
{
    picture_output_colours(output, still->colours);
    picture_output_aspect(output, still->aspect.num, still->aspect.den);
}

bool still_open(struct still *still, const char *path, const struct video_format *format,
                struct error *error)
{
    still_describe(still, format);
    if (!picture_output_open(&still->output, path, still->width, still->height, still_pixel(still),
                             error))
        return false;
    still_say_format(still, still->output);
    return true;
}

void still_turn(const struct still *still, const uint8_t *pixels, size_t pitch_bytes, uint8_t *to,
                size_t to_pitch_bytes)
{
    const struct video_turn turn = still->turn;
    const size_t bytes = still->pixel_bytes;

    for (uint32_t y = 0; y < still->height; y++) {
        const uint32_t from_y = turn.flip_y ? still->height - 1 - y : y;
        for (uint32_t x = 0; x < still->width; x++) {
            const uint32_t from_x = turn.flip_x ? still->width - 1 - x : x;
            const size_t row = turn.transposed ? from_x : from_y;
            const size_t column = turn.transposed ? from_y : from_x;
            memcpy(to + y * to_pitch_bytes + x * bytes, pixels + row * pitch_bytes + column * bytes,
                   bytes);
        }
    }
}

bool still_write(struct still *still, const uint8_t *pixels, size_t pitch_bytes,
                 struct error *error)
{
    const struct video_turn turn = still->turn;
    const size_t pitch = still->width * still->pixel_bytes;
    if (!turn.transposed && !turn.flip_x && !turn.flip_y)
        return picture_output_write(still->output, pixels, pitch_bytes, error);

    uint8_t *upright = malloc(pitch * still->height);
    if (!upright)
        return error_set(error, "out of memory");
    still_turn(still, pixels, pitch_bytes, upright, pitch);
    const bool good = picture_output_write(still->output, upright, pitch, error);
    free(upright);
    return good;
}

bool still_close(struct still *still, bool good, struct error *error)
{
    if (still->output && good)
        return picture_output_finish(&still->output, error);
    picture_output_abandon(&still->output);
    return true;
}
