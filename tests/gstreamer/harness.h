/* Shared by the tests of the plugin: a test bench around coxtonemap, frames for it, and their samples.
 *
 * Variables declared with g_autoptr and g_autofree are released at the end of their block.
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

/* coxtonemap on the CPU, between these caps. */
struct bench {
    GstHarness *h;
    GstElement *element;
    GstBus *bus;
    GstVideoInfo in;
    const char *out;
};

/* If `properties` is NULL, the input caps are not negotiated yet. */
struct bench bench_open(const char *properties, const char *in, const char *out);
void bench_close(struct bench *bench);

/* Variables that are closed at the end of their block. */
#define BENCH(name, properties, in, out) \
    __attribute__((cleanup(bench_close))) struct bench name = bench_open(properties, in, out)
#define POOL(name, bench, caps, align) \
    __attribute__((cleanup(pool_close))) GstBufferPool *name = pool_open(bench, caps, align)

void info_of(const char *caps_text, GstVideoInfo *info);

/* A frame with a pattern that depends on `seed`, at the time of frame `seed`. If `buffer` is NULL, it gets memory
 * outside any pool. */
GstBuffer *make_frame(GstBuffer *buffer, const GstVideoInfo *info, guint seed);

/* Push a frame, which must be accepted. */
void bench_push(struct bench *bench, GstBuffer *buffer);

/* Push a frame made with `seed`, and discard the next output frame. */
void bench_pass(struct bench *bench, guint seed);

/* The samples of the next output frame, without row padding. */
GBytes *bench_pull(struct bench *bench);
GBytes *samples(GstBuffer *buffer, const char *caps_text); /* takes ownership of the buffer */

/* The largest difference between two samples; G_MAXUINT if the numbers of samples differ. */
guint difference(GBytes *a, GBytes *b);

guint64 bench_stat(const struct bench *bench, const char *field);

/* Check that the element has posted such a message. */
void bench_has_message(const struct bench *bench, GstMessageType type);

/* The pool that the element offers upstream, activated. `align` may be NULL. */
GstBufferPool *pool_open(const struct bench *bench, const char *caps_text, const GstVideoAlignment *align);
GstBuffer *pool_frame(GstBufferPool *pool);
void pool_close(GstBufferPool **pool);

#endif
