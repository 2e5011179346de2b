/* A part of a film in a container has the same frames as decoding the whole film gives. Tested with several
 * distances of key frames, open and closed groups of pictures, and containers with different ways to seek.
 *
 * The films are made with ffmpeg. If it or an encoder is missing, tests are skipped. COX_RANGES sets the number of
 * places that are tried in each film (default 20).
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/video.h"
#include "support/folder.h"
#include "unit/programs/streams.h"

#if COX_HAVE_LIBAV

#include "media/libav_index.h"

enum { FRAMES = 130, WIDTH = 96, HEIGHT = 64, RUN = 3 };

static void end(void)
{
    stream_close();
    remove_folder();
}

TestSuite(video_seek, .init = make_folder, .fini = end, .timeout = 1800);

/* One frame's samples, row by row. */
struct samples {
    uint8_t bytes[2 * WIDTH * HEIGHT * 2];
};

static enum video_read read_samples(struct samples *samples)
{
    const enum video_read result = stream_read();
    const struct bytes *packed = frame_pack(&stream.frame);
    cr_assert_leq(packed->count, sizeof samples->bytes);
    memset(samples, 0, sizeof *samples);
    memcpy(samples->bytes, packed->data, packed->count);
    return result;
}

/* Read all frames. Returns their number. */
static unsigned read_all(const char *name, struct samples *all)
{
    unsigned count = 0;
    stream_open_path(in_folder(name), NULL, 0);
    while (count <= FRAMES && read_samples(&all[count]) == VIDEO_READ_FRAME)
        count++;
    cr_assert_str_empty(said.text, "%s: %s", name, said.text);
    return count;
}

/* Read a few frames from `from` on. */
static void expect_range(const char *name, const struct samples *all, unsigned count, unsigned from)
{
    struct samples got;
    stream_open_path(in_folder(name), NULL, 0);
    enum video_read result = stream_skip(from);
    for (unsigned n = from; n < from + RUN; n++) {
        if (result == VIDEO_READ_FRAME)
            result = read_samples(&got);
        cr_assert_eq(result, n < count ? VIDEO_READ_FRAME : VIDEO_READ_END, "%s from %u, frame %u: %s", name, from, n,
                     said.text);
        cr_assert(result == VIDEO_READ_END || !memcmp(&got, &all[n], sizeof got), "%s from %u: frame %u differs", name,
                  from, n);
    }
}

static void expect_ranges(const char *name)
{
    struct samples *all = malloc((FRAMES + 1) * sizeof *all);
    const char *wanted = getenv("COX_RANGES");
    const unsigned ranges = wanted ? (unsigned)atoi(wanted) : 20, count = read_all(name, all);
    uint64_t random = 12345;
    cr_assert(count > 30, "%s: %u frames", name, count);
    for (unsigned i = 0; i < ranges; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        expect_range(name, all, count, (unsigned)((random >> 33) % (count + 2)));
    }
    free(all);
}

#define SOURCE "-f lavfi -i testsrc2=size=96x64:rate=24:duration=6 -frames:v 130 -pix_fmt yuv420p10le "

static const unsigned intervals[] = {1, 2, 3, 7, 12, 24, 60, 250};

/* `%u` in the encoder's parameters precedes the distance of key frames. */
static void expect_codec(const char *encoder, const char *parameters)
{
    skip_unless(shell(FFMPEG SOURCE "-frames:v 1 -c:v %s x.mkv", encoder), "ffmpeg or its %s is not installed",
                encoder);
    for (unsigned open = 0; open < 2; open++)
        for (unsigned i = 0; i < COUNT_OF(intervals); i++) {
            char name[64];
            snprintf(name, sizeof name, "%s-%u-%u.%s", encoder, intervals[i], open, (i + open) % 3 ? "mkv" : "mp4");
            cr_assert(shell(FFMPEG SOURCE
                            "-c:v %s -preset ultrafast -bf 3 %s:keyint=%u:min-keyint=%u:bframes=3:%s%u %s",
                            encoder, parameters, intervals[i], intervals[i],
                            strstr(encoder, "265") ? "log-level=none:open-gop=" : "open-gop=", open, name),
                      "%s", name);
            expect_ranges(name);
        }
}

Test(video_seek, ranges_of_h264_are_those_of_the_whole)
{
    expect_codec("libx264", "-x264-params scenecut=0");
}

Test(video_seek, ranges_of_hevc_are_those_of_the_whole)
{
    expect_codec("libx265", "-x265-params scenecut=0");
}

