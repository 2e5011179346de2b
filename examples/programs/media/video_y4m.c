/* YUV4MPEG2: one line of text that describes the stream; then, for each frame, a line that begins
 * with FRAME, and the planes with their rows packed. Tags are separated by a space, numbers are
 * decimal. The format is that of mjpegtools, with ffmpeg's names for more than 8 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/least.h"
#include "video_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longest lines that are read. Nobody writes longer ones, and input without line ends is not
 * y4m. */
enum { HEADER_MAX = 2048, FRAME_HEADER_MAX = 1024 };

static const char magic[] = "YUV4MPEG2";
static const char marker[] = "FRAME";
enum { MAGIC_BYTES = sizeof magic - 1, MARKER_BYTES = sizeof marker - 1 };

/* --- The stream's header ---------------------------------------------------------------------- */

/* One tag: its letter, and what follows. */
struct tag {
    uint64_t offset; /* in the stream */
    const char *text;
};

static bool fail_tag(const struct tag *tag, const char *why, struct error *error)
{
    return error_set(error, "the y4m header, at byte %" PRIu64 ": \"%.60s\": %s", tag->offset,
                     tag->text, why);
}

/* Read digits, up to the value `most`; `*at` moves behind them. */
static bool read_number(const char **at, uint64_t most, uint64_t *value)
{
    const char *digits = *at;
    uint64_t v = 0;

    while (**at >= '0' && **at <= '9') {
        v = v * 10 + (uint64_t)(*(*at)++ - '0');
        if (v > most)
            return false;
    }
    *value = v;
    return *at != digits;
}

static bool take_side(const struct tag *tag, uint32_t *side, struct error *error)
{
    const char *at = tag->text + 1;
    uint64_t value = 0;
    if (!read_number(&at, VIDEO_SIDE_MAX, &value) || *at || !value)
        return fail_tag(tag, "width and height must be from 1 to 65536", error);
    *side = (uint32_t)value;
    return true;
}

static bool take_ratio(const struct tag *tag, struct video_rational *ratio, struct error *error)
{
    const char *at = tag->text + 1;
    uint64_t num = 0, den = 0;
    bool good = read_number(&at, UINT32_MAX, &num) && *at++ == ':' &&
                read_number(&at, UINT32_MAX, &den) && !*at;
    if (!good || !num != !den) /* 0:0 = unknown */
        return fail_tag(tag, "expected a ratio such as 24000:1001", error);

    *ratio = (struct video_rational){(uint32_t)num, (uint32_t)den};
    return true;
}

static bool take_interlacing(const struct tag *tag, char *letter, struct error *error)
{
    char c = tag->text[1];
    if (!c || !strchr("p?tbm", c) || tag->text[2])
        return fail_tag(tag, "unknown interlacing", error);
    if (c != 'p' && c != '?')
        return fail_tag(
            tag,
            "interlaced video is not supported; deinterlace it first (ffmpeg -i IN -vf bwdif -strict -1 "
            "OUT.y4m)",
            error);

    *letter = c;
    return true;
}

/* The depth that y4m names with these digits, such as "10"; 0 = y4m does not name it. */
static uint32_t depth_of(const char *digits)
{
    static const struct {
        const char *digits;
        uint32_t depth;
    } known[] = {{"9", 9}, {"10", 10}, {"12", 12}, {"14", 14}, {"16", 16}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(digits, known[i].digits))
            return known[i].depth;
    return 0;
}

static bool take_colours(const struct tag *tag, struct cox_video_format *pixel, struct error *error)
{
    static const struct {
        const char *name;
        uint32_t depth; /* 0 = the digits after the name */
        uint32_t x_log2, y_log2;
        enum cox_chroma_location chroma_location;
    } known[] = {
        {"420jpeg", 8, 1, 1, COX_CHROMA_CENTER},    {"420mpeg2", 8, 1, 1, COX_CHROMA_LEFT},
        {"420paldv", 8, 1, 1, COX_CHROMA_TOP_LEFT}, {"420", 8, 1, 1, COX_CHROMA_LEFT},
        {"422", 8, 1, 0, COX_CHROMA_LEFT},          {"444", 8, 0, 0, COX_CHROMA_LEFT},
        {"420p", 0, 1, 1, COX_CHROMA_LEFT},         {"422p", 0, 1, 0, COX_CHROMA_LEFT},
        {"444p", 0, 0, 0, COX_CHROMA_LEFT},
    };
    const char *name = tag->text + 1;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t length = strlen(known[i].name);
        uint32_t depth = 0;
        if (!strcmp(name, known[i].name))
            depth = known[i].depth;
        else if (!known[i].depth && !strncmp(name, known[i].name, length))
            depth = depth_of(name + length);
        if (!depth)
            continue;

        pixel->depth = depth;
        pixel->chroma_x_log2 = known[i].x_log2;
        pixel->chroma_y_log2 = known[i].y_log2;
        pixel->chroma_location = known[i].chroma_location;
        return true;
    }

    if (!strncmp(name, "mono", 4))
        return fail_tag(tag, "video without chroma is not supported", error);
    if (!strcmp(name, "444alpha"))
        return fail_tag(tag, "video with an alpha plane is not supported", error);

    return fail_tag(
        tag,
        "expected 4:2:0, 4:2:2 or 4:4:4 of 8, 9, 10, 12, 14 or 16 bits; convert it first "
        "(ffmpeg -i IN -pix_fmt yuv420p10le -strict -1 OUT.y4m)",
        error);
}

