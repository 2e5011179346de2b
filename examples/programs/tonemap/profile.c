/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "profile.h"
#include "messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- From and to a source --- */

bool profile_make(struct profile *profile, const struct source *from,
                  enum cox_arithmetic arithmetic)
{
    *profile = (struct profile){.shape = from->plan.shape,
                                .settings = from->plan.settings,
                                .steering = from->plan.steering,
                                .chosen = from->plan.chosen,
                                .arithmetic = arithmetic};

    struct error error;
    return file_identify(from->options->input, &profile->source, &error) ||
           message_file_error(from->options->input, &error);
}

static bool same_samples(const struct cox_video_format *a, const struct cox_video_format *b)
{
    return a->layout == b->layout && a->depth == b->depth && a->msb_aligned == b->msb_aligned &&
           a->chroma_x_log2 == b->chroma_x_log2 && a->chroma_y_log2 == b->chroma_y_log2;
}

bool profile_apply(const struct profile *profile, struct source *from, const char *name)
{
    const char *input = from->options->input;
    const struct video_format *format = from->format;
    struct film_plan *plan = &from->plan;
    struct file_identity source;
    struct error error;

    if (!file_identify(input, &source, &error))
        return message_file_error(input, &error);
    if (source.bytes != profile->source.bytes || source.hash != profile->source.hash)
        return message_incompatible("%s: from another film than %s (%" PRIu64 " bytes, %" PRIu64
                                    " bytes%s)",
                                    name, input, profile->source.bytes, source.bytes,
                                    source.bytes == profile->source.bytes ? ", different content"
                                                                          : "");

    plan->shape = profile->shape;
    plan->settings = profile->settings;
    plan->steering = profile->steering;
    plan->chosen = profile->chosen;
    if (format->width != plan->shape.width || format->height != plan->shape.height ||
        !same_samples(&format->pixel, &plan->shape.in))
        return message_incompatible(
            "%s: its frames have another size or format than when %s was written", input, name);

    source_set_target(from);
    return true;
}

/* --- Lines --- */

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* of UTF-8 */

bool profile_text_open(struct profile_text *text, const char *path)
{
    struct stat about;
    *text = (struct profile_text){.path = path};

    FILE *file = fopen(path, "rb");
    if (!file)
        return message_error("%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fileno(file), &about) || !S_ISREG(about.st_mode)) {
        fclose(file);
        return message_error("%s: not a regular file", path);
    }
    text->bytes = (size_t)about.st_size;
    text->text = malloc(text->bytes + 1);
    const bool read = text->text && fread(text->text, 1, text->bytes, file) == text->bytes;
    fclose(file);

    if (!read) {
        message_error("%s: cannot be read: %s", path,
                      text->text ? strerror(errno) : "out of memory");
        profile_text_close(text);
        return false;
    }

    text->text[text->bytes] = 0;
    if (!strncmp(text->text, byte_order_mark, sizeof byte_order_mark - 1))
        text->at = sizeof byte_order_mark - 1;
    return true;
}

void profile_text_close(struct profile_text *text)
{
    free(text->text);
    text->text = NULL;
}

/* Leave one blank between words and none at the ends. */
static void tidy(char *line)
{
    static const char blanks[] = " \t\r\v\f";
    char *to = line;

    for (const char *from = line + strspn(line, blanks); *from; from += strspn(from, blanks)) {
        const size_t word = strcspn(from, blanks);

        if (to > line)
            *to++ = ' ';
        memmove(to, from, word);
        to += word;
        from += word;
    }

    *to = 0;
}

char *profile_text_line(struct profile_text *text)
{
    char *line = text->text + text->at;
    if (text->at == text->bytes)
        return NULL;

    char *end = memchr(line, '\n', text->bytes - text->at);
    text->line++;
    text->is_ended = end;
    text->at = text->bytes;
    if (end) {
        text->at = (size_t)(end + 1 - text->text);
        *end = 0;
    }

    tidy(line);
    return line;
}

bool profile_text_wrong(const struct profile_text *text, const char *what)
{
    return message_incompatible("%s, line %u: %s", text->path, text->line, what);
}

/* --- Fields --- */

/* A number of a profile. Names and order are those of the file. */
struct field {
    const char *name;
    uint64_t least, most; /* of a whole number */
    size_t offset;
    enum { WHOLE_32, WHOLE_64, YES, REAL } kind;
};

