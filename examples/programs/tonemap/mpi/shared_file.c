/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "shared_file.h"
#include "tonemap/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* MPI counts in int. */
enum { WRITE_MOST = 1 << 30 };

static uint64_t all_bytes(const struct shared_file *file)
{
    return file->layout.header_bytes + file->frames * file->layout.frame_bytes;
}

uint64_t shared_file_room(const struct shared_file *file)
{
    const struct video_layout *layout = &file->layout;
    struct stat about;
    char header[sizeof layout->header];
    uint64_t frames = 0;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;

    if (!fstat(fd, &about) && S_ISREG(about.st_mode) &&
        (uint64_t)about.st_size <= all_bytes(file) &&
        pread(fd, header, layout->header_bytes, 0) == (ssize_t)layout->header_bytes &&
        !memcmp(header, layout->header, layout->header_bytes))
        frames = ((uint64_t)about.st_size - layout->header_bytes) / layout->frame_bytes;

    close(fd);
    return frames;
}

/* Never reuse an old file: a rank of a killed run may still write to it. */
bool shared_file_create(const struct shared_file *file)
{
    const size_t bytes = file->layout.header_bytes;
    int fd = -1;
    if (!unlink(file->path) || errno == ENOENT)
        fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    bool good = fd >= 0;
    if (good) {
        errno = ENOSPC; /* if only a part of the header is written */
        good = pwrite(fd, file->layout.header, bytes, 0) == (ssize_t)bytes && !fsync(fd);
    }

    if (!good)
        message_error("%s: cannot be written: %s", file->path, strerror(errno));

    if (fd >= 0)
        close(fd);
    return good;
}

/* MPI's reason for a failure. If MPI does not know one, it is the error of the last system call. */
static const char *why(int result, int failure, char text[MPI_MAX_ERROR_STRING])
{
    int length = 0, class = MPI_ERR_OTHER;
    if (result != MPI_SUCCESS)
        MPI_Error_class(result, &class);

    if (failure && (class == MPI_ERR_OTHER || class == MPI_ERR_UNKNOWN || class == MPI_ERR_IO))
        return strerror(failure);

    if (MPI_Error_string(result, text, &length) != MPI_SUCCESS)
        return "unknown MPI error";
    return text;
}

static bool check(const struct shared_file *file, int result, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    return result == MPI_SUCCESS ||
           message_error("%s: cannot be %s: %s", file->path, what, why(result, errno, text));
}

/* Make a link to the file with a random name, next to it. False: links are not possible here. */
static bool link_random(const struct shared_file *file, char link[PATH_MAX])
{
    const char *name = strrchr(file->path, '/');
    name = name ? name + 1 : file->path;

    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    const int length = snprintf(link, PATH_MAX, "%.*s.%016" PRIx64 "-%s", (int)(name - file->path),
                                file->path, number, name);
    return length > 0 && length < PATH_MAX && !symlink(name, link);
}

/* Open MPI names a semaphore after the last part of the path, for all jobs and users of a machine.
 * One that another user holds, or that a killed job has left, fails or kills the job. So each rank
 * opens the file by a name that nobody else has. */
bool shared_file_open(struct shared_file *file)
{
    char link[PATH_MAX];
    const char *path = file->path;
    const bool linked = link_random(file, link);
    if (linked)
        path = link;

    errno = 0;
    const bool good =
        check(file, MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &file->file),
              "opened");
    if (linked)
        unlink(link);
    return good;
}

/* `write` of video_place. */
static bool write_frame(void *user, uint64_t offset, const void *bytes, size_t count,
                        struct error *error)
{
    struct shared_file *file = user;
    const struct video_layout *layout = &file->layout;
    uint64_t at = layout->header_bytes + file->first * layout->frame_bytes + offset;
    while (count) {
        char text[MPI_MAX_ERROR_STRING];
        MPI_Status status;
        int written = 0;
        errno = 0;

        const int most = count < WRITE_MOST ? (int)count : WRITE_MOST;
        const int result = MPI_File_write_at(file->file, (MPI_Offset)at, bytes, most, MPI_BYTE,
                                             &status);
        const int failure = errno;
        if (result == MPI_SUCCESS)
            MPI_Get_count(&status, MPI_BYTE, &written);
        if (written <= 0)
            return error_set(error, "cannot be written, at byte %" PRIu64 ": %s", at,
                             why(result, failure, text));

        at += (uint64_t)written;
        bytes = (const char *)bytes + written;
        count -= (size_t)written;
    }
    return true;
}

struct video_place shared_file_place(struct shared_file *file, uint64_t first)
{
    file->first = first;
    return (struct video_place){write_frame, file};
}

bool shared_file_sync(struct shared_file *file)
{
    errno = 0;
    return check(file, MPI_File_sync(file->file), "written");
}

bool shared_file_close(struct shared_file *file)
{
    errno = 0;
    return check(file, MPI_File_close(&file->file), "written");
}

bool shared_file_finish(const struct shared_file *file, const char *output)
{
    struct stat about;
    /* Over NFS, open asks the server for the current length. */
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && !fstat(fd, &about);
    if (!known)
        message_error("%s: cannot be read: %s", file->path, strerror(errno));
    if (fd >= 0)
        close(fd);

    if (!known)
        return false;
    if ((uint64_t)about.st_size != all_bytes(file))
        return message_error("%s: has %" PRIu64 " bytes, expected %" PRIu64 ": it was changed",
                             file->path, (uint64_t)about.st_size, all_bytes(file));

    return !rename(file->path, output) ||
           message_error("%s cannot be renamed to %s: %s", file->path, output, strerror(errno));
}
