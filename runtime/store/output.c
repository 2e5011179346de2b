/* A killed process leaves the temporary file, and the next one reuses it. A lock (flock) keeps two
 * processes from writing it at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lock the file. Returns 0, EAGAIN if the name is another file's by now, or another errno. */
static int lock(int fd, const char *path)
{
    struct stat opened, named;
    if (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        return EAGAIN;
    /* Other failures are those of file systems without locks. */
    if (fstat(fd, &opened) != 0)
        return errno;

    /* Another user could change the file later. */
    if (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid())
        return EEXIST;

    /* The process that had the lock has renamed or removed its file. */
    if (lstat(path, &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)
        return EAGAIN;

    return ftruncate(fd, 0) == 0 ? 0 : errno;
}

/* Open and lock the temporary file. Returns -1 with errno. */
static int open_locked(const char *path)
{
    int error;
    do {
        const int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;

        error = lock(fd, path);
        if (error == 0)
            return fd;
        close(fd);
    } while (error == EAGAIN);

    errno = error;
    return -1;
}

/* Choose the names. False: no memory. */
static bool choose_names(struct cox__output *output, const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return true;

    output->place = realpath(path, NULL); /* of a link, the file behind it is replaced */
    if (!output->place)
        output->place = strdup(path);
    if (!output->place || asprintf(&output->temporary, "%s.tmp", output->place) < 0) {
        output->temporary = NULL;
        return false;
    }

    return true;
}

static void free_names(struct cox__output *output)
{
    free(output->place);
    free(output->temporary);
}

/* Returns 0 or an errno. */
static int open_file(struct cox__output *output, const char *path)
{
    if (!choose_names(output, path))
        return ENOMEM;
    if (!output->place) {
        output->file = fopen(path, "wbe");
        return output->file ? 0 : errno;
    }

    const int fd = open_locked(output->temporary);
    if (fd < 0)
        return errno;

    output->file = fdopen(fd, "wb");
    if (output->file)
        return 0;

    const int error = errno;
    unlink(output->temporary);
    close(fd);
    return error;
}

bool cox__output_open(struct cox__output *output, const char *path)
{
    *output = (struct cox__output){0};

    const int error = open_file(output, path);
    if (error) {
        free_names(output);
        errno = error;
    }
    return error == 0;
}

/* Put the written file in its place. Returns 0 or an errno. */
static int put(const struct cox__output *output)
{
    if (fflush(output->file) != 0)
        return errno;
    if (!output->place)
        return 0;
    if (fsync(fileno(output->file)) != 0 || rename(output->temporary, output->place) != 0)
        return errno;
    return 0;
}

bool cox__output_close(struct cox__output *output, bool keep)
{
    int error = keep ? put(output) : ECANCELED;
    if (error && output->place)
        unlink(output->temporary);
    if (fclose(output->file) != 0 && !error) /* ends the lock, so it comes last */
        error = errno;

    free_names(output);
    errno = error;
    return error == 0;
}
