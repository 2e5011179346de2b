/* The memory of one frame, plane by plane in the order of the bindings. The frame's result is the contents of the
 * output planes without the padding of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_BITS_FRAME_H
#define COX_TESTS_BITS_FRAME_H

#include <coxswain/coxswain.h>

/* End the program unless `code`, an OpenCL or Coxswain status, is 0. `what` is for the message. */
void bits_need(int code, const char *what);

/* Zeroed memory. Ends the program if there is not enough. */
void *bits_memory(size_t bytes);

struct bits_plane {
    size_t row_bytes, pitch_bytes;
    uint32_t rows;
    bool written;
    uint8_t *data;
    cox_buffer *buffer; /* NULL without a runtime */

    /* Set by bits_frame_add: */
    size_t guard_bytes; /* after the last row */
    bool own_data, own_buffer;
};

struct bits_frame {
    uint32_t count;
    struct bits_plane planes[COX_BUFFERS_MAX];
    cox_buffer *buffers[COX_BUFFERS_MAX];
};

/* Add a plane. If it has no `data`, it gets a new buffer of the runtime, or heap memory without a runtime. A new
 * output is followed by guard bytes. */
void bits_frame_add(struct bits_frame *frame, cox_runtime *runtime, struct bits_plane plane);

/* Add the inputs of another frame, which must outlive this one. */
void bits_frame_borrow(struct bits_frame *frame, const struct bits_frame *from);

void bits_frame_close(struct bits_frame *frame);

uint8_t *bits_row(const struct bits_plane *plane, uint32_t row);

size_t bits_frame_bytes(const struct bits_frame *frame);

/* A copy of the result. The caller frees it. */
uint8_t *bits_frame_result(const struct bits_frame *frame);

/* Write a result to the frame. */
void bits_frame_put(struct bits_frame *frame, const uint8_t *result);

/* Whether the frame holds this result. If not, `*at` is the first byte that differs. */
bool bits_frame_equals(const struct bits_frame *frame, const uint8_t *result, size_t *at);

/* Fill the output planes, their padding and guard bytes with values that no run should leave. If the expected
 * result is known, the planes get its complement. */
void bits_frame_spoil(struct bits_frame *frame, const uint8_t *result);
void bits_plane_spoil(const struct bits_plane *plane);

/* Whether padding and guard bytes are unchanged since bits_frame_spoil. */
bool bits_frame_intact(const struct bits_frame *frame);

/* 64-bit FNV-1a, as printed by cox-tonemap --hash. */
uint64_t bits_hash(const void *data, size_t bytes);

#endif
