/* A synthetic scene, as a picture or as video.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SCENE_H
#define BENCH_SCENE_H

#include <coxswain/coxswain.h>
#include <stddef.h>
#include <stdint.h>

struct bench_scene;

/* NULL = out of memory. */
struct bench_scene *bench_scene_create(uint32_t width, uint32_t height);
void bench_scene_destroy(struct bench_scene **scene);

void bench_scene_picture(const struct bench_scene *scene, enum cox_pixel_in pixel, void *pixels,
                         size_t pitch_bytes);

/* PQ or HLG with BT.2020, 4:2:0, 10 bits, limited range; three planes. */
void bench_scene_video(const struct bench_scene *scene, enum cox_transfer transfer,
                       void *const planes[3], const size_t pitch_bytes[3]);

#endif
