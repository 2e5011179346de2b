/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct outfile {
    FILE *stream;
    bool standard;
    bool special;
    int slot;                      /* in `pending`; -1 = none */
    char place[PATH_MAX];          /* where it is to appear */
    char temporary[PATH_MAX + 48]; /* "" = written in place */
};

/* What a signal handler has to remove. A slot holds a pointer into a living outfile. */
enum { PENDING_MAX = 8 };
static _Atomic(const char *) pending[PENDING_MAX];

void outfile_remove_all(void)
{
    for (int i = 0; i < PENDING_MAX; i++) {
        const char *path = atomic_load(&pending[i]);
        if (path)
            unlink(path);
    }
}

static void remember(struct outfile *file)
{
    file->slot = -1;
    for (int i = 0; i < PENDING_MAX && file->slot < 0; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&pending[i], &none, file->temporary))
            file->slot = i;
    }
}

static void forget(struct outfile *file)
{
    if (file->slot >= 0)
        atomic_store(&pending[file->slot], NULL);
    file->slot = -1;
}

/* A temporary file beside the place, hidden, with the process's number in its name. */
static int create_temporary(struct outfile *file, mode_t mode)
{
    const char *slash = strrchr(file->place, '/');
    int directory = slash ? (int)(slash - file->place) + 1 : 0;
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        snprintf(file->temporary, sizeof file->temporary, "%.*s.%.100s.%ld-%u.tmp", directory, file->place,
                 file->place + directory, (long)getpid(), attempt);
        int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool outfile_open(struct outfile **out, const char *path, struct picture_error *error)
{
    *out = NULL;
    struct outfile *file = calloc(1, sizeof *file);
    if (!file)
        return picture_fail(error, "out of memory");
    file->slot = -1;
    struct stat about;
    int fd = -1;
    if (!strcmp(path, "-")) {
        file->standard = file->special = true;
        fd = dup(STDOUT_FILENO);
    } else if (!*path) {
        picture_fail(error, "an empty name");
        goto fail;
    } else if (stat(path, &about)) {
        if (errno != ENOENT || strlen(path) >= sizeof file->place) {
            picture_fail(error, "cannot be written: %s", strerror(errno == ENOENT ? ENAMETOOLONG : errno));
            goto fail;
        }
        strcpy(file->place, path);
        fd = create_temporary(file, 0666);
    } else if (S_ISDIR(about.st_mode)) {
        picture_fail(error, "is a directory");
        goto fail;
    } else if (!S_ISREG(about.st_mode)) {
        file->special = true;
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else if (!access(path, W_OK) && realpath(path, file->place)) {
        fd = create_temporary(file, about.st_mode & 0777);
        if (fd >= 0)
            (void)!fchmod(fd, about.st_mode & 0777); /* the mask had its say when the file was made first */
    }
    if (fd < 0) {
        picture_fail(error, "cannot be written: %s", strerror(errno));
        goto fail;
    }
    if (file->temporary[0])
        remember(file);
    file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        picture_fail(error, "cannot be written: %s", strerror(errno));
        close(fd);
        goto fail;
    }
    *out = file;
    return true;
fail:
    if (file->slot >= 0)
        unlink(file->temporary);
    forget(file);
    free(file);
    return false;
}

FILE *outfile_stream(struct outfile *file)
{
    return file->stream;
}

bool outfile_is_special(const struct outfile *file)
{
    return file->special;
}

/* Some things that can be written cannot be synchronised, and need not be. */
static bool synchronise(int fd)
{
    return !fsync(fd) || errno == EINVAL || errno == EROFS || errno == ENOTSUP || errno == ENOSYS || errno == EBADF;
}

bool outfile_finish(struct outfile **out, struct picture_error *error)
{
    struct outfile *file = *out;
    *out = NULL;
    int failure = 0;
    errno = 0;
    if (fflush(file->stream) || ferror(file->stream))
        failure = errno ? errno : EIO;
    if (!failure && !synchronise(fileno(file->stream)))
        failure = errno;
    if (fclose(file->stream) && !failure)
        failure = errno;
    if (!failure && file->temporary[0] && rename(file->temporary, file->place))
        failure = errno;
    if (failure && file->temporary[0])
        unlink(file->temporary);
    forget(file);
    free(file);
    return failure ? picture_fail(error, "cannot be written: %s", strerror(failure)) : true;
}

void outfile_abandon(struct outfile **out)
{
    struct outfile *file = *out;
    if (!file)
        return;
    *out = NULL;
    fclose(file->stream);
    if (file->temporary[0])
        unlink(file->temporary);
    forget(file);
    free(file);
}