/* Films with less information, or that begin in the middle of another one. */
Test(video_seek, other_films_too)
{
    static const struct {
        const char *name, *options;
    } cases[] = {
        {"a.mkv", SOURCE "-c:v libx264 -preset ultrafast -bf 2 -x264-params keyint=24:open-gop=1:bframes=2"},
        {"b.ts", "-i a.mkv -c copy"},
        {"c.h264", "-i a.mkv -c copy"},                                        /* no times */
        {"d.mkv", "-i a.mkv -c copy -ss 1.9"},                                 /* begins with an open group */
        {"e.mp4", "-ss 1.9 -i a.mkv -c copy"},                                 /* an edit list hides its first frames */
        {"f.mkv", "-i a.mkv -c copy -cues_to_front 0 -write_crc32 0 -live 1"}, /* no cues */
        {"g.mkv", "-i a.mkv -c:v ffv1"},
        {"h.mkv", "-i a.mkv -vf setpts='PTS+mod(N\\,3)*0.01/TB' -fps_mode vfr -c:v libx264 -preset ultrafast"},
        {"i.mkv", "-i a.mkv -c:v libx264 -preset ultrafast -x264-params intra-refresh=1:keyint=30:bframes=0"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const bool made = shell(FFMPEG "%s %s", cases[i].options, cases[i].name);
        if (!i)
            skip_unless(made, "ffmpeg or its libx264 is not installed");
        cr_assert(made, "%s", cases[i].name);
        expect_ranges(cases[i].name);
    }
}

/* --- Stored indexes ----------------------------------------------------------------------------------------------- */

static unsigned version_now;

static unsigned another_version(void)
{
    return version_now + 1;
}

static bool is_kept(const struct libav_index_key *key)
{
    struct libav_index index;
    const bool loaded = libav_index_load(&index, folder, key);
    if (loaded) {
        cr_expect_eq(index.frame_count, 3);
        cr_expect_eq(index.times[2], 90);
        cr_expect_eq(index.access_count, 1);
        cr_expect_eq(index.access[0].seek, 10);
    }
    libav_index_free(&index);
    return loaded;
}

Test(video_seek, an_index_is_kept_for_its_file_and_the_versions_of_ffmpeg_that_made_it)
{
    int64_t times[] = {10, 50, 90};
    struct libav_access access[] = {{10, 10, 0}};
    const struct libav_index index = {.frame_count = 3, .times = times, .access_count = 1, .access = access};
    const struct libav_index_key key = {.file = {.inode = 5, .bytes = 1000, .modified_ns = 9}, .samples = 77};
    struct libav_index_key other = key;
    skip_unless(libav_load(), "%s", libav_loading_error);
    cr_expect_not(is_kept(&key));
    libav_index_keep(&index, folder, &key);
    cr_expect(is_kept(&key));
    other.samples++;
    cr_expect_not(is_kept(&other), "of other samples");
    other = key;
    other.stream++;
    cr_expect_not(is_kept(&other), "of another stream");
    other = key;
    other.file.changed_ns++;
    cr_expect_not(is_kept(&other), "of the file before a repair");

    const struct libav_calls calls = lib;
    version_now = calls.avformat_version();
    lib.avformat_version = another_version;
    cr_expect_not(is_kept(&key), "of another libavformat");
    lib = calls;
    version_now = calls.avcodec_version();
    lib.avcodec_version = another_version;
    cr_expect_not(is_kept(&key), "of another libavcodec");
    libav_index_keep(&index, folder, &key);
    cr_expect(is_kept(&key), "the index was replaced");
    lib = calls;
    cr_expect_not(is_kept(&key), "the stored index now belongs to the other version");
}

Test(video_seek, an_index_is_kept_only_where_no_other_user_could_have_put_it)
{
    int64_t times[] = {10, 50, 90};
    struct libav_access access[] = {{10, 10, 0}};
    const struct libav_index index = {.frame_count = 3, .times = times, .access_count = 1, .access = access};
    const struct libav_index_key key = {.samples = 77}, other = {.samples = 78};
    skip_unless(libav_load(), "%s", libav_loading_error);
    libav_index_keep(&index, folder, &key);

    const char plant[] = "ln -s precious $(cat name)";
    cr_assert(shell("ls *.index >name && mv $(cat name) precious && cp precious before && %s", plant));
    cr_expect_not(is_kept(&key), "read through a link");
    cr_assert(shell("rm -f $(cat name) && %s", plant));
    libav_index_keep(&index, folder, &key);
    cr_expect(shell("cmp precious before && test ! -L $(cat name)"), "written through a link");
    cr_expect(is_kept(&key));

    cr_assert(shell("chmod 666 $(cat name)"));
    cr_expect_not(is_kept(&key), "others may write to the file");
    libav_index_keep(&index, folder, &key);
    cr_assert(shell("chmod 777 ."));
    cr_expect_not(is_kept(&key), "others may write to the folder");
    libav_index_keep(&index, folder, &other);
    cr_expect(shell("test $(ls *.index | wc -l) = 1"), "written where others may write");
    cr_assert(shell("chmod 700 . && mkdir there && mv *.index there && ln -s there link"));
    cr_expect(shell("test $(ls there | wc -l) = 1"));
    libav_index_keep(&index, in_folder("link"), &other);
    cr_expect(shell("test $(ls there | wc -l) = 1"), "written behind a link to a folder");
}

#else

Test(video_seek, no_containers)
{
    cr_skip_test("skipped, because there is no libavformat");
}

#endif
