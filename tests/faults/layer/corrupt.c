/* Wrong results: commands that cause them, copy them, and bring them to the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdlib.h>

void flip(const struct flips *flips)
{
    const struct region *r = &flips->region;
    const uint64_t size = (uint64_t)r->row_bytes * r->rows * r->slices;
    if (size == 0)
        return;
    const uint64_t count = flips->line->plan.bits < 8 * size ? flips->line->plan.bits : 8 * size;
    const uint64_t stride = count < size ? size / count : 1;
    uint64_t x = (flips->line->plan.seed + 1) * 0x9e3779b97f4a7c15u + atomic_load(&flips->line->struck);
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (x % size + i * stride) % size;
        char *row = r->host + at / r->row_bytes / r->rows * r->slice_pitch + at / r->row_bytes % r->rows * r->row_pitch;
        row[at % r->row_bytes] = (char)(row[at % r->row_bytes] ^ 1 << ((x >> 40) + i / size) % 8);
    }
    struck(flips->line);
}

/* Under the lock: mark bytes [from, to) of the buffer as wrong results of a kernel. */
static void taint(struct mem *mem, size_t from, size_t to, struct lie *lie)
{
    struct taint *fresh = must_alloc(1, sizeof *fresh);
    struct taint **place = &mem->root->taints;
    *fresh = (struct taint){.lie = lie, .from = mem->from + from, .to = mem->from + to};
    lie->refs++;
    while (*place) { /* drop those that were already shown */
        struct taint *old = *place;
        if (!old->lie->told) {
            place = &old->next;
            continue;
        }
        *place = old->next;
        taint_free(old);
    }
    *place = fresh;
}

/* Mark everything that the kernel may write, if its results are to be wrong. */
static void taint_outputs(const struct issue *issue, cl_kernel kernel)
{
    struct line *line = issue->faults.by[FAULT_KIND_CORRUPT];
    if (!line || !issue->queue)
        return;
    struct lie *lie = must_alloc(1, sizeof *lie);
    *lie = (struct lie){.refs = 1, .line = line};
    pthread_mutex_lock(&lock);
    const struct object *object = find_object(kernel, TYPE_KERNEL);
    for (int i = 0; object && object->args && i < ARGS_MAX; i++) {
        const struct object *of = find_object(object->args[i], TYPE_MEM);
        if (of && !(of->mem->flags & CL_MEM_READ_ONLY))
            taint(of->mem, 0, of->mem->bytes, lie);
    }
    if (--lie->refs == 0)
        free(lie);
    pthread_mutex_unlock(&lock);
}

