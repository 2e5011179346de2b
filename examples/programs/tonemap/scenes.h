/* The light of each frame of a film, as `cox-tonemap steer` finds it: a file of text that people may read and change.
 *
 * After the profile's lines:
 *   frames FIRST COUNT [end]     the film's, all of which follow; end: it has no more
 *   scene FRAME [peak NITS] [gain GAIN]
 *                                a scene begins here; what is given holds for all of it
 *   FRAME PEAK GAIN              from this frame on, to the next such line: the brightest light that keeps its
 *                                gradation, in cd/m2, and what light is multiplied by first
 *   # ...                        nothing
 *   end
 * Thread-safety: pure but for the files.
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

/* Memory for so many frames. False, here and below, after saying why. */
bool scenes_make(struct scenes *scenes, uint64_t count);

bool scenes_write(const struct scenes *scenes, const char *path);
bool scenes_read(struct scenes *scenes, const char *path);
void scenes_free(struct scenes *scenes);

/* Which piece so many frames are: their numbers, those of all that the scenes are of, and hashes of the source, the
 * profile, the frames' light and the encoder's options. Pieces of one name are equal; those of one film have the same
 * profile. */
void scenes_piece(const struct scenes *scenes, uint64_t first, uint64_t count, uint64_t encoding,
                  char text[VIDEO_PIECE_BYTES]);

/* The same read. False: it is no such name. */
struct scenes_piece {
    uint64_t first, count, film_first, film_count, source, profile, light, encoding;
};
bool scenes_piece_read(struct scenes_piece *piece, const char *text);

/* Set a light, as near to these values as the library takes it. */
void scenes_light_set(struct scenes_light *light, float peak_nits, float gain);

/* The light of a frame; NULL: it is not among them. */
const struct scenes_light *scenes_of(const struct scenes *scenes, uint64_t frame);

#endif
