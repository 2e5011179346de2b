/* JPEG pictures out, through libjpeg: the SDR picture, and a gain map that makes it HDR.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_out.h"

#ifndef COX_HAVE_JPEG

const char *const picture_jpeg_missing = "libjpeg (Debian: libjpeg-dev)";

bool picture_jpeg_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                        struct error *error)
{
    (void)output, (void)pixels, (void)pitch_bytes;
    return error_set(error, "this program was built without libjpeg");
}

#else

#include "ultra_hdr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

const char *const picture_jpeg_missing = NULL;

enum { MAP_QUALITY = 95 };

/* What libjpeg codes. */
struct raster {
    const uint8_t *pixels;
    size_t pitch_bytes;
    uint32_t width, height;
    unsigned pixel_bytes; /* 3 or 4; the first three are R, G, B */
    unsigned quality;
    uint32_t across, down; /* pixels for a length; 0 = unknown */
};

/* One encoder, whose errors jump. */
struct encoder {
    struct jpeg_error_mgr manager; /* the first member */
    struct jpeg_compress_struct jpeg;
    jmp_buf jump;
    struct error *error;
    uint8_t *row;
    unsigned char *data; /* the JPEG; from malloc */
    unsigned long bytes;
};

static void on_error(j_common_ptr common)
{
    struct encoder *encoder = (struct encoder *)common->err;
    char text[JMSG_LENGTH_MAX];
    encoder->manager.format_message(common, text);
    error_set(encoder->error, "cannot be encoded: %.160s", text);
    longjmp(encoder->jump, 1);
}

static void on_message(j_common_ptr common, int level)
{
    (void)common, (void)level;
}

/* Everything between setjmp and longjmp happens here, on values that do not change after setjmp. */
static bool encode_steps(struct encoder *encoder, const struct raster *raster)
{
    struct jpeg_compress_struct *jpeg = &encoder->jpeg;
    if (setjmp(encoder->jump))
        return false;

    jpeg_create_compress(jpeg);
    jpeg_mem_dest(jpeg, &encoder->data, &encoder->bytes);
    jpeg->image_width = raster->width;
    jpeg->image_height = raster->height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, (int)raster->quality, TRUE);
    jpeg->optimize_coding = TRUE;
    if (raster->quality >= 90) /* 4:4:4 */
        jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
    if (raster->across) {
        jpeg->X_density = (UINT16)raster->across;
        jpeg->Y_density = (UINT16)raster->down;
    }

    jpeg_start_compress(jpeg, TRUE);
    for (uint32_t y = 0; y < raster->height; y++) {
        const uint8_t *from = raster->pixels + y * raster->pitch_bytes;
        for (size_t x = 0; x < raster->width; x++)
            memcpy(encoder->row + 3 * x, from + raster->pixel_bytes * x, 3);
        jpeg_write_scanlines(jpeg, &encoder->row, 1);
    }
    jpeg_finish_compress(jpeg);
    return true;
}

/* Code a raster. The caller frees `data`, also after an error. */
static bool encode(struct encoder *encoder, const struct raster *raster, struct error *error)
{
    memset(encoder, 0, sizeof *encoder);
    encoder->error = error;
    encoder->row = malloc((size_t)raster->width * 3);
    if (!encoder->row)
        return error_set(error, "out of memory");

    encoder->jpeg.err = jpeg_std_error(&encoder->manager);
    encoder->manager.error_exit = on_error;
    encoder->manager.emit_message = on_message;
    const bool good = encode_steps(encoder, raster);
    jpeg_destroy_compress(&encoder->jpeg);
    free(encoder->row);
    return good;
}

/* --- The file --------------------------------------------------------------------------------- */

static bool put(struct picture_output *output, const void *data, size_t bytes, struct error *error)
{
    errno = 0;
    return fwrite(data, 1, bytes, outfile_stream(output->file)) == bytes ||
           error_set(error, "cannot be written: %s", strerror(errno ? errno : EIO));
}

/* Write a JPEG. The given segments follow libjpeg's first segment. */
static bool put_jpeg(struct picture_output *output, const struct encoder *jpeg, size_t before_bytes,
                     const struct ultra_hdr_segments *segments, struct error *error)
{
    return put(output, jpeg->data, before_bytes, error) &&
           put(output, segments->data, segments->bytes, error) &&
           put(output, jpeg->data + before_bytes, jpeg->bytes - before_bytes, error);
}

static bool put_file(struct picture_output *output, const struct encoder *base,
                     const struct encoder *map, const struct gain_map_made *made,
                     struct error *error)
{
    enum { BEFORE_BYTES = 20 }; /* SOI, and APP0 of JFIF */
    struct ultra_hdr_segments of_map, of_base;
    ultra_hdr_of_map(&of_map, made);
    ultra_hdr_of_base(&of_base, BEFORE_BYTES, base->bytes, map->bytes + of_map.bytes);

    if ((uint64_t)base->bytes + map->bytes + 2 * (uint64_t)ULTRA_HDR_BYTES_MAX > UINT32_MAX)
        return error_set(error, "cannot be encoded: the file would have more than 4 GiB");
    return put_jpeg(output, base, BEFORE_BYTES, &of_base, error) &&
           put_jpeg(output, map, BEFORE_BYTES, &of_map, error);
}

bool picture_jpeg_write(struct picture_output *output, const uint8_t *pixels, size_t pitch_bytes,
                        struct error *error)
{
    struct raster base = {.pixels = pixels,
                          .pitch_bytes = pitch_bytes,
                          .width = output->width,
                          .height = output->height,
                          .pixel_bytes = 4,
                          .quality = output->quality};
    struct encoder coded_base = {.data = NULL}, coded_map = {.data = NULL};
    struct gain_map_made made;
    uint32_t across = output->aspect_height, down = output->aspect_width; /* thus inverse */
    for (; across > UINT16_MAX || down > UINT16_MAX; down /= 2)
        across /= 2;
    if (across && down)
        base.across = across, base.down = down;

    if (!gain_map_make(&output->light, pixels, pitch_bytes, base.width, base.height, &made, error))
        return false;
    const struct raster map = {.pixels = made.pixels,
                               .pitch_bytes = (size_t)made.width * 3,
                               .width = made.width,
                               .height = made.height,
                               .pixel_bytes = 3,
                               .quality = MAP_QUALITY};
    const bool good = encode(&coded_base, &base, error) && encode(&coded_map, &map, error) &&
                      put_file(output, &coded_base, &coded_map, &made, error);
    free(coded_base.data);
    free(coded_map.data);
    gain_map_free(&made);
    return good;
}

#endif