#define PLACE(field) offsetof(struct profile, field)
static const struct field fields[] = {
    {"source-bytes", 0, UINT64_MAX, PLACE(source.bytes), WHOLE_64},
    {"source-hash", 0, UINT64_MAX, PLACE(source.hash), WHOLE_64},
    {"arithmetic", 1, 2, PLACE(arithmetic), WHOLE_32},
    {"width", 1, 65536, PLACE(shape.width), WHOLE_32},
    {"height", 1, 65536, PLACE(shape.height), WHOLE_32},
    {"in-layout", 0, COX_VIDEO_V210, PLACE(shape.in.layout), WHOLE_32},
    {"in-depth", 8, 16, PLACE(shape.in.depth), WHOLE_32},
    {"in-high-bits", 0, 1, PLACE(shape.in.msb_aligned), YES},
    {"in-chroma-x", 0, 1, PLACE(shape.in.chroma_x_log2), WHOLE_32},
    {"in-chroma-y", 0, 1, PLACE(shape.in.chroma_y_log2), WHOLE_32},
    {"in-site", 0, COX_CHROMA_TOP_LEFT, PLACE(shape.in.chroma_location), WHOLE_32},
    {"in-range", 0, COX_RANGE_FULL, PLACE(shape.in.range), WHOLE_32},
    {"transfer", 0, COX_TRANSFER_SDR, PLACE(shape.transfer), WHOLE_32},
    {"primaries", 0, COX_PRIMARIES_BT601_625, PLACE(shape.primaries), WHOLE_32},
    {"matrix", 0, COX_MATRIX_BT601, PLACE(shape.matrix), WHOLE_32},
    {"operator", 0, COX_OPERATOR_COUNT - 1, PLACE(shape.op), WHOLE_32},
    {"fade", 0, 1, PLACE(shape.desaturate_highlights), YES},
    {"dither", 0, COX_DITHER_ORDERED, PLACE(shape.dither), WHOLE_32},
    {"gamut", 0, COX_GAMUT_HUE, PLACE(shape.gamut), WHOLE_32},
    {"scale", 0, COX_SCALE_FILTER, PLACE(shape.scale), WHOLE_32},
    {"scale-width", 0, 65536, PLACE(shape.out_width), WHOLE_32},
    {"scale-height", 0, 65536, PLACE(shape.out_height), WHOLE_32},
    {"out-layout", 0, COX_VIDEO_SEMI_PLANAR, PLACE(shape.out.layout), WHOLE_32},
    {"out-depth", 8, 10, PLACE(shape.out.depth), WHOLE_32},
    {"out-high-bits", 0, 1, PLACE(shape.out.msb_aligned), YES},
    {"out-chroma-x", 0, 1, PLACE(shape.out.chroma_x_log2), WHOLE_32},
    {"out-chroma-y", 0, 1, PLACE(shape.out.chroma_y_log2), WHOLE_32},
    {"out-site", 0, COX_CHROMA_TOP_LEFT, PLACE(shape.out.chroma_location), WHOLE_32},
    {"out-range", 0, COX_RANGE_FULL, PLACE(shape.out.range), WHOLE_32},
    {"encoding", 0, COX_ENCODING_PQ, PLACE(shape.encoding), WHOLE_32},
    {"out-primaries", 0, COX_OUT_BT2020, PLACE(shape.out_primaries), WHOLE_32},
    {"sdr-white", 0, 0, PLACE(settings.sdr_white_nits), REAL},
    {"peak", 0, 0, PLACE(settings.peak_nits), REAL},
    {"hlg-peak", 0, 0, PLACE(settings.hlg_peak_nits), REAL},
    {"gain", 0, 0, PLACE(settings.gain), REAL},
    {"desaturate", 0, 0, PLACE(settings.desaturate), REAL},
    {"detail", 0, 0, PLACE(settings.detail), REAL},
    {"gamut-knee", 0, 0, PLACE(settings.gamut_knee), REAL},
    {"follow", 0, 1, PLACE(steering.on), YES},
    {"lookahead", 0, 1, PLACE(steering.lookahead), YES},
    {"known-peak", 0, 0, PLACE(steering.known_peak_nits), REAL},
    {"trust-known-peak", 0, 1, PLACE(steering.trusts), YES},
    {"chosen-transfer", 0, 1, PLACE(chosen.transfer), YES},
    {"chosen-primaries", 0, 1, PLACE(chosen.primaries), YES},
    {"chosen-range", 0, 1, PLACE(chosen.range), YES},
    {"chosen-gamut", 0, 1, PLACE(chosen.gamut), YES},
};
enum { FIELDS = sizeof fields / sizeof fields[0], VALUE_BYTES = 32 };

static void write_value(const struct profile *profile, const struct field *field,
                        char text[VALUE_BYTES])
{
    const char *at = (const char *)profile + field->offset;
    uint32_t narrow;
    uint64_t wide;
    float real;
    bool yes;

    switch (field->kind) {
    case WHOLE_32:
        memcpy(&narrow, at, sizeof narrow);
        snprintf(text, VALUE_BYTES, "%" PRIu32, narrow);
        break;
    case WHOLE_64:
        memcpy(&wide, at, sizeof wide);
        snprintf(text, VALUE_BYTES, "%" PRIu64, wide);
        break;
    case YES:
        memcpy(&yes, at, sizeof yes);
        snprintf(text, VALUE_BYTES, "%d", yes);
        break;
    default:
        memcpy(&real, at, sizeof real);
        snprintf(text, VALUE_BYTES, "%.9g", (double)real);
    }
}

