/* SPDX-License-Identifier: Apache-2.0 */
#include "bits_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096, SPOILED = 0xa5 };

void bits_need(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "FAILED %s: error %d\n", what, code);
    exit(1);
}

void *bits_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);
    bits_need(memory ? 0 : COX_E_NOMEM, "memory");
    return memory;
}

/* --- Planes ------------------------------------------------------------------------------------------------------- */

static size_t plane_bytes(const struct bits_plane *plane)
{
    return plane->pitch_bytes * plane->rows;
}

uint8_t *bits_row(const struct bits_plane *plane, uint32_t row)
{
    return plane->data + row * plane->pitch_bytes;
}

void bits_plane_spoil(const struct bits_plane *plane)
{
    memset(plane->data, SPOILED, plane_bytes(plane) + plane->guard_bytes);
}

static bool is_spoiled(const uint8_t *from, const uint8_t *end)
{
    while (from < end && *from == SPOILED)
        from++;
    return from == end;
}

static bool plane_intact(const struct bits_plane *plane)
{
    for (uint32_t y = 0; y < plane->rows; y++)
        if (!is_spoiled(bits_row(plane, y) + plane->row_bytes, bits_row(plane, y + 1)))
            return false;
    const uint8_t *end = bits_row(plane, plane->rows);
    return is_spoiled(end, end + plane->guard_bytes);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

void bits_frame_add(struct bits_frame *frame, cox_runtime *runtime, struct bits_plane plane)
{
    plane.guard_bytes = plane.written && !plane.data ? GUARD_BYTES : 0;
    plane.own_data = !runtime && !plane.data;
    plane.own_buffer = runtime && !plane.buffer;

    const size_t bytes = plane_bytes(&plane) + plane.guard_bytes;
    if (plane.own_data) {
        plane.data = bits_memory(bytes);
    } else if (plane.own_buffer && plane.data) {
        bits_need(cox_buffer_wrap(runtime, plane.data, bytes, NULL, NULL, &plane.buffer), "cox_buffer_wrap");
    } else if (plane.own_buffer) {
        bits_need(cox_buffer_create(runtime, bytes, &plane.buffer), "cox_buffer_create");
        plane.data = cox_buffer_data(plane.buffer);
    }

    if (plane.written)
        bits_plane_spoil(&plane);
    frame->buffers[frame->count] = plane.buffer;
    frame->planes[frame->count++] = plane;
}

void bits_frame_borrow(struct bits_frame *frame, const struct bits_frame *from)
{
    for (uint32_t p = 0; p < from->count; p++)
        if (from->planes[p].data && !from->planes[p].written)
            bits_frame_add(frame, NULL, from->planes[p]);
}

void bits_frame_close(struct bits_frame *frame)
{
    for (uint32_t p = 0; p < frame->count; p++) {
        struct bits_plane *plane = &frame->planes[p];
        if (plane->own_data)
            free(plane->data);
        if (plane->own_buffer)
            cox_buffer_destroy(&plane->buffer);
    }
    *frame = (struct bits_frame){0};
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

struct cursor {
    uint32_t plane, row; /* the next one */
    size_t at, bytes;    /* position of the last row in the result */
};

/* Returns the next row of the result, NULL after the last one. */
static uint8_t *next_row(const struct bits_frame *frame, struct cursor *cursor)
{
    const struct bits_plane *plane = &frame->planes[cursor->plane];
    while (cursor->plane < frame->count && (!plane->written || cursor->row == plane->rows)) {
        plane = &frame->planes[++cursor->plane];
        cursor->row = 0;
    }
    if (cursor->plane == frame->count)
        return NULL;
    cursor->at += cursor->bytes;
    cursor->bytes = plane->row_bytes;
    return bits_row(plane, cursor->row++);
}

size_t bits_frame_bytes(const struct bits_frame *frame)
{
    struct cursor cursor = {0};
    while (next_row(frame, &cursor))
        ;
    return cursor.at + cursor.bytes;
}

uint8_t *bits_frame_result(const struct bits_frame *frame)
{
    uint8_t *result = bits_memory(bits_frame_bytes(frame));
    struct cursor cursor = {0};
    for (uint8_t *row; (row = next_row(frame, &cursor));)
        memcpy(result + cursor.at, row, cursor.bytes);
    return result;
}

void bits_frame_put(struct bits_frame *frame, const uint8_t *result)
{
    struct cursor cursor = {0};
    for (uint8_t *row; (row = next_row(frame, &cursor));)
        memcpy(row, result + cursor.at, cursor.bytes);
}

bool bits_frame_equals(const struct bits_frame *frame, const uint8_t *result, size_t *at)
{
    struct cursor cursor = {0};
    for (uint8_t *row; (row = next_row(frame, &cursor));) {
        *at = cursor.at;
        if (memcmp(row, result + cursor.at, cursor.bytes) == 0)
            continue;
        while (*row++ == result[*at])
            ++*at;
        return false;
    }
    return true;
}

void bits_frame_spoil(struct bits_frame *frame, const uint8_t *result)
{
    for (uint32_t p = 0; p < frame->count; p++)
        if (frame->planes[p].written)
            bits_plane_spoil(&frame->planes[p]);

    struct cursor cursor = {0};
    for (uint8_t *row; result && (row = next_row(frame, &cursor));)
        for (size_t i = 0; i < cursor.bytes; i++)
            row[i] = (uint8_t)~result[cursor.at + i];
}

bool bits_frame_intact(const struct bits_frame *frame)
{
    for (uint32_t p = 0; p < frame->count; p++)
        if (frame->planes[p].written && !plane_intact(&frame->planes[p]))
            return false;
    return true;
}

uint64_t bits_hash(const void *data, size_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
    return hash;
}
