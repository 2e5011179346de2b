/* What the tests of the plugin share: a harness around coxtonemap, frames for it, and their samples.
 *
 * Variables declared with g_autoptr and g_autofree are released where their block ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_GSTREAMER_HARNESS_H
#define COX_TESTS_GSTREAMER_HARNESS_H

#include <criterion/criterion.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#define PQ "colorimetry=bt2100-pq"
#define SMALL "width=64,height=48,framerate=25/1"
#define SIZED "width=330,height=180,framerate=25/1,"
#define RAW "video/x-raw,"
#define IN_10 RAW "format=I420_10LE," SIZED PQ
#define IN_SDR RAW "format=I420_10LE," SIZED "colorimetry=bt709"
#define OUT_8 RAW "format=I420," SIZED "colorimetry=bt709"
#define OUT_SCALED RAW "format=I420,width=160,height=90,framerate=25/1,colorimetry=bt709"

enum { FRAME_MS = 40 };

/* coxtonemap on the processor, between these caps. */
struct bench {
    GstHarness *h;
    GstElement *element;
    GstBus *bus;
    GstVideoInfo in;
    const char *out;
};

/* Without `properties` it agrees on no caps of the input yet. */
struct bench bench_open(const char *properties, const char *in, const char *out);
void bench_close(struct bench *bench);

/* Variables that are closed at the end of their block. */
#define BENCH(name, properties, in, out) \
    __attribute__((cleanup(bench_close))) struct bench name = bench_open(properties, in, out)
#define POOL(name, bench, caps, align) \
    __attribute__((cleanup(pool_close))) GstBufferPool *name = pool_open(bench, caps, align)

void info_of(const char *caps_text, GstVideoInfo *info);

/* A frame of a pattern that differs with `seed`, at the time of frame `seed`. Without `buffer` it gets memory of no
 * pool. */
GstBuffer *make_frame(GstBuffer *buffer, const GstVideoInfo *info, guint seed);

/* Push a frame, which must be taken. */
void bench_push(struct bench *bench, GstBuffer *buffer);

/* Push a frame of that seed, and throw away the next one that comes out. */
void bench_pass(struct bench *bench, guint seed);

/* The samples of the next frame that comes out, without what lies between rows. */
GBytes *bench_pull(struct bench *bench);
GBytes *samples(GstBuffer *buffer, const char *caps_text); /* takes the buffer */

/* By how much samples differ at most; G_MAXUINT if there are more of one. */
guint difference(GBytes *a, GBytes *b);

guint64 bench_stat(const struct bench *bench, const char *field);

/* There is a message of the element's. */
void bench_has_message(const struct bench *bench, GstMessageType type);

/* The pool that the element offers upstream, active. `align` may be NULL. */
GstBufferPool *pool_open(const struct bench *bench, const char *caps_text, const GstVideoAlignment *align);
GstBuffer *pool_frame(GstBufferPool *pool);
void pool_close(GstBufferPool **pool);

#endif
