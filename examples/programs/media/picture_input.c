/* Pictures in: load the file, and let the first bytes tell its kind.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture.h"
#include "common/least.h"
#include "peek.h"
#include "picture_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any picture that is accepted: four float channels, and as much again for others. */
static const uint64_t file_bytes_max = PICTURE_PIXELS_MAX * 32;

static const struct picture_kind *const kinds[] = {
    &picture_kind_exr,  &picture_kind_hdr,  &picture_kind_pfm, &picture_kind_png,
    &picture_kind_avif, &picture_kind_heif, &picture_kind_jxl, &picture_kind_jpeg};

/* Read a descriptor to its end. Its first `there` bytes have been read already and are in `seen`.
 * `expected` is its size, 0 if that is unknown. */
static bool load(int fd, uint64_t expected, const uint8_t seen[PEEK_BYTES], size_t there,
                 uint8_t **data, size_t *bytes, struct error *error)
{
    size_t capacity = 1 << 16, used = 0;
    if (expected)
        capacity = (size_t)expected + 1;
    uint8_t *block = malloc(capacity);
    if (!block)
        goto no_memory;

    used = (size_t)least(there, capacity);
    memcpy(block, seen, used);
    for (;;) {
        ssize_t got = read(fd, block + used, capacity - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set(error, "cannot be read: %s", strerror(errno));
            goto fail;
        }
        if (got == 0)
            break;

        used += (size_t)got;
        if (used > file_bytes_max) {
            error_set(error, "the file is too large; a picture file can have at most %llu bytes",
                      (unsigned long long)file_bytes_max);
            goto fail;
        }
        if (used == capacity) {
            uint8_t *larger = realloc(block, capacity * 2);
            if (!larger)
                goto no_memory;
            block = larger;
            capacity *= 2;
        }
    }

    *data = block;
    *bytes = used;
    return true;

no_memory:
    error_set(error, "out of memory while reading");
fail:
    free(block);
    return false;
}

/* The name of a kind that is not read here, if that helps a person; else NULL. */
static const char *foreign_kind(const uint8_t *data, size_t bytes)
{
    static const struct {
        const char *magic;
        size_t bytes;
        const char *name;
    } known[] = {{"GIF8", 4, "a GIF picture"},    {"II*", 3, "a TIFF picture"},
                 {"MM\0*", 4, "a TIFF picture"},  {"BM", 2, "a BMP picture"},
                 {"YUV4MPEG2", 9, "a y4m video"}, {"\x1a\x45\xdf\xa3", 4, "a Matroska video"},
                 {"P6", 2, "a PPM picture"},      {"P5", 2, "a PGM picture"},
                 {"RIFF", 4, "a RIFF file"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (bytes >= known[i].bytes && !memcmp(data, known[i].magic, known[i].bytes))
            return known[i].name;

    return bytes >= 12 && !memcmp(data + 4, "ftyp", 4) ? "an MP4 video" : NULL;
}

const struct picture_kind *picture_kind_of(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i]->matches(data, bytes))
            return kinds[i];
    return NULL;
}

/* The kind of the content. NULL if this program does not read it: `error` says why. */
static const struct picture_kind *kind_of(const uint8_t *data, size_t bytes, struct error *error)
{
    static const char not_ours[] = "not a supported picture format (OpenEXR, Radiance .hdr, "
                                   "PFM, PNG, AVIF, HEIC, JPEG XL, JPEG)";

    if (!bytes) {
        error_set(error, "the file is empty");
        return NULL;
    }
    const struct picture_kind *kind = picture_kind_of(data, bytes);
    if (kind && !kind->open)
        error_set(error, "%s", kind->missing);
    if (kind)
        return kind->open ? kind : NULL;

    const char *foreign = foreign_kind(data, bytes);
    if (foreign)
        error_set(error, "%s: %s", foreign, not_ours);
    else
        error_set(error, "%s", not_ours);
    return NULL;
}

