/* The caps of coxtonemap's pads: HDR video in, SDR video out, in the formats of one table; and
 * streams that are not HDR, which pass unchanged.
 *
 * A stream is HDR if its colorimetry has the transfer of PQ (smpte2084) or HLG (arib-std-b67), or
 * if a property says what it is.
 * Thread-safety: pure; safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_CAPS_H
#define GST_COX_CAPS_H

#include <coxswain/coxswain.h>
#include <gst/video/video.h>

/* "What the stream says". */
enum { CAPS_AS_SAID = -1 };

struct caps_rules {
    bool passthrough_sdr;
    bool scale;    /* sizes may differ */
    int transfer;  /* an enum cox_transfer that overrides the stream, or CAPS_AS_SAID */
    int primaries; /* an enum cox_primaries, or the same */
};

/* For a pad template. The caller owns it. */
GstCaps *caps_template(GstPadDirection direction);

/* What the other pad can have if the pad of `direction` has `caps`. The caller owns it. */
GstCaps *caps_transform(const struct caps_rules *rules, GstPadDirection direction, GstCaps *caps);

/* Fixate `wanted`, which is consumed, to what is most like the fixed `caps` of the pad of
 * `direction`: the same size, chroma and layout; 8 bits. Another size keeps the picture's shape. */
GstCaps *caps_fixate(GstPadDirection direction, const GstCaps *caps, GstCaps *wanted);

/* Whether frames with these fixed caps are tone-mapped, or pass. */
bool caps_are_hdr(const struct caps_rules *rules, const GstCaps *caps);

/* Set the format, size, light and peak_nits of an image with these fixed caps. False: the format is
 * not supported. */
bool caps_image(const struct caps_rules *rules, const GstCaps *caps, const GstVideoInfo *info,
                struct cox_video_image *image);

#endif
