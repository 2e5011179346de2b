/* Sessions of every shape that the rig's kernels allow, with their frames and what must come out of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_SHAPES_H
#define COX_TESTS_FAKE_SHAPES_H

#include "specs.h"
#include "fake_rig.h"

/* The stages of fake_rig.h: rig_map, rig_halo, rig_table, rig_count, rig_chroma, rig_first and rig_second,
 * rig_inplace. */
enum shape {
    SHAPE_MAP,
    SHAPE_HALO,
    SHAPE_TABLE,
    SHAPE_COUNT,
    SHAPE_CHROMA,
    SHAPE_TWO,
    SHAPE_INPLACE,
    /* With passes; "," between them: */
    SHAPE_EXCHANGE,     /* near, near: by HALO */
    SHAPE_OVERLAP,      /* near near: the first one's rows are each band's own */
    SHAPE_FLIP,         /* map, flip: by WHOLE */
    SHAPE_CURVE,        /* count, map: by REDUCE, and a function that makes a parameter of it */
    SHAPE_ALL,          /* count, near near, flip: the same, overlap, WHOLE */
    SHAPE_THEN_INPLACE, /* near, inplace */
    SHAPES,
    SHAPES_PLAIN = SHAPE_EXCHANGE
};
enum { SHAPE_PASSES_MAX = 3, SHAPE_BINDINGS_MAX = 5 };

const char *shape_name(enum shape shape);

/* A pool of frames of one shape. */
struct shape_frames {
    struct rig *rig;
    enum shape shape;
    uint32_t rows;
    uint32_t columns;
    uint32_t pitch;
    uint32_t count;
    uint32_t binding_count;
    struct cox__binding bindings[SHAPE_BINDINGS_MAX];
    cox_buffer *(*buffers)[SHAPE_BINDINGS_MAX];    /* NULL for scratch */
    uint32_t pass_count;                           /* 0: it has none */
    uint32_t pass_device_plus_1[SHAPE_PASSES_MAX]; /* the only one that is to do the pass; 0 = all may */
    const char *pass_policy;                       /* of the last one */
    bool wrapped;                                  /* the memory is not the library's; freed when it is released */
    struct rig_params *params;
    unsigned char **before; /* contents of the first buffer */
};

/* `count` frames of random content. */
struct shape_frames *shape_frames_new(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                      uint32_t count);
/* The same with rows that are `pitch` bytes apart. */
struct shape_frames *shape_frames_padded(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                         uint32_t pitch, uint32_t count);
void shape_frames_free(struct shape_frames **frames);

/* Give frame `index % count` other buffers, with contents of their own. False, and none: there is no memory. */
void shape_drop(struct shape_frames *frames, uint32_t index);
bool shape_make(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* Fill its inputs anew. */
void shape_refill(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* The same of those that are read only; shape_check then finds the frame wrong. */
void shape_refill_inputs(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* Create a session for such frames. It keeps all fields of `extra` except rows, bindings, stages and params_bytes. */
cox_status shape_session(struct shape_frames *frames, const struct cox__session_spec *extra, cox_session **out);

/* Make frame `index % count` ready: what it reads is there, what it writes is not. */
void shape_prepare(struct shape_frames *frames, uint32_t index);
struct cox__frame_spec shape_frame(const struct shape_frames *frames, uint32_t index);

/* The first byte of a frame that is wrong, as text; "" if all are right (static storage per thread). What no kernel
 * writes is not looked at. */
const char *shape_check(const struct shape_frames *frames, uint32_t index);

/* The same of the bytes that no kernel writes and that are to be what shape_prepare left there. */
const char *shape_check_padding(const struct shape_frames *frames, uint32_t index);

#endif
