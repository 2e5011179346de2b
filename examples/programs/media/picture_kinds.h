/* What the kinds of pictures implement behind picture.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PICTURE_KINDS_H
#define PICTURE_KINDS_H

#include "picture.h"

struct picture_kind {
    /* Whether the content is of this kind, from its first bytes. */
    bool (*matches)(const uint8_t *data, size_t bytes);

    /* Read the header: fill `format`, except `frames`, and `state`. On failure nothing is left
     * allocated. NULL: this program was built without the library, as `missing` says. */
    bool (*open)(struct picture_input *input, struct error *error);

    /* Decode the whole picture. */
    bool (*read)(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                 struct error *error);
    void (*close)(struct picture_input *input);
    const char *missing;
};

struct picture_input {
    const struct picture_kind *kind;
    struct picture_format format;
    enum picture_alpha alpha;
    bool coded;          /* PNG: codes are read instead of light */
    const char *layer;   /* NULL = the main one */
    const uint8_t *data; /* the whole file */
    size_t bytes;
    void *owned; /* the same memory if the input allocated it; else NULL */
    uint64_t next_frame;
    void *state; /* the kind's own */
};

extern const struct picture_kind picture_kind_exr;
extern const struct picture_kind picture_kind_hdr;
extern const struct picture_kind picture_kind_pfm;
extern const struct picture_kind picture_kind_png;
extern const struct picture_kind picture_kind_avif;
extern const struct picture_kind picture_kind_heif;
extern const struct picture_kind picture_kind_jxl;
extern const struct picture_kind picture_kind_jpeg;

/* The kind of the content; NULL = none of them. */
const struct picture_kind *picture_kind_of(const uint8_t *data, size_t bytes);

/* False, and `error` says why, if the size is not sane. */
bool picture_check_size(int64_t width, int64_t height, struct error *error);

#endif
