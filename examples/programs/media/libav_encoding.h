/* Encoders of devices. Some take frames in the host's memory (NVENC), others only frames of their
 * device (VA-API, Vulkan), to which each frame is uploaded once.
 *
 * Thread-safety: one encoder from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_ENCODING_H
#define LIBAV_ENCODING_H

#include "libav_calls.h"

#include <coxswain/video.h>

/* Whether a device does the work. */
bool libav_encoder_is_hardware(const AVCodec *codec);

/* Whether the encoder takes frames of 4:2:0 with `depth` bits only with Cb and Cr interleaved. */
bool libav_encoder_interleaves(const AVCodec *codec, uint32_t depth);

/* Before avcodec_open2, if the encoder takes only frames of its device: open the device, and make
 * `encoder` take frames whose samples were `encoder->pix_fmt` before. The encoder owns all of it.
 * False, and `error` is a sentence about the encoder. */
bool libav_encoder_attach(AVCodecContext *encoder, struct error *error);

/* Upload a frame in the host's memory. The caller unreferences `to`. Returns libav's code. */
int libav_encoder_upload(AVCodecContext *encoder, AVFrame *to, const AVFrame *from);

/* Open the encoder for a small film, to see whether it works on this machine. */
bool libav_encoder_try(const AVCodec *codec, struct error *error);

#endif