static bool take_extension(const struct tag *tag, struct video_format *format, struct error *error)
{
    static const char range[] = "XCOLORRANGE=", piece[] = "XCOXSWAIN=";

    if (!strncmp(tag->text, piece, sizeof piece - 1))
        snprintf(format->piece, sizeof format->piece, "%s", tag->text + sizeof piece - 1);
    if (strncmp(tag->text, range, sizeof range - 1))
        return true;
    const char *value = tag->text + sizeof range - 1;
    bool full = !strcmp(value, "FULL");
    if (!full && strcmp(value, "LIMITED"))
        return fail_tag(tag, "neither LIMITED nor FULL", error);
    format->pixel.range = full ? COX_RANGE_FULL : COX_RANGE_LIMITED;
    format->colours.has_range = true;
    return true;
}

static bool take_tag(const struct tag *tag, struct video_format *format, struct error *error)
{
    switch (*tag->text) {
    case 'W':
        return take_side(tag, &format->width, error);
    case 'H':
        return take_side(tag, &format->height, error);
    case 'F':
        return take_ratio(tag, &format->rate, error);
    case 'A':
        return take_ratio(tag, &format->aspect, error);
    case 'I':
        return take_interlacing(tag, &format->interlacing, error);
    case 'C':
        return take_colours(tag, &format->pixel, error);
    case 'X':
        return take_extension(tag, format, error);
    default: /* as readers of this format do */
        return true;
    }
}

/* Read a line byte by byte: what follows it belongs elsewhere. VIDEO_READ_END: the stream ended
 * within it. */
static enum video_read read_line(struct video_source *source, char *line, size_t capacity,
                                 size_t *length, struct error *error)
{
    while (*length < capacity) {
        uint64_t got;
        struct iovec piece = {line + *length, 1};
        enum video_read result = video_source_read(source, &piece, 1, &got, error);
        if (result != VIDEO_READ_FRAME)
            return result;
        if (line[*length] == '\n') {
            line[*length] = 0;
            return VIDEO_READ_FRAME;
        }
        ++*length;
    }

    error_set(error, "the line that begins at byte %" PRIu64 " is longer than %zu bytes",
              source->offset - *length, capacity);

    return VIDEO_READ_ERROR;
}

static bool read_header(struct video_input *input, struct error *error)
{
    char line[HEADER_MAX];
    size_t length = 0;
    enum video_read result = read_line(&input->source, line, sizeof line, &length, error);
    if (result == VIDEO_READ_END)
        return error_set(error, "truncated: it ends inside the y4m header, at byte %" PRIu64,
                         input->source.offset);
    if (result != VIDEO_READ_FRAME)
        return false;
    if (strlen(line) != length)
        return error_set(error, "the y4m header, at byte %zu: a zero byte", strlen(line));
    if (strncmp(line, magic, MAGIC_BYTES) || (line[MAGIC_BYTES] && line[MAGIC_BYTES] != ' '))
        return error_set(error, "not y4m: it does not begin with YUV4MPEG2");

    for (char *at = line + MAGIC_BYTES; *at;) {
        at += strspn(at, " ");
        size_t bytes = strcspn(at, " ");
        if (!bytes)
            break;
        bool last = !at[bytes];
        at[bytes] = 0;
        struct tag tag = {(uint64_t)(at - line), at};
        if (!take_tag(&tag, &input->format, error))
            return false;
        at += bytes + !last;
    }

    return true;
}

/* Set the number of frames. No frame header has parameters: no known program writes any. */
static bool count_frames(struct video_input *input, struct error *error)
{
    const uint64_t frame_bytes = input->planes.frame_bytes + MARKER_BYTES + 1;
    const uint64_t here = input->source.offset;
    uint64_t all;
    if (!video_source_bytes(&input->source, &all, error))
        return false;

    if (all > here) {
        input->cut = (all - here) % frame_bytes != 0;
        input->format.frames = (all - here) / frame_bytes;
    }
    return true;
}

