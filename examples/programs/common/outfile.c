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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct outfile {
    FILE *stream;
    bool standard;
    bool special;
    bool nameless;
    int slot;                      /* in `pending`; -1 = none */
    char place[PATH_MAX];          /* where it is to appear */
    char temporary[PATH_MAX + 48]; /* "" = written in place, or nameless still */
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

/* Length of the path without its last component. */
static int directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

enum { NAMES_MAX = 100, SHARED_NAMES = 10 };

/* Beside the place, hidden. The first names are the same in all processes, so that what a killed one has left is found;
 * where there are no locks it stays, and the names behind them have the process's number. */
static void name_temporary(struct outfile *file, unsigned attempt)
{
    const int directory = directory_length(file->place);
    const unsigned long process = attempt < SHARED_NAMES ? 0 : (unsigned long)getpid() * NAMES_MAX;
    snprintf(file->temporary, sizeof file->temporary, "%.*s.%.100s.%lu.tmp", directory, file->place,
             file->place + directory, process + attempt);
}

static bool is_named(int fd, const char *path)
{
    struct stat file, named;
    return !fstat(fd, &file) && !stat(path, &named) && file.st_dev == named.st_dev &&
           file.st_ino == named.st_ino;
}

/* Remove a temporary file if the process that wrote it is gone, and its lock with it. The name cannot come to mean
 * another file before it is removed: only the file's lock allows to rename or remove it. Leaves errno as it is. */
static bool remove_left(const char *path)
{
    const int kept = errno, fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool removed = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && is_named(fd, path) &&
                         !unlink(path);
    if (fd >= 0)
        close(fd);
    errno = kept;
    return removed;
}

/* Until it is closed. False: another process has taken the new file for one that was left, and removes it. */
static bool lock_temporary(int fd, const char *path)
{
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return is_named(fd, path);
    return errno != EWOULDBLOCK; /* there are no locks here */
}

static bool names_only;

void outfile_use_names(void)
{
    names_only = true;
}

/* How a file without a name is reached to be given one. */
static void descriptor_path(int fd, char path[32])
{
    snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* A file that is gone with the process, however that ends. -1 where there is no such thing. */
static int create_nameless(struct outfile *file, mode_t mode)
{
    char directory[PATH_MAX], path[32];
    int length = directory_length(file->place);
    snprintf(directory, sizeof directory, "%.*s", length ? length : 1, length ? file->place : ".");
    int fd = names_only ? -1 : open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    descriptor_path(fd, path);
    if (access(path, F_OK)) {
        close(fd);
        return -1;
    }
    (void)!flock(fd, LOCK_EX | LOCK_NB); /* before it has a name */
    file->nameless = true;
    return fd;
}

static int create_temporary(struct outfile *file, mode_t mode)
{
    int fd = create_nameless(file, mode);
    for (unsigned attempt = 0; fd < 0 && attempt < NAMES_MAX; attempt++) {
        name_temporary(file, attempt);
        do
            fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        while (fd < 0 && errno == EEXIST && remove_left(file->temporary));
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && !lock_temporary(fd, file->temporary)) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

/* A link cannot replace a file, but a renaming can. */
static bool give_name(struct outfile *file)
{
    char path[32];
    descriptor_path(fileno(file->stream), path);
    for (unsigned attempt = 0; attempt < NAMES_MAX; attempt++) {
        name_temporary(file, attempt);
        bool linked;
        do
            linked = !linkat(AT_FDCWD, path, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW);
        while (!linked && errno == EEXIST && remove_left(file->temporary));
        if (linked) {
            remember(file);
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    file->temporary[0] = 0;
    return false;
}

bool outfile_open(struct outfile **out, const char *path, struct error *error)
{
    *out = NULL;
    struct outfile *file = calloc(1, sizeof *file);
    if (!file)
        return error_set(error, "out of memory");
    file->slot = -1;
    struct stat about;
    int fd = -1;
    if (!strcmp(path, "-")) {
        file->standard = file->special = true;
        fd = dup(STDOUT_FILENO);
    } else if (!*path) {
        error_set(error, "an empty name");
        goto fail;
    } else if (stat(path, &about)) {
        if (errno != ENOENT || strlen(path) >= sizeof file->place) {
            error_set(error, "cannot be written: %s",
                      strerror(errno == ENOENT ? ENAMETOOLONG : errno));
            goto fail;
        }
        strcpy(file->place, path);
        fd = create_temporary(file, 0666);
    } else if (S_ISDIR(about.st_mode)) {
        error_set(error, "is a directory");
        goto fail;
    } else if (!S_ISREG(about.st_mode)) {
        file->special = true;
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else if (!access(path, W_OK) && realpath(path, file->place)) {
        fd = create_temporary(file, about.st_mode & 0777);
        if (fd >= 0)
            (void)!fchmod(fd, about.st_mode &
                                  0777); /* the mask had its say when the file was made first */
    }
    if (fd < 0) {
        error_set(error, "cannot be written: %s", strerror(errno));
        goto fail;
    }
    if (file->temporary[0])
        remember(file);
    file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        error_set(error, "cannot be written: %s", strerror(errno));
        if (file->temporary[0])
            unlink(file->temporary);
        close(fd);
        goto fail;
    }
    *out = file;
    return true;
fail:
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
    return !fsync(fd) || errno == EINVAL || errno == EROFS || errno == ENOTSUP || errno == ENOSYS ||
           errno == EBADF;
}

bool outfile_finish(struct outfile **out, struct error *error)
{
    struct outfile *file = *out;
    *out = NULL;
    int failure = 0;
    const int lock =
        dup(fileno(file->stream)); /* holds the lock until the file has its place or is removed */
    if (lock < 0)
        failure = errno;
    errno = 0;
    if (!failure && (fflush(file->stream) || ferror(file->stream)))
        failure = errno ? errno : EIO;
    if (!failure && !synchronise(fileno(file->stream)))
        failure = errno;
    if (!failure && file->nameless && !give_name(file))
        failure = errno;
    if (fclose(file->stream) && !failure)
        failure = errno;
    if (!failure && file->temporary[0] && rename(file->temporary, file->place))
        failure = errno;
    if (failure && file->temporary[0])
        unlink(file->temporary);
    if (lock >= 0)
        close(lock);
    forget(file);
    free(file);
    return failure ? error_set(error, "cannot be written: %s", strerror(failure)) : true;
}

void outfile_abandon(struct outfile **out)
{
    struct outfile *file = *out;
    if (!file)
        return;
    *out = NULL;
    if (file->temporary[0])
        unlink(file->temporary);
    fclose(file->stream); /* and with it the lock */
    forget(file);
    free(file);
}

bool outfile_same_place(const char *path, const char *other)
{
    struct stat a, b;
    if (!strcmp(path, "-") || !strcmp(other, "-"))
        return false;
    bool there = !stat(path, &a), other_there = !stat(other, &b);
    if (there || other_there)
        return there && other_there && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
               a.st_ino == b.st_ino;
    int length = directory_length(path), other_length = directory_length(other);
    if (strcmp(path + length, other + other_length))
        return false;
    char directory[PATH_MAX], other_directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%.*s", length ? length : 1, length ? path : ".");
    snprintf(other_directory, sizeof other_directory, "%.*s", other_length ? other_length : 1,
             other_length ? other : ".");
    return !stat(directory, &a) && !stat(other_directory, &b) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

void outfile_guard_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO
                                         ? O_WRONLY
                                         : O_RDONLY); /* the least free number: this one */
}
