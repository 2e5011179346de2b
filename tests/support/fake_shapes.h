/* Sessions of every shape that the rig's kernels allow, with frames and expected results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_SHAPES_H
#define COX_TESTS_FAKE_SHAPES_H

#include "specs.h"
#include "fake_rig.h"

/* Named for their stages in fake_rig.h: rig_map, rig_halo, rig_table, rig_count, rig_chroma, rig_first and
 * rig_second, rig_inplace. */
enum shape {
    SHAPE_MAP,
    SHAPE_HALO,
    SHAPE_TABLE,
    SHAPE_COUNT,
    SHAPE_CHROMA,
    SHAPE_TWO,
    SHAPE_INPLACE,
    /* Several passes, separated by ",": */
    SHAPE_EXCHANGE,     /* near, near: exchange by HALO */
    SHAPE_OVERLAP,      /* near near, fused: bands compute neighbours' rows again */
    SHAPE_FLIP,         /* map, flip: exchange by WHOLE */
    SHAPE_CURVE,        /* count, map: by REDUCE, and a function that computes a parameter from it */
    SHAPE_ALL,          /* count, near near, flip: REDUCE, fused, WHOLE */
    SHAPE_THEN_INPLACE, /* near, inplace */
    SHAPES,
    SHAPES_PLAIN = SHAPE_EXCHANGE
};
enum { SHAPE_PASSES_MAX = 3, SHAPE_BINDINGS_MAX = 5 };

const char *shape_name(enum shape shape);

/* What is behind the columns of a row, which no kernel writes. */
enum shape_rest {
    REST_UNDEFINED, /* it keeps its value or becomes zero, unless a device fails */
    REST_PARTIAL,   /* it keeps its value: the outputs are written in part */
    REST_GAPS,      /* it does not belong to the frame: row_bytes is less than the pitch */
};

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
    uint32_t pass_count;                           /* 0: no passes */
    uint32_t pass_device_plus_1[SHAPE_PASSES_MAX]; /* the only device for the pass; 0 = any */
    const char *pass_policy;                       /* of the last pass */
    enum shape_rest rest;                          /* set it with shape_set_rest */
    bool wrapped;                                  /* wrapped memory of the application, freed at its release */
    struct rig_params *params;
    unsigned char **before; /* original contents of the first buffer */
};

/* Number of pieces of wrapped memory that the library has not released. */
uint32_t shape_lent(void);

/* `count` frames of random content. If memory runs out, it tries again. */
struct shape_frames *shape_frames_new(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                      uint32_t count);
/* Like shape_frames_new, with rows that are `pitch` bytes apart. */
struct shape_frames *shape_frames_padded(struct rig *rig, enum shape shape, uint32_t rows, uint32_t columns,
                                         uint32_t pitch, uint32_t count);
/* Choose what the bytes behind the columns are, before the session is created. */
void shape_set_rest(struct shape_frames *frames, enum shape_rest rest);
void shape_frames_free(struct shape_frames **frames);

/* shape_drop destroys the buffers of frame `index % count`. shape_make creates others with new contents, and
 * returns false if memory runs out. */
void shape_drop(struct shape_frames *frames, uint32_t index);
bool shape_make(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* Fill the frame's inputs with other contents. */
void shape_refill(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* Fill only the inputs that are never written. shape_check then finds the frame wrong. */
void shape_refill_inputs(struct shape_frames *frames, uint32_t index, uint64_t seed);

/* Create a session for these frames. It keeps all fields of `extra` except rows, bindings, stages and params_bytes. */
cox_status shape_session(struct shape_frames *frames, const struct cox__session_spec *extra, cox_session **out);

/* Prepare frame `index % count`: restore its inputs and overwrite its outputs. */
void shape_prepare(struct shape_frames *frames, uint32_t index);
struct cox__frame_spec shape_frame(const struct shape_frames *frames, uint32_t index);

/* The first wrong byte of a frame, as text; "" if all are right (static storage per thread). Bytes that no kernel
 * writes are not checked. */
const char *shape_check(const struct shape_frames *frames, uint32_t index);

/* The same for bytes that no kernel writes: they must be as shape_prepare left them. REST_UNDEFINED: or zero. */
const char *shape_check_padding(const struct shape_frames *frames, uint32_t index);

/* SHAPE_MAP: the first wrong byte of a frame that has read `in` and written the input of frame `index % count`. */
const char *shape_check_map(const struct shape_frames *frames, cox_buffer *in, uint32_t index);

#endif
