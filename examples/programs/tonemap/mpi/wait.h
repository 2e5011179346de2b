/* Waiting for other ranks without taking a core's time. MPI's own calls that wait look for messages at full speed, and
 * a rank's cores are for the frames: of a rank with one core, half would be lost.
 * Thread-safety: any thread, where MPI has MPI_THREAD_MULTIPLE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_WAIT_H
#define MPI_WAIT_H

#include <mpi.h>
#include <time.h>

/* Looks each millisecond. */
static inline MPI_Status wait_for(MPI_Request *request)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    MPI_Status status;
    for (int done = 0; MPI_Test(request, &done, &status) == MPI_SUCCESS && !done;)
        nanosleep(&pause, NULL);
    return status;
}

/* Returns the rank that it came from. `from` may be MPI_ANY_SOURCE. */
static inline int wait_receive(void *message, int bytes, int from, int tag)
{
    MPI_Request request;
    MPI_Irecv(message, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    return wait_for(&request).MPI_SOURCE;
}

static inline void wait_for_all_ranks(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
}

#endif
