/* Wrong results: commands that make them, take them along, and bring them to the host.
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

/* Under the lock: bytes [from, to) of the buffer are the kernel's, and wrong. */
static void taint(struct mem *mem, size_t from, size_t to, struct lie *lie)
{
    struct taint *fresh = must_alloc(1, sizeof *fresh);
    struct taint **place = &mem->root->taints;
    *fresh = (struct taint){.lie = lie, .from = mem->from + from, .to = mem->from + to};
    lie->refs++;
    while (*place) { /* those that have been told need not be remembered */
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

/* A kernel whose results are to be wrong: what it may write is. */
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

/* A copy takes wrong results along. */
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

/* A command brings bytes [offset, offset + bytes) of the buffer to the host: what of them is to be wrong there? Leaves
 * open where they go. */
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

cl_int CL_API_CALL fault_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                const size_t *offset, const size_t *global, const size_t *local, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueNDRangeKernel, queue, CL_FALSE, wait_count, wait, event);
    if (code)
        return code;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, REST);
    if (code == CL_SUCCESS)
        taint_outputs(&issue, kernel);
    return issue_end(&issue, code);
}

cl_int CL_API_CALL fault_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                             size_t to_offset, size_t bytes, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueCopyBuffer, queue, CL_FALSE, wait_count, wait, event);
    if (code)
        return code;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, REST);
    if (code == CL_SUCCESS)
        taint_copy(from, to, from_offset, to_offset, bytes);
    return issue_end(&issue, code);
}

cl_int CL_API_CALL fault_clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                                             size_t bytes, void *host, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueReadBuffer, queue, blocking, wait_count, wait, event);
    if (code)
        return code;
    find_flips(&issue, mem, offset, bytes);
    issue.flips.region.host = (char *)host + issue.flips.offset;
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueReadBuffer(queue, mem, issue.blocking, offset, bytes, host, REST);
    return issue_end(&issue, code);
}

cl_int CL_API_CALL fault_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                 const size_t *mem_origin, const size_t *host_origin,
                                                 const size_t *region, size_t mem_row, size_t mem_slice,
                                                 size_t host_row, size_t host_slice, void *host, WAIT)
{
    struct issue issue;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueReadBufferRect, queue, blocking, wait_count, wait, event);
    if (code)
        return code;
    if (region && host_origin && mem_origin) {
        size_t row = host_row ? host_row : region[0], slice = host_slice ? host_slice : row * region[1];
        size_t from_row = mem_row ? mem_row : region[0], from_slice = mem_slice ? mem_slice : from_row * region[1];
        size_t first = mem_origin[2] * from_slice + mem_origin[1] * from_row + mem_origin[0];
        find_flips(&issue, mem, first, region[2] * from_slice);
        issue.flips.region = (struct region){(char *)host + host_origin[2] * slice + host_origin[1] * row +
                                                 host_origin[0],
                                             region[0],
                                             region[1],
                                             region[2],
                                             row,
                                             slice};
    }
    issue_prepare(&issue);
    code = issue.skip ? issue_marker(&issue, queue)
                      : next.clEnqueueReadBufferRect(queue, mem, issue.blocking, mem_origin, host_origin, region,
                                                     mem_row, mem_slice, host_row, host_slice, host, REST);
    return issue_end(&issue, code);
}

void *CL_API_CALL fault_clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags,
                                           size_t offset, size_t bytes, WAIT, cl_int *error)
{
    struct issue issue;
    void *pointer = NULL;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueMapBuffer, queue, blocking, wait_count, wait, event);
    if (code == CL_SUCCESS) {
        if (flags & CL_MAP_READ)
            find_flips(&issue, mem, offset, bytes);
        issue_prepare(&issue);
        pointer = next.clEnqueueMapBuffer(queue, mem, issue.blocking, flags, offset, bytes, REST, &code);
        issue.flips.region.host = (char *)pointer + issue.flips.offset;
        code = issue_end(&issue, code);
    }
    if (error)
        *error = code;
    return pointer;
}

void *CL_API_CALL fault_clEnqueueMapImage(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags,
                                          const size_t *origin, const size_t *region, size_t *row_pitch,
                                          size_t *slice_pitch, WAIT, cl_int *error)
{
    struct issue issue;
    void *pointer = NULL;
    cl_int code = issue_begin(&issue, FAULT_CALL_clEnqueueMapImage, queue, blocking, wait_count, wait, event);
    if (code == CL_SUCCESS) {
        issue_prepare(&issue);
        pointer = next.clEnqueueMapImage(queue, mem, issue.blocking, flags, origin, region, row_pitch, slice_pitch,
                                         REST, &code);
        code = issue_end(&issue, code);
    }
    if (error)
        *error = code;
    return pointer;
}
