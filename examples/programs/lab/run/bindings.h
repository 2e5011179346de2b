/* A user's own kernel: OpenCL C and, in JSON, what the library must know about it
 * (docs/reference/cox-lab.md lists every key). All values of a file are bounded.
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
    LAB_PASSES_MAX = 16,    /* those that are fused too */
    LAB_ARGUMENTS_MAX = 64, /* of all passes */
    LAB_CONSTANTS_MAX = 64
};

enum lab_access { LAB_READ, LAB_WRITE, LAB_READ_WRITE };

enum lab_fill { LAB_FILL_ZERO, LAB_FILL_NOISE, LAB_FILL_FLOATS, LAB_FILL_FILE };

struct lab_buffer {
    char name[LAB_KERNEL_NAME_MAX];
    enum lab_access access; /* of the whole frame; scratch: nothing */
    bool scratch;
    bool transposed;        /* a row for each column of the frame */
    uint32_t element_bytes; /* of a column; 0 = a whole buffer, without rows */
    uint32_t row_divisor;   /* 1 or more */
    uint64_t bytes;         /* of a whole buffer */
    enum lab_fill fill;
    uint32_t seed;  /* noise */
    char file[256]; /* relative to the folder of the JSON */
};

/* What a kernel's signature cannot say about a parameter: a struct cox_argument. */
struct lab_argument {
    char name[LAB_KERNEL_NAME_MAX];
    uint32_t halo_rows;
    bool whole;
    bool in_place;
    uint32_t row_divisor; /* 0 = the buffer's */
    uint32_t local_bytes;
};

/* A number that kernels take by its name. */
struct lab_constant {
    char name[LAB_KERNEL_NAME_MAX];
    union {
        int32_t i;
        uint32_t u;
        float f;
    } value;
};

struct lab_pass {
    char name[LAB_KERNEL_NAME_MAX]; /* "" = none */
    char kernel[LAB_KERNEL_NAME_MAX];
    bool transposed; /* its rows are the frame's columns and vice versa */
    bool fused;      /* with the pass before it */
    uint32_t local_columns, local_rows, item_columns, item_rows;
    uint32_t first_argument, argument_count;
};

struct lab_bindings {
    char options[512];      /* of the build; "" = none */
    uint32_t columns, rows; /* of a frame, without --size */
    uint32_t buffer_count;
    struct lab_buffer buffers[COX_BUFFERS_MAX];
    uint32_t constant_count;
    struct lab_constant constants[LAB_CONSTANTS_MAX];
    uint32_t pass_count;
    struct lab_pass passes[LAB_PASSES_MAX];
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
