/* Dolby Vision: from the metadata of a frame (RPU, reference processing unit) to its reshaping.
 *
 * The base layer of profile 5 and of AV1's profile 10.0 has no ordinary colours: frames must be
 * reshaped. The base layers of profiles 8.1 and 8.4 are HDR10 and HLG, and their reshaping gives
 * the picture that was graded. Profiles 4 and 7 have an enhancement layer, which is not decoded.
 * Map their base layer without reshaping.
 *
 * Sources: US patent 10,701,399 (syntax), ETSI GS CCM 001 (composition).
 *
 * The functions allow any bytes, of untrusted files too. They do not log.
 *
 * Thread-safety: every function here is pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_DOLBY_H
#define COXSWAIN_DOLBY_H

#include <coxswain/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The metadata of one frame. */
struct cox_dolby_frame {
    /* 5, 7, 8, or another; AV1's 10.0 counts as 5, its others as 8. 0 = unknown */
    uint32_t profile;
    uint32_t mapping; /* identifier of the curves, for frames that repeat them */
    bool has_colours; /* the matrices of `reshape` were sent */

    /* The full picture also needs the residual of an enhancement layer. It is 0 if the layer is
     * minimal (MEL). */
    bool has_residual;
    bool is_full_enhancement; /* FEL */

    float source_peak_nits; /* of the mastering display; 0 = unknown */
    float scene_peak_nits;  /* level 1: the brightest light of the scene; 0 = unknown */
    float scene_average_nits;

    struct cox_video_reshape reshape;
};

/* Read the metadata of a frame.
 *
 * cox_dolby_read_hevc takes the payload of an HEVC NAL unit of type 62: it begins with byte 25 and
 * has emulation prevention bytes. FFmpeg has it as AV_FRAME_DATA_DOVI_RPU_BUFFER.
 * cox_dolby_read_av1 takes an ITU-T T.35 message of AV1, from the country code on.
 *
 * `before` is the frame before in the order of decoding. It gives what the metadata does not
 * repeat. NULL = none. `out` may be equal to `before`. It is unchanged on an error.
 *
 * Errors:
 *   COX_E_INVALID    An argument is NULL. The bytes are damaged, or are not such metadata. A
 *                    checksum of 0 counts as missing.
 *   COX_E_NOT_FOUND  The metadata repeats curves that `before` does not have. */
COX_API COX_MUST_CHECK cox_status cox_dolby_read_hevc(const uint8_t *bytes, size_t count,
                                                      const struct cox_dolby_frame *before,
                                                      struct cox_dolby_frame *out);
COX_API COX_MUST_CHECK cox_status cox_dolby_read_av1(const uint8_t *bytes, size_t count,
                                                     const struct cox_dolby_frame *before,
                                                     struct cox_dolby_frame *out);

#ifdef __cplusplus
}
#endif
#endif