static bool read_value(struct profile *profile, const struct field *field, const char *text)
{
    char *at = (char *)profile + field->offset, *end;

    errno = 0;
    if (field->kind == REAL) {
        const float real = strtof(text, &end);
        memcpy(at, &real, sizeof real);
        return end != text && !*end && real >= -1e9f && real <= 1e10f;
    }

    const uint64_t wide = strtoull(text, &end, 10);
    const uint32_t narrow = (uint32_t)wide;
    const bool yes = wide;

    if (end == text || *end || errno || *text == '-' || wide < field->least || wide > field->most)
        return false;

    if (field->kind == WHOLE_64)
        memcpy(at, &wide, sizeof wide);
    else if (field->kind == WHOLE_32)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &yes, sizeof yes);
    return true;
}

size_t profile_format(const struct profile *profile, const char *what, char text[PROFILE_BYTES])
{
    char value[VALUE_BYTES];

    int at = snprintf(text, PROFILE_BYTES, "coxswain-%s 1 %s\n", what, cox_version());
    for (size_t i = 0; i < FIELDS; i++) {
        write_value(profile, &fields[i], value);
        at += snprintf(text + at, (size_t)(PROFILE_BYTES - at), "%s %s\n", fields[i].name, value);
    }
    return (size_t)at;
}

void profile_write(const struct profile *profile, const char *what, FILE *to)
{
    char text[PROFILE_BYTES];
    fwrite(text, 1, profile_format(profile, what, text), to);
}

/* Whether the library can map frames of this profile. */
static bool is_sound(const struct profile *profile)
{
    struct cox_video_shape shape = profile->shape;
    shape.reshape = false; /* the film's frames decide */
    struct cox_constants params;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t width, height;

    source_out_size(&shape, &width, &height);
    uint32_t count = cox_video_planes(&shape.in, shape.width, shape.height, planes);
    bool sound = count > 0 && (shape.out.depth == 8 || shape.out.depth == 10);
    for (uint32_t p = 0; p < count; p++)
        shape.in_pitch_bytes[p] = (planes[p].row_bytes + 15) / 16 * 16;

    count = cox_video_planes(&shape.out, width, height, planes);
    sound = sound && count > 0;
    for (uint32_t p = 0; p < count; p++)
        shape.out_pitch_bytes[p] = (planes[p].row_bytes + 15) / 16 * 16;
    return sound && cox_video_prepare(&shape, &profile->settings, &params) == COX_OK;
}

bool profile_read(struct profile *profile, const char *what, struct profile_text *text)
{
    char first[64], kind[16] = "", version[16] = "";
    int format = 0;
    memset(profile, 0, sizeof *profile);

    const char *line = profile_text_line(text);
    snprintf(first, sizeof first, "%.60s", line ? line : "");

    if (sscanf(first, "coxswain-%15s %d %15s", kind, &format, version) != 3 || strcmp(kind, what))
        return message_incompatible("%s: not a %s file of cox-tonemap", text->path, what);
    if (format != 1 || strcmp(version, cox_version()))
        return message_incompatible(
            "%s: written by version %s, but this is version %s; run all steps of a film with "
            "one version",
            text->path, version, cox_version());

    for (size_t i = 0; i < FIELDS; i++) {
        const size_t length = strlen(fields[i].name);
        line = profile_text_line(text);
        if (!line)
            return message_incompatible("%s: truncated", text->path);
        if (strncmp(line, fields[i].name, length) || line[length] != ' ' ||
            !read_value(profile, &fields[i], line + length + 1))
            return message_incompatible("%s, line %u: expected '%s' and a valid value", text->path,
                                        text->line, fields[i].name);
    }

    return is_sound(profile) ||
           message_incompatible("%s: damaged: impossible film settings", text->path);
}

/* NULL = the profiles are equal. Otherwise the texts are the values of the field in both. */
static const struct field *first_difference(const struct profile *one, const struct profile *other,
                                            char text[VALUE_BYTES], char other_text[VALUE_BYTES])
{
    for (size_t i = 0; i < FIELDS; i++) {
        write_value(one, &fields[i], text);
        write_value(other, &fields[i], other_text);
        if (strcmp(text, other_text))
            return &fields[i];
    }
    return NULL;
}

bool profile_equal(const struct profile *one, const struct profile *other)
{
    char text[VALUE_BYTES], other_text[VALUE_BYTES];
    return !first_difference(one, other, text, other_text);
}

bool profile_same(const struct profile *one, const char *first, const struct profile *other,
                  const char *name)
{
    char text[VALUE_BYTES], other_text[VALUE_BYTES];
    const struct field *field = first_difference(one, other, text, other_text);
    return !field || message_incompatible("%s and %s do not match: %s is %s and %s", first, name,
                                          field->name, text, other_text);
}
