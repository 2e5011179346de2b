/* What coxtonemap's pads can have: HDR video in, SDR video out, in the formats of one table; and streams that are not
 * HDR, which pass as they are.
 *
 * A stream is HDR if its colorimetry has the transfer of PQ (smpte2084) or HLG (arib-std-b67), or if the element was
 * told what it is.
 * Thread-safety: pure: safe from any thread, on arguments no other thread changes.
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
    int transfer;  /* an enum cox_transfer that counts whatever the stream says, or CAPS_AS_SAID */
    int primaries; /* an enum cox_primaries, or the same */
};

/* For a pad template; the caller's. */
GstCaps *caps_template(GstPadDirection direction);

/* What the other pad can have where the pad of `direction` has `caps`; the caller's. */
GstCaps *caps_transform(const struct caps_rules *rules, GstPadDirection direction, GstCaps *caps);

/* Of `wanted`, which it takes, what is most like the fixed caps `caps` of the pad of `direction`: the same size, chroma
 * and layout; 8 bits. Another size keeps the picture's shape. */
GstCaps *caps_fixate(GstPadDirection direction, const GstCaps *caps, GstCaps *wanted);

/* Whether frames with these fixed caps are tone-mapped, or pass. */
bool caps_are_hdr(const struct caps_rules *rules, const GstCaps *caps);

/* Set the format, size, light and peak_nits of an image with these fixed caps. False: they are of no format here. */
bool caps_image(const struct caps_rules *rules, const GstCaps *caps, const GstVideoInfo *info,
                struct cox_video_image *image);

#endif
