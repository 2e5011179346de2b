/* Decoding by a device that libavutil knows: NVDEC (cuda), VA-API, VDPAU, Vulkan and others.
 *
 * The decoder leaves its frames in the device's memory. A thread transfers each one to memory that
 * the session's devices read, while the decoder works on later frames and the session on earlier
 * ones:
 *
 *     decoder ─► queue ─ transfer thread ─► libav_receive ─► the film's frames
 *
 * The queue keeps the order of frames and of the decoder's errors. A failure of the hardware is the
 * last thing in it, so that it comes out behind all frames before it. Then software decodes from
 * there (libav_seek.c).
 *
 * Thread-safety: one thread at a time; the transfer thread is internal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_HARDWARE_H
#define LIBAV_HARDWARE_H

#include "libav_calls.h"

#include <coxswain/video.h>
#include <pthread.h>

struct libav;

/* Frames in the queue. More would only take memory: each is a whole frame in both memories. */
enum { LIBAV_HARDWARE_AHEAD = 3 };

/* The decoder's threads. They do not decode, but give the device frames in advance: with one, NVDEC
 * waits for the next frame a tenth of the time. */
enum { LIBAV_HARDWARE_THREADS = 4 };

/* What libav_receive returns if the hardware failed. */
#define LIBAV_HARDWARE_FAILED FFERRTAG('C', 'O', 'X', 'H')

enum { LIBAV_DEVICES_MAX = 32, LIBAV_DEVICE_BYTES = 64, LIBAV_WHY_BYTES = 256 };

/* The kinds of devices that may decode, in the order in which they are tried. */
struct libav_devices {
    enum AVHWDeviceType types[LIBAV_DEVICES_MAX];
    uint32_t count, next;           /* those before `next` were refused */
    char which[LIBAV_DEVICE_BYTES]; /* which device of the kind, for libavutil; "" = its default */
    char why[LIBAV_WHY_BYTES];      /* why the first ones were refused; "" = none was tried */
};

/* What is tried for the value of --hwdec: "auto" or NAME[:DEVICE]; NULL and "none" = nothing. False,
 * and `error` lists the names, if libavutil has no such name. */
bool libav_devices_wanted(struct libav_devices *wanted, const char *hwdec, struct error *error);

/* Note why the device `type` does not decode. */
void libav_devices_refuse(struct libav_devices *wanted, enum AVHWDeviceType type, const char *why);

/* Open a device. NULL: `why` says why. The caller unreferences it. */
AVBufferRef *libav_device_open(enum AVHWDeviceType type, const char *which, char *why,
                               size_t bytes);

/* A decoder of this codec for such a device, preferably `usual`; the format of its frames. NULL =
 * none. Only libavcodec's own decoders: others lose metadata, such as that of Dolby Vision. */
const AVCodec *libav_device_decoder(const AVCodec *usual, enum AVHWDeviceType type,
                                    enum AVPixelFormat *format);

/* The place of a frame or an error in the queue. */
struct libav_hardware_entry {
    AVFrame *frame; /* in the device's memory, then in the host's */
    int code;       /* 0 = a frame; LIBAV_HARDWARE_FAILED; other errors are the decoder's */
    int cause;      /* libav's code, if the frame could not be transferred */
};

struct libav_hardware {
    enum AVHWDeviceType type;
    const char *name; /* of that type */
    const AVCodec *codec;
    AVBufferRef *device;
    enum AVPixelFormat format; /* of the decoder's frames */
    AVFrame *decoded;          /* on its way to the queue */
    uint32_t ahead;            /* entries that are queued before the first one is given out */
    bool closed;               /* nothing follows what is queued: the end, or a failure */
    bool failed;               /* the last entry is the failure, or will be */
    bool stopped;              /* the failure was given out */
    char why[LIBAV_WHY_BYTES]; /* the failure; "" = none */

    struct libav *libav;
    pthread_t thread;
    pthread_mutex_t lock; /* around all that follows */
    pthread_cond_t pushed_one, transferred_one;
    struct libav_hardware_entry queue[LIBAV_HARDWARE_AHEAD]; /* entry n at n modulo AHEAD */
    uint64_t pushed, transferred, popped;
    bool ends;
};

/* Open the next of the wanted devices that can decode this codec. NULL: no other one can. The thread
 * runs from here on. */
struct libav_hardware *libav_hardware_open(struct libav *libav, const AVCodec *usual,
                                           struct libav_devices *wanted);

/* Before avcodec_open2: let this decoder use the device. False: out of memory. */
bool libav_hardware_attach(struct libav_hardware *hardware, AVCodecContext *decoder);

/* avcodec_send_packet and avcodec_receive_frame, for any decoder of `libav`. Received frames are in
 * the host's memory. */
int libav_send(struct libav *libav, const AVPacket *packet);
int libav_receive_frame(struct libav *libav, AVFrame *frame);

/* avcodec_flush_buffers: forget all frames. */
void libav_flush(struct libav *libav);

/* End the thread, release all frames and the device. Accepts NULL. */
void libav_hardware_close(struct libav_hardware **hardware);

/* Describe a frame's samples as cox_av_format does. Devices widen samples to 16 bits: 12 bits are
 * then in the upper bits. */
int libav_samples_of(const struct libav *libav, const AVFrame *frame,
                     struct cox_video_format *pixel);

/* After a failure: give a frame that software decoded the layout of the first frame. Returns libav's
 * code. */
int libav_lay_out(struct libav *libav, AVFrame *frame);

#endif
