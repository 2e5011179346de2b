/* The look as a look-up table: a .cube file. A frame whose pixels are the points of the lattice
 * goes through the devices as a film's frames do. So the table holds what the program does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"
#include "devices.h"
#include "jobs.h"
#include "look_table.h"
#include "media/cube.h"
#include "messages.h"
#include "source.h"

#include <math.h>
#include <stdlib.h>

enum { POINTS = 33, CODE_MOST = 65535 };

struct cube_maker {
    const struct options *options;
    struct devices devices;
    cox_video_stream *stream;
    struct cox_video_image in, out;
    struct cube cube;
    struct outfile *file;
};

/* --- The lattice as a frame: a row for each pair of green and blue --- */

/* The plane of red, green or blue in COX_VIDEO_GBR. */
static uint32_t plane_of(int color)
{
    static const uint32_t planes[3] = {2, 0, 1};
    return planes[color];
}

/* The sample of point `i` of the lattice. */
static uint16_t *sample_of(const struct cox_video_image *image, int color, size_t i)
{
    const uint32_t p = plane_of(color);
    const size_t x = i % image->width, y = i / image->width;
    char *row = (char *)image->data[p] + y * (size_t)image->pitch_bytes[p];
    return (uint16_t *)row + x;
}

static void fill_lattice(const struct cube_maker *maker)
{
    const size_t points = maker->cube.points;
    for (size_t i = 0; i < cube_points(&maker->cube); i++) {
        const size_t place[3] = {i % points, i / points % points, i / points / points};
        for (int c = 0; c < 3; c++)
            *sample_of(&maker->in, c,
                       i) = (uint16_t)lround((double)place[c] * CODE_MOST / (double)(points - 1));
    }
}

static bool take_lattice(struct cube_maker *maker)
{
    const size_t count = cube_points(&maker->cube);
    maker->cube.colors = malloc(3 * count * sizeof(float));
    if (!maker->cube.colors)
        return message_error("out of memory");

    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            maker->cube.colors[3 * i + (size_t)c] = (float)*sample_of(&maker->out, c, i) /
                                                    CODE_MOST;
    return true;
}

/* --- Mapping --- */

static cox_status make_images(struct cube_maker *maker)
{
    const struct options *options = maker->options;
    const struct cox_video_format samples = {
        .layout = COX_VIDEO_GBR, .depth = 16, .range = COX_RANGE_FULL};
    const uint32_t width = maker->cube.points, height = width * width;
    cox_runtime *runtime = maker->devices.runtime;

    cox_status status = cox_video_image_create(runtime, &samples, width, height, &maker->in);
    if (status == COX_OK)
        status = cox_video_image_create(runtime, &samples, width, height, &maker->out);

    maker->in.transfer = options->transfer;
    maker->in.primaries = options->primaries;
    if (options->wide)
        maker->out.out_primaries = COX_OUT_BT2020;
    if (options->hdr_nits > 0)
        maker->out.encoding = COX_ENCODING_PQ;
    return status;
}

static cox_status map(struct cube_maker *maker)
{
    const struct options *options = maker->options;
    struct cox_session_params session = {0};
    struct cox_video_result result = {.status = COX_OK};
    struct cox_tonemap_options look = {.op = options->op,
                                       .peak = COX_PEAK_FIXED,
                                       .dither = COX_NO,
                                       .settings = source_settings(options)};
    look.settings.peak_nits = (float)options->peak_nits;
    if (options->has_gamut)
        look.gamut = COX_GAMUT_ALWAYS_CLIP + options->gamut;
    devices_choose(options, &session);
    session.warmup = COX_WARMUP_NONE;

    cox_status status = cox_video_stream_create(maker->devices.runtime, &session, &look,
                                                &maker->stream);
    if (status == COX_OK)
        status = cox_video_stream_send(maker->stream, &maker->in, &maker->out, NULL);
    if (status == COX_OK)
        status = cox_video_stream_receive(maker->stream, true, &result);
    return status == COX_OK ? result.status : status;
}

/* --- The file --- */

static const char *transfer_name(const struct options *options)
{
    return options->transfer == COX_TRANSFER_HLG ? "hlg" : "pq";
}

/* The options that make this table again, those with a default that depends on others included. */
static void describe(const struct options *options, char *text, size_t bytes)
{
    static const char *const primaries[] = {"bt2020", "bt709",     "p3-d65",
                                            "p3-dci", "bt601-525", "bt601-625"};
    const bool hdr = options->hdr_nits > 0;
    char colours[64] = "", ends[64] = "", gamut[32] = "";
    double desaturate = 0.75;
    if (options->desaturate < 0)
        desaturate = 0;
    else if (options->desaturate > 0)
        desaturate = (double)options->desaturate;

    if (hdr)
        snprintf(ends, sizeof ends, "--hdr %g", options->hdr_nits);
    else
        snprintf(ends, sizeof ends, "--sdr-white %g%s", source_white_nits(options),
                 options->wide ? " --wide" : "");
    if (options->transfer == COX_TRANSFER_HLG)
        snprintf(colours, sizeof colours, " --hlg-peak %g",
                 options->hlg_peak_nits > 0 ? options->hlg_peak_nits : 1000);
    if (options->has_gamut && options->gamut == COX_GAMUT_CLIP)
        snprintf(gamut, sizeof gamut, " --gamut clip");
    else if (options->has_gamut)
        snprintf(gamut, sizeof gamut, " --gamut %s:%g",
                 options->gamut == COX_GAMUT_HUE ? "hue" : "compress",
                 options->gamut_knee > 0 ? (double)options->gamut_knee : 0.9);

    snprintf(text, bytes,
             "# cox-tonemap %s --transfer %s --primaries %s%s --operator %s --peak %g "
             "--exposure %g --desat %g%s %s --points %u\n",
             cox_version(), transfer_name(options), primaries[options->primaries], colours,
             cox_operator_name(options->op), options->peak_nits, options->exposure_stops,
             desaturate, gamut, ends, options->points ? options->points : POINTS);
}

static bool write_file(struct cube_maker *maker)
{
    const struct options *options = maker->options;
    char comment[512], signals[64], title[128];
    struct error error;
    look_table_signals(options, signals, sizeof signals);
    snprintf(title, sizeof title, "%s, %s", signals, cox_operator_name(options->op));
    describe(options, comment, sizeof comment);
    cube_write(outfile_stream(maker->file), &maker->cube, title, comment);

    if (!outfile_finish(&maker->file, &error))
        return message_file_error(options->output, &error);
    say("written   %s (%s, %u points on each side)\n", options->output, title, maker->cube.points);
    return true;
}

static bool run(struct cube_maker *maker)
{
    const struct options *options = maker->options;
    struct error error;
    maker->cube = (struct cube){.points = options->points ? options->points : POINTS,
                                .most = {1, 1, 1}};
    if (!outfile_open(&maker->file, options->output, &error))
        return message_file_error(options->output, &error);
    if (!devices_start(&maker->devices, options))
        return false;

    cox_status status = make_images(maker);
    if (status == COX_OK) {
        fill_lattice(maker);
        status = map(maker);
    }
    if (status != COX_OK)
        return message_status_error("cannot map the table's colours", status);
    return take_lattice(maker) && write_file(maker);
}

bool cube_job(const struct options *options)
{
    struct cube_maker maker = {.options = options};
    const bool good = run(&maker);

    cox_video_stream_destroy(&maker.stream);
    cox_video_image_destroy(&maker.in);
    cox_video_image_destroy(&maker.out);
    devices_stop(&maker.devices);
    cube_free(&maker.cube);
    outfile_abandon(&maker.file);
    return good;
}
