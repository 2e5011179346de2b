/* The light of each frame of a film, as `cox-tonemap steer` finds it: a text file that people may
 * read and change.
 *
 * The lines after those of the profile:
 *   frames FIRST COUNT [end]     The frames of the film. With `end`, the film ends with them.
 *   scene FRAME [peak NITS] [gain GAIN]
 *                                A scene begins here. A given peak or gain holds for all of it.
 *   FRAME PEAK GAIN              Holds from this frame to the next line of this kind. PEAK is the
 *                                brightest light that keeps its gradation, in cd/m2. GAIN is a
 *                                factor that is applied to the light first.
 *   # ...                        A comment.
 *   end
 * Thread-safety: pure except for the files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_SCENES_H
#define TONEMAP_SCENES_H

#include "profile.h"

enum { SCENES_FRAMES_MAX = 10000000 }; /* five days */

struct scenes {
    struct profile profile;
    uint64_t first, count;
    bool last; /* the film ends with them */
    struct scenes_light {
        float peak_nits, gain;
        bool begins; /* a scene */
    } * light;       /* of each frame */
};

/* Memory for `count` frames. Here and below: false after printing why. */
bool scenes_make(struct scenes *scenes, uint64_t count);

bool scenes_write(const struct scenes *scenes, const char *path);
bool scenes_read(struct scenes *scenes, const char *path);
void scenes_free(struct scenes *scenes);

/* The name of a piece of `count` frames. It has the frames of the piece and of the whole film, and
 * hashes of the source, the profile, the light of the frames and the encoder's options. Pieces of
 * one name are equal; those of one film have the same profile. */
void scenes_piece(const struct scenes *scenes, uint64_t first, uint64_t count, uint64_t encoding,
                  char text[VIDEO_PIECE_BYTES]);

/* Read a name. False if it is not the name of a piece. */
struct scenes_piece {
    uint64_t first, count, film_first, film_count, source, profile, light, encoding;
};
bool scenes_piece_read(struct scenes_piece *piece, const char *text);

/* Set a light, limited to the values that the library accepts. */
void scenes_light_set(struct scenes_light *light, float peak_nits, float gain);

/* The light of a frame; NULL = the frame is not in the scenes. */
const struct scenes_light *scenes_of(const struct scenes *scenes, uint64_t frame);

#endif
