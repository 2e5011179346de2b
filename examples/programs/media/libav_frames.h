/* coxswain/libav.h over FFmpeg's libraries as they are loaded here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_FRAMES_H
#define LIBAV_FRAMES_H

#include "libav_calls.h"

#include <libavutil/frame.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/pixfmt.h>

#define av_buffer_create lib.av_buffer_create
#define av_buffer_unref lib.av_buffer_unref
#define av_frame_alloc lib.av_frame_alloc
#define av_frame_clone lib.av_frame_clone
#define av_frame_copy_props lib.av_frame_copy_props
#define av_frame_free lib.av_frame_free
#define av_frame_get_side_data lib.av_frame_get_side_data
#define av_frame_move_ref lib.av_frame_move_ref
#define av_frame_remove_side_data lib.av_frame_remove_side_data
#define avcodec_align_dimensions2 lib.avcodec_align_dimensions2
#define avcodec_default_get_buffer2 lib.avcodec_default_get_buffer2
#include <coxswain/libav.h>
#undef av_buffer_create
#undef av_buffer_unref
#undef av_frame_alloc
#undef av_frame_clone
#undef av_frame_copy_props
#undef av_frame_free
#undef av_frame_get_side_data
#undef av_frame_move_ref
#undef av_frame_remove_side_data
#undef avcodec_align_dimensions2
#undef avcodec_default_get_buffer2

#endif
