/* Waiting for other ranks without using a core. The cores of a rank are for the frames. The waiting
 * calls of MPI poll at full speed, so a rank with one core would lose half of it.
 * Thread-safety: any thread, if MPI has MPI_THREAD_MULTIPLE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_MPI_WAIT_H
#define TONEMAP_MPI_WAIT_H

#include <mpi.h>
#include <time.h>

/* Polls each millisecond. */
static inline MPI_Status wait_for(MPI_Request *request)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    MPI_Status status;
    for (int done = 0; MPI_Test(request, &done, &status) == MPI_SUCCESS && !done;)
        nanosleep(&pause, NULL);

    return status;
}

/* Returns the rank that sent the message. `from` may be MPI_ANY_SOURCE. */
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
