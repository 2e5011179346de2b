/* A user's own kernel: OpenCL C and, in JSON, what the library must know about it
 * (docs/guide/cox-lab.md lists every key). All values of a file are bounded.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BINDINGS_H
#define COX_EXAMPLES_LAB_BINDINGS_H

#include <coxswain/session.h>

enum {
    LAB_SIZE_MIN = 16, /* of a frame, columns and rows */
    LAB_SIZE_MAX = 16384,
    LAB_BINDINGS_BYTES_MAX = 64 << 10, /* of the JSON */
    LAB_SOURCE_BYTES_MAX = 1 << 20,    /* of the kernel */
    LAB_WHOLE_BYTES_MAX = 1 << 30,
    LAB_ELEMENT_BYTES_MAX = 256,
    LAB_KERNEL_NAME_MAX = 64,
    LAB_STAGES_MAX = 16,    /* of all passes */
    LAB_ARGUMENTS_MAX = 128 /* of all stages */
};

enum lab_fill { LAB_FILL_ZERO, LAB_FILL_NOISE, LAB_FILL_FLOATS, LAB_FILL_FILE };

struct lab_binding {
    char name[LAB_KERNEL_NAME_MAX];
    struct cox_use touch; /* of the frame; ROWS, HALO or WHOLE; its row_divisor is 1 or more */
    bool scratch;
    bool transposed;        /* a row for each column of the frame */
    uint32_t element_bytes; /* ROWS, HALO: of a column */
    uint64_t bytes;         /* WHOLE */
    enum lab_fill fill;
    uint32_t seed;  /* noise */
    char file[256]; /* relative to the folder of the JSON */
};

/* An argument of the kernel: one of the library's, or a number. */
enum lab_argument_kind {
    LAB_ARGUMENT_BUFFER,
    LAB_ARGUMENT_ORIGIN,
    LAB_ARGUMENT_PITCH,       /* int: elements from one row to the next */
    LAB_ARGUMENT_PITCH_BYTES, /* int */
    LAB_ARGUMENT_COLUMNS,
    LAB_ARGUMENT_ROWS,
    LAB_ARGUMENT_FIRST_ROW,
    LAB_ARGUMENT_FRAME_ROWS,
    LAB_ARGUMENT_INT,
    LAB_ARGUMENT_UINT,
    LAB_ARGUMENT_FLOAT,
    LAB_ARGUMENT_LOCAL
};

struct lab_argument {
    enum lab_argument_kind kind;
    uint32_t binding; /* BUFFER, ORIGIN, PITCH, PITCH_BYTES */
    union {
        int32_t i;
        uint32_t u; /* UINT; LOCAL: bytes */
        float f;
    } value;
};

struct lab_stage {
    char kernel[LAB_KERNEL_NAME_MAX];
    uint32_t local_columns, local_rows, item_columns, item_rows;
    uint32_t first_argument, argument_count;
};

struct lab_pass {
    char name[LAB_KERNEL_NAME_MAX]; /* "" = none */
    bool transposed;                /* its rows are the frame's columns and vice versa */
    uint32_t use_count;             /* 0 = all bindings, as they are */
    struct cox_use uses[COX_BUFFERS_MAX];
    uint32_t first_stage, stage_count;
};

struct lab_bindings {
    char options[512];      /* of the build; "" = none */
    uint32_t columns, rows; /* of a frame, without --size */
    uint32_t binding_count;
    struct lab_binding bindings[COX_BUFFERS_MAX];
    uint32_t pass_count; /* 0 = one pass with the only stage */
    struct lab_pass passes[COX_PASSES_MAX];
    uint32_t stage_count;
    struct lab_stage stages[LAB_STAGES_MAX];
    uint32_t argument_count;
    struct lab_argument arguments[LAB_ARGUMENTS_MAX];
};

/* Parse the JSON. False with a sentence in `why` that begins with `file` and names the place. */
bool lab_bindings_parse(const char *text, size_t bytes, const char *file, struct lab_bindings *out,
                        char *why, size_t why_bytes);

/* A user's own kernel: the texts of its files, and the parsed JSON. */
struct lab_user_kernel {
    struct lab_bindings bindings;
    char *source, *json;
    char *folder; /* of the JSON, with the final '/'; "" = the current one */
    char name[LAB_KERNEL_NAME_MAX];
};

/* `json_path` NULL means `source_path` with .json for .cl. False with a sentence in `why`; then
 * `*out` is NULL. */
bool lab_user_kernel_load(const char *source_path, const char *json_path,
                          struct lab_user_kernel **out, char *why, size_t why_bytes);
void lab_user_kernel_free(struct lab_user_kernel **kernel);

#endif
