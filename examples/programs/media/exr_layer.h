/* Which part and which channels of an OpenEXR file are the picture.
 *
 * A layer is the channels of a part whose names begin alike: "ViewLayer.Combined.R" is red in the
 * layer "ViewLayer.Combined". "R" is in the unnamed one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXR_LAYER_H
#define EXR_LAYER_H

#include "common/error.h"

#include <openexr.h>
#include <stdbool.h>

struct exr_layer {
    int part, parts;
    const exr_attr_chlist_t *channels; /* of the part */
    /* Places in that list; -1 = absent. R, G, B, A. If `chroma`: RY, Y, BY, A. If `grey`, the first
     * three are Y. */
    int channel[4];
    bool grey, chroma;
    char name[64]; /* for people, and what --layer takes; "" = the unnamed one */
};

/* Find the layer that `wanted` names: by its name, its part's name, or the last word of either.
 *
 * NULL = the main layer. This is the unnamed layer of a part without a name, or a layer or part
 * called Combined, beauty or rgba. Without such a layer, it is the first one with colours.
 *
 * The text of an error lists the layers if `wanted` is not among them. */
bool exr_layer_find(exr_const_context_t context, const char *wanted, struct exr_layer *layer,
                    struct error *error);

#endif
