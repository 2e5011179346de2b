/* The one file that a film becomes when it is not encoded: every rank writes the frames of its ranges to their places,
 * with MPI-IO. It lies in a folder, under another name than the output's, until it is whole.
 *
 *     header, frame 0, frame 1, ...      as cox-tonemap writes them in one run
 *
 * Each rank opens the file for itself, so that it can have its frames put on the disk (MPI_File_sync, a call of all
 * that opened the file together) while the others are at work.
 * Thread-safety: one file from one thread at a time; the place's function is called by another one meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_SHARED_FILE_H
#define MPI_SHARED_FILE_H

#include "media/video.h"

#include <mpi.h>

struct shared_file {
    const char *path;
    struct video_layout layout; /* the same on all ranks; this and the next are set by the caller */
    uint64_t frames;            /* of the film */
    uint64_t first;             /* frame of the range at hand: its place begins there */
    MPI_File file;
};

/* Rank 0, before any rank opens it: how many frames from the beginning on the file of before can hold; 0: there is
 * none, or it has another header. Its frames are to be believed only where a journal says so. */
uint64_t shared_file_room(const struct shared_file *file);

/* Rank 0, before any rank opens it: make it anew, with its header. False, here and below, after saying why. */
bool shared_file_create(const struct shared_file *file);

bool shared_file_open(struct shared_file *file);

/* Where the frames from `first` on go. Valid as long as the file is. */
struct video_place shared_file_place(struct shared_file *file, uint64_t first);

/* What this rank has written is on the disk. */
bool shared_file_sync(struct shared_file *file);

bool shared_file_close(struct shared_file *file);

/* Rank 0, when all ranks have closed it: it becomes the output. */
bool shared_file_finish(const struct shared_file *file, const char *output);

#endif
