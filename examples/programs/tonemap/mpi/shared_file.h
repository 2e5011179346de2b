/* The file of a film that is not encoded. Every rank writes the frames of its ranges to their
 * places, with MPI-IO. Until the file is whole it lies in a folder, under another name than the
 * output's.
 *
 *     header, frame 0, frame 1, ...      as cox-tonemap writes them in one run
 *
 * Each rank opens the file for itself. MPI_File_sync is collective for all ranks that opened a file
 * together, and this way a rank can sync its frames while the others work.
 * Thread-safety: one file from one thread at a time. Another thread may call the place's function
 * meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_MPI_SHARED_FILE_H
#define TONEMAP_MPI_SHARED_FILE_H

#include "media/video.h"

#include <mpi.h>

struct shared_file {
    const char *path;
    struct video_layout layout; /* the same on all ranks; set by the caller, like `frames` */
    uint64_t frames;            /* of the film */
    uint64_t first;             /* frame of the current range */
    MPI_File file;
};

/* Rank 0, before any rank opens the file: the number of frames that an old file has room for.
 * Returns 0 if no old file exists, or if it has another header. Only the journal tells which of its
 * frames are good. */
uint64_t shared_file_room(const struct shared_file *file);

/* Rank 0, before any rank opens the file: create it, with its header. Here and below: false after
 * printing why. */
bool shared_file_create(const struct shared_file *file);

bool shared_file_open(struct shared_file *file);

/* The place of the frames from `first` on. Valid as long as the file is. */
struct video_place shared_file_place(struct shared_file *file, uint64_t first);

/* Put all that this rank has written on the disk. */
bool shared_file_sync(struct shared_file *file);

bool shared_file_close(struct shared_file *file);

/* Rank 0, after all ranks have closed the file: rename it to the output. */
bool shared_file_finish(const struct shared_file *file, const char *output);

#endif
