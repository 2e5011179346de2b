/* Whether a driver works in the host's memory or on a copy of it. OpenCL has no query for it:
 * CL_MEM_USE_HOST_PTR allows both, and the pointer, the size, the buffer's flags and the driver
 * decide. Mapping shows it: a copy takes longer the larger the buffer is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "host/pages.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Buffers of two sizes are mapped and unmapped ROUNDS times each, and the shortest time counts. */
enum { SMALL_BYTES = 64 << 10, LARGE_BYTES = 4 << 20, ROUNDS = 5, ATTEMPTS = 3 };

/* Bytes per nanosecond: no copy by one thread or over a link reaches this rate today. */
enum { FASTEST_COPY = 128 };

/* The shortest time to map all of the buffer and unmap it again; UINT64_MAX = a call failed. */
static uint64_t map_ns(cl_command_queue queue, cl_mem mem, size_t bytes)
{
    uint64_t least_ns = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        cl_int code;
        const uint64_t begin_ns = cox__clock_ns();
        void *mapped = clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                                          0, NULL, NULL, &code);
        if (!mapped || code || clEnqueueUnmapMemObject(queue, mem, mapped, 0, NULL, NULL) ||
            clFinish(queue))
            return UINT64_MAX;

        least_ns = cox__min_u64(least_ns, cox__clock_ns() - begin_ns);
    }
    return least_ns;
}

static uint64_t wrapped_ns(cl_context context, cl_command_queue queue, void *host, size_t bytes)
{
    cl_int code;
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, host,
                                &code);
    if (code)
        return UINT64_MAX;

    const uint64_t ns = map_ns(queue, mem, bytes);
    clReleaseMemObject(mem);
    return ns;
}

enum cox_host_memory cox__cl_host_memory(cl_context context, cl_command_queue queue)
{
    void *host = NULL;
    if (posix_memalign(&host, COX__PAGE_BYTES, LARGE_BYTES))
        return COX_HOST_MEMORY_UNKNOWN;

    memset(host, 0, LARGE_BYTES);
    enum cox_host_memory found = COX_HOST_MEMORY_COPIED;

    /* A mapping may be slow by chance if the machine is busy; a copy is slow each time. */
    for (int attempt = 0; attempt < ATTEMPTS && found == COX_HOST_MEMORY_COPIED; attempt++) {
        const uint64_t small_ns = wrapped_ns(context, queue, host, SMALL_BYTES);
        const uint64_t large_ns = wrapped_ns(context, queue, host, LARGE_BYTES);
        if (small_ns == UINT64_MAX || large_ns == UINT64_MAX)
            found = COX_HOST_MEMORY_UNKNOWN;
        else if (large_ns <= small_ns + (LARGE_BYTES - SMALL_BYTES) / FASTEST_COPY)
            found = COX_HOST_MEMORY_WRAPPED;
    }

    free(host);
    return found;
}