static bool y4m_open(struct video_input *input, struct error *error)
{
    struct video_format *format = &input->format;

    /* The defaults for tags that are missing. */
    format->interlacing = '?';
    format->pixel = (struct cox_video_format){.layout = COX_VIDEO_PLANAR,
                                              .depth = 8,
                                              .chroma_x_log2 = 1,
                                              .chroma_y_log2 = 1,
                                              .chroma_location = COX_CHROMA_CENTER};
    if (!read_header(input, error))
        return false;

    const char *missing = NULL;
    if (!format->width)
        missing = "width (W)";
    else if (!format->height)
        missing = "height (H)";
    if (missing)
        return error_set(error, "the y4m header, before byte %" PRIu64 ": missing %s",
                         input->source.offset, missing);
    if (!video_planes_of(&input->planes, &format->pixel, format->width, format->height, error))
        return false;
    if (!count_frames(input, error))
        return false;
    video_describe(format, "y4m");
    return true;
}

/* --- Frames ----------------------------------------------------------------------------------- */

static enum video_read fail_marker(const struct video_input *input, uint64_t begin,
                                   struct error *error)
{
    error_set(error, "frame %" PRIu64 " (the first is 0), byte %" PRIu64 ": FRAME is missing",
              input->next_frame, begin);
    return VIDEO_READ_ERROR;
}

/* A side in a y4m header's line, after " W" or " H"; 0 = missing or not sane. */
static uint64_t side_in(const char *line, const char *tag)
{
    const char *at = strstr(line, tag);
    uint64_t side = 0;
    if (!at)
        return 0;

    at += strlen(tag);
    if (!read_number(&at, VIDEO_SIDE_MAX, &side))
        return 0;
    return side;
}

/* Fail at the header of a second stream where a frame should begin, as in two files one after the
 * other. The header's first bytes have been read. */
static enum video_read fail_header(struct video_input *input, uint64_t begin, struct error *error)
{
    char rest[HEADER_MAX];
    size_t length = 0;
    enum video_read result = read_line(&input->source, rest, sizeof rest, &length, error);
    if (result == VIDEO_READ_CANCELLED)
        return result;

    rest[least(length, sizeof rest - 1)] = 0;
    const uint64_t width = side_in(rest, " W"), height = side_in(rest, " H");
    if (strncmp(rest, magic + MARKER_BYTES + 1, MAGIC_BYTES - MARKER_BYTES - 1))
        return fail_marker(input, begin, error);

    if (width && height && (width != input->format.width || height != input->format.height))
        error_set(error,
                  "frame %" PRIu64 " (the first is 0), byte %" PRIu64
                  ": the picture's size changes from %u x %u to %" PRIu64 " x %" PRIu64,
                  input->next_frame, begin, input->format.width, input->format.height, width,
                  height);
    else
        error_set(error,
                  "frame %" PRIu64 " (the first is 0), byte %" PRIu64
                  ": a second y4m stream begins",
                  input->next_frame, begin);
    return VIDEO_READ_ERROR;
}

/* Read the line before a frame. Its parameters do not matter for progressive video. */
static enum video_read read_marker(struct video_input *input, uint64_t begin, struct error *error)
{
    char line[FRAME_HEADER_MAX];
    uint64_t got;
    struct iovec piece = {line, MARKER_BYTES + 1};
    enum video_read result = video_source_read(&input->source, &piece, 1, &got, error);
    if (result == VIDEO_READ_END && !got)
        return VIDEO_READ_END;
    if (result != VIDEO_READ_FRAME && result != VIDEO_READ_END)
        return result;
    if (result == VIDEO_READ_FRAME && !memcmp(line, magic, MARKER_BYTES + 1))
        return fail_header(input, begin, error);
    if (memcmp(line, marker, least(got, MARKER_BYTES)))
        return fail_marker(input, begin, error);
    if (result == VIDEO_READ_END)
        return video_fail_truncated(input, begin,
                                    MARKER_BYTES + 1 - got + input->planes.frame_bytes, error);
    if (line[MARKER_BYTES] == '\n')
        return VIDEO_READ_FRAME;
    if (line[MARKER_BYTES] != ' ')
        return fail_marker(input, begin, error);

    size_t length = MARKER_BYTES + 1;
    result = read_line(&input->source, line, sizeof line, &length, error);
    if (result == VIDEO_READ_END)
        return video_fail_truncated(input, begin, 1 + input->planes.frame_bytes, error);

    return result;
}

static enum video_read y4m_read(struct video_input *input, void *const memory[],
                                const size_t pitch_bytes[], struct error *error)
{
    uint64_t begin = input->source.offset;
    enum video_read result = read_marker(input, begin, error);
    if (result != VIDEO_READ_FRAME)
        return result;
    return video_read_samples(input, begin, memory, pitch_bytes, error);
}

const struct video_reader video_reader_y4m = {
    .from_source = true, .open = y4m_open, .read = y4m_read, .lender = &video_lender_file};