/* A copy also copies wrong results. */
static void taint_copy(cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const struct object *source = find_object(from, TYPE_MEM), *target = find_object(to, TYPE_MEM);
    if (source && target && source->mem->root != target->mem->root) {
        size_t first = source->mem->from + from_offset;
        for (struct taint *t = source->mem->root->taints; t; t = t->next) {
            size_t low = t->from > first ? t->from : first;
            size_t high = t->to < first + bytes ? t->to : first + bytes;
            if (!t->lie->told && low < high)
                taint(target->mem, to_offset + (low - first), to_offset + (high - first), t->lie);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Find which of bytes [offset, offset + bytes) of the buffer must be wrong on the host. The caller adds the host
 * address. */
static void find_flips(struct issue *issue, cl_mem mem, size_t offset, size_t bytes)
{
    struct line *line = issue->faults.by[FAULT_KIND_CORRUPT];
    if (!issue->queue)
        return;
    if (line) {
        issue->flips = (struct flips){.line = line, .region = {.row_bytes = bytes, .rows = 1, .slices = 1}};
        return;
    }
    pthread_mutex_lock(&lock);
    const struct object *object = find_object(mem, TYPE_MEM);
    size_t first = object ? object->mem->from + offset : 0;
    for (struct taint *t = object ? object->mem->root->taints : NULL; t; t = t->next) {
        size_t low = t->from > first ? t->from : first;
        size_t high = t->to < first + bytes ? t->to : first + bytes;
        if (t->lie->told || low >= high)
            continue;
        t->lie->told = true;
        issue->flips = (struct flips){
            .line = t->lie->line, .offset = low - first, .region = {.row_bytes = high - low, .rows = 1, .slices = 1}};
        break;
    }
    pthread_mutex_unlock(&lock);
}

/* The same for a box of the buffer that goes to a box at `host`. */
static void find_box_flips(struct issue *issue, cl_mem mem, const size_t *origin, const size_t *host_origin,
                           const size_t *region, size_t from_row, size_t from_slice, size_t row, size_t slice,
                           void *host)
{
    if (!region || !origin || !host_origin)
        return;
    row = row ? row : region[0];
    slice = slice ? slice : row * region[1];
    from_row = from_row ? from_row : region[0];
    from_slice = from_slice ? from_slice : from_row * region[1];
    find_flips(issue, mem, origin[2] * from_slice + origin[1] * from_row + origin[0], region[2] * from_slice);
    char *first = (char *)host + host_origin[2] * slice + host_origin[1] * row + host_origin[0];
    issue->flips.region = (struct region){first, region[0], region[1], region[2], row, slice};
}

static void find_read_flips(struct issue *issue, cl_mem mem, size_t offset, size_t bytes, void *host)
{
    find_flips(issue, mem, offset, bytes);
    issue->flips.region.host = (char *)host + issue->flips.offset;
}

COMMAND(clEnqueueNDRangeKernel, CL_FALSE,
        (cl_command_queue queue, cl_kernel k, cl_uint dims, const size_t *offset, const size_t *global,
         const size_t *local, WAIT),
        (queue, k, dims, offset, global, local, REST), PLAIN, taint_outputs(&issue, k))
COMMAND(clEnqueueCopyBuffer, CL_FALSE,
        (cl_command_queue queue, cl_mem a, cl_mem b, size_t from, size_t to, size_t n, WAIT),
        (queue, a, b, from, to, n, REST), PLAIN, taint_copy(a, b, from, to, n))
COMMAND(clEnqueueReadBuffer, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t o, size_t n, void *v, WAIT),
        (queue, m, issue.blocking, o, n, v, REST), find_read_flips(&issue, m, o, n, v), PLAIN)
COMMAND(clEnqueueReadBufferRect, blocking,
        (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *o, const size_t *ho, const size_t *r,
         size_t row, size_t slice, size_t hrow, size_t hslice, void *v, WAIT),
        (queue, m, issue.blocking, o, ho, r, row, slice, hrow, hslice, v, REST),
        find_box_flips(&issue, m, o, ho, r, row, slice, hrow, hslice, v), PLAIN)

/* Defines a map, which brings the bytes to the address that it returns. */
#define MAP(name, decl, args, before)                                                                   \
    void *CL_API_CALL fault_##name decl                                                                 \
    {                                                                                                   \
        struct issue issue;                                                                             \
        void *pointer = NULL;                                                                           \
        cl_int code = issue_begin(&issue, FAULT_CALL_##name, queue, blocking, wait_count, wait, event); \
        if (code == CL_SUCCESS) {                                                                       \
            if (flags & CL_MAP_READ)                                                                    \
                before;                                                                                 \
            issue_prepare(&issue);                                                                      \
            pointer = next.name args;                                                                   \
            issue.flips.region.host = (char *)pointer + issue.flips.offset;                             \
            code = issue_end(&issue, code);                                                             \
        }                                                                                               \
        if (error)                                                                                      \
            *error = code;                                                                              \
        return pointer;                                                                                 \
    }

MAP(clEnqueueMapBuffer,
    (cl_command_queue queue, cl_mem m, cl_bool blocking, cl_map_flags flags, size_t o, size_t n, WAIT, cl_int *error),
    (queue, m, issue.blocking, flags, o, n, REST, &code), find_flips(&issue, m, o, n))
MAP(clEnqueueMapImage,
    (cl_command_queue queue, cl_mem m, cl_bool blocking, cl_map_flags flags, const size_t *o, const size_t *r,
     size_t *row, size_t *slice, WAIT, cl_int *error),
    (queue, m, issue.blocking, flags, o, r, row, slice, REST, &code), PLAIN)