/* Owns `owned` from here on, also on failure. */
static bool open_loaded(struct picture_input **out, const uint8_t *data, size_t bytes, void *owned,
                        enum picture_alpha alpha, const char *layer, bool coded,
                        struct error *error)
{
    struct picture_input *input = NULL;
    const struct picture_kind *kind = kind_of(data, bytes, error);
    if (!kind)
        goto fail;
    if (layer && kind != &picture_kind_exr) {
        error_set(error, "only OpenEXR pictures have layers");
        goto fail;
    }
    if (coded && kind != &picture_kind_png) {
        error_set(error, "a picture, but not a PNG");
        goto fail;
    }
    input = calloc(1, sizeof *input);
    if (!input) {
        error_set(error, "out of memory");
        goto fail;
    }

    input->kind = kind;
    input->alpha = alpha;
    input->coded = coded;
    input->layer = layer;
    input->data = data;
    input->bytes = bytes;
    input->format.frames = 1;
    input->format.file_bytes = bytes;
    if (!kind->open(input, error))
        goto fail;

    make_printable(input->format.text);
    input->owned = owned;
    *out = input;
    return true;

fail:
    free(input);
    free(owned);
    return false;
}

bool picture_input_open_memory(struct picture_input **out, const void *data, size_t bytes,
                               enum picture_alpha alpha, const char *layer, struct error *error)
{
    *out = NULL;
    return open_loaded(out, data, bytes, NULL, alpha, layer, false, error);
}

bool picture_input_open_coded_memory(struct picture_input **out, const void *data, size_t bytes,
                                     struct error *error)
{
    *out = NULL;
    return open_loaded(out, data, bytes, NULL, PICTURE_ALPHA_STRAIGHT, NULL, true, error);
}

static bool open_path(struct picture_input **out, const char *path, enum picture_alpha alpha,
                      const char *layer, bool coded, struct error *error)
{
    *out = NULL;
    uint8_t seen[PEEK_BYTES], *data = NULL;
    size_t there, bytes = 0;
    struct stat about;
    uint64_t expected = 0;
    bool loaded = false;

    int fd = peek_open(path, seen, &there);
    if (fd < 0)
        return error_set(error, "cannot be opened: %s", strerror(errno));
    if (fstat(fd, &about))
        error_set(error, "cannot be read: %s", strerror(errno));
    else if (S_ISDIR(about.st_mode))
        error_set(error, "is a directory");
    else if (about.st_size > 0 && (uint64_t)about.st_size > file_bytes_max)
        error_set(error, "the file is too large; a picture file can have at most %llu bytes",
                  (unsigned long long)file_bytes_max);
    else {
        if (S_ISREG(about.st_mode) && about.st_size > 0)
            expected = (uint64_t)about.st_size;
        loaded = load(fd, expected, seen, there, &data, &bytes, error);
    }

    if (strcmp(path, "-") != 0)
        close(fd);
    return loaded && open_loaded(out, data, bytes, data, alpha, layer, coded, error);
}

bool picture_input_open(struct picture_input **out, const char *path, enum picture_alpha alpha,
                        const char *layer, struct error *error)
{
    return open_path(out, path, alpha, layer, false, error);
}

bool picture_input_open_coded(struct picture_input **out, const char *path, struct error *error)
{
    return open_path(out, path, PICTURE_ALPHA_STRAIGHT, NULL, true, error);
}

const struct picture_format *picture_input_format(const struct picture_input *input)
{
    return &input->format;
}

enum picture_read picture_input_read(struct picture_input *input, void *pixels, size_t pitch_bytes,
                                     struct error *error)
{
    if (input->next_frame == input->format.frames)
        return PICTURE_READ_END;

    size_t pixel_bytes = input->format.pixel == COX_PIXEL_RGBA_HALF ? 8 : 16;
    if (pitch_bytes < input->format.width * pixel_bytes || pitch_bytes % 4) {
        error_set(error, "the rows of the memory to read into are too short");
        return PICTURE_READ_ERROR;
    }

    if (!input->kind->read(input, pixels, pitch_bytes, error))
        return PICTURE_READ_ERROR;
    input->next_frame++;
    return PICTURE_READ_FRAME;
}

void picture_input_close(struct picture_input **input)
{
    if (!*input)
        return;
    (*input)->kind->close(*input);
    free((*input)->owned);
    free(*input);
    *input = NULL;
}
