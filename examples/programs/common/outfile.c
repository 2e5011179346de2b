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
    bool special;
    bool nameless;
    bool keeps_existing;
    int slot;                      /* in `pending`; -1 = none */
    char place[PATH_MAX];          /* where it will appear */
    char temporary[PATH_MAX + 48]; /* "" = written in place, or without a name yet */
};

/* The files that a signal handler removes. A slot points into an outfile. */
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

/* The directory that a path is in. */
static void directory_of(const char *path, char directory[PATH_MAX])
{
    const int length = directory_length(path);
    if (length)
        snprintf(directory, PATH_MAX, "%.*s", length, path);
    else
        snprintf(directory, PATH_MAX, ".");
}

enum { NAMES_MAX = 100, SHARED_NAMES = 10 };

/* Hidden, next to the place. The first names are the same in all processes, so that the next one
 * finds what a killed one has left. Without locks that stays, and later names have the process's
 * number. */
static void name_temporary(struct outfile *file, unsigned attempt)
{
    const int directory = directory_length(file->place);
    unsigned long number = attempt;
    if (attempt >= SHARED_NAMES)
        number += (unsigned long)getpid() * NAMES_MAX;
    snprintf(file->temporary, sizeof file->temporary, "%.*s.%.100s.%lu.tmp", directory, file->place,
             file->place + directory, number);
}

static bool is_named(int fd, const char *path)
{
    struct stat file, named;
    return !fstat(fd, &file) && !stat(path, &named) && file.st_dev == named.st_dev &&
           file.st_ino == named.st_ino;
}

/* Remove a temporary file if the process that wrote it is gone, and its lock with it. Only the
 * holder of the lock may rename or remove the file, so the name still refers to it. Keeps errno. */
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

/* Lock the new file until it is closed. False: another process takes it for one that was left, and
 * removes it. */
static bool lock_temporary(int fd, const char *path)
{
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return is_named(fd, path);
    return errno != EWOULDBLOCK; /* other errors: no locks on this file system */
}

static bool names_only;

void outfile_use_names(void)
{
    names_only = true;
}

/* The path under which a file without a name can be linked. */
static void descriptor_path(int fd, char path[32])
{
    snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* A file that vanishes with the process, however that ends. -1: not possible here. */
static int create_nameless(struct outfile *file, mode_t mode)
{
    char directory[PATH_MAX], path[32];
    if (names_only)
        return -1;
    directory_of(file->place, directory);
    const int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
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

static int create_named(struct outfile *file, mode_t mode)
{
    int fd = -1;

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

static int create_temporary(struct outfile *file, mode_t mode)
{
    const int fd = create_nameless(file, mode);
    return fd >= 0 ? fd : create_named(file, mode);
}

/* Link the file to a temporary name. A link cannot replace a file, the rename that follows can. */
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

/* Pipes, devices and some file systems cannot be synchronised, and need not be. */
static bool synchronise(int fd)
{
    return !fsync(fd) || errno == EINVAL || errno == EROFS || errno == ENOTSUP || errno == ENOSYS ||
           errno == EBADF;
}

static bool copy_bytes(int from, int to)
{
    char piece[65536];
    off_t at = 0;

    for (ssize_t got; (got = pread(from, piece, sizeof piece, at)) != 0; at += got) {
        if (got < 0)
            return false;
        for (ssize_t done = 0, put; done < got; done += put) {
            put = write(to, piece + done, (size_t)(got - done));
            if (put < 0)
                return false;
        }
    }
    return true;
}

/* Where a file cannot get a name later: copy it to one that has a name. */
static bool copy_to_name(struct outfile *file)
{
    struct stat about;
    const int from = fileno(file->stream);
    if (fstat(from, &about))
        return false;

    const int to = create_named(file, about.st_mode & 0777);
    if (to < 0)
        return false;

    remember(file);
    (void)!fchmod(to, about.st_mode & 0777);
    const bool good = copy_bytes(from, to) && synchronise(to);
    const int failure = errno;
    if (!good)
        unlink(file->temporary);
    close(to);
    errno = failure;
    return good;
}

static int open_new(struct outfile *file, const char *path)
{
    if (strlen(path) >= sizeof file->place) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(file->place, path);
    return create_temporary(file, 0666);
}

/* A new file in the place of one that exists, with its mode. */
static int open_replacement(struct outfile *file, const char *path, mode_t mode)
{
    if (access(path, W_OK) || !realpath(path, file->place))
        return -1;
    const int fd = create_temporary(file, mode & 0777);
    if (fd >= 0)
        (void)!fchmod(fd, mode & 0777); /* the umask has been applied to the file before */
    return fd;
}

/* A descriptor to write to; -1 and errno. */
static int open_descriptor(struct outfile *file, const char *path)
{
    struct stat about;

    if (!strcmp(path, "-")) {
        file->special = true;
        return dup(STDOUT_FILENO);
    }
    if (stat(path, &about)) {
        if (errno != ENOENT)
            return -1;
        return open_new(file, path);
    }

    if (S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (S_ISREG(about.st_mode))
        return open_replacement(file, path, about.st_mode);

    file->special = true;
    return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

bool outfile_open(struct outfile **out, const char *path, struct error *error)
{
    *out = NULL;
    if (!*path)
        return error_set(error, "an empty name");
    struct outfile *file = calloc(1, sizeof *file);
    if (!file)
        return error_set(error, "out of memory");

    file->slot = -1;
    const int fd = open_descriptor(file, path);
    if (fd < 0)
        goto fail;
    if (file->temporary[0])
        remember(file);
    file->stream = fdopen(fd, "wb");
    if (file->stream) {
        *out = file;
        return true;
    }

fail:
    if (errno == EISDIR)
        error_set(error, "is a directory");
    else
        error_set(error, "cannot be written: %s", strerror(errno));

    if (fd >= 0) {
        if (file->temporary[0])
            unlink(file->temporary);
        close(fd);
    }

    forget(file);
    free(file);
    return false;
}

void outfile_keep_existing(struct outfile *file)
{
    file->keeps_existing = true;
}

FILE *outfile_stream(struct outfile *file)
{
    return file->stream;
}

bool outfile_is_special(const struct outfile *file)
{
    return file->special;
}

/* Rename, but never replace a file. */
static bool rename_to_free(const char *from, const char *to)
{
    struct stat about;
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return true;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return false;

    /* The file system or the kernel has no such rename. A link replaces nothing either. */
    if (!link(from, to))
        return !unlink(from);
    if (errno == EEXIST)
        return false;

    /* It has no links either: a file that appears between these two calls is replaced. */
    if (!lstat(to, &about)) {
        errno = EEXIST;
        return false;
    }
    return !rename(from, to);
}

/* Give the whole file another name if it cannot have its own. "" = it is lost. */
static void rescue(struct outfile *file, char name[NAME_MAX + 1])
{
    char path[sizeof file->place + 16];

    for (unsigned n = 1; n < NAMES_MAX; n++) {
        snprintf(path, sizeof path, "%s.kept-%u", file->place, n);
        if (rename_to_free(file->temporary, path)) {
            file->temporary[0] = 0;
            snprintf(name, NAME_MAX + 1, "%.*s", NAME_MAX, path + directory_length(path));
            return;
        }
        if (errno != EEXIST)
            return;
    }
}

/* The new name lasts when its folder is on the disk. A folder that may not be read cannot be
 * synchronised. */
static bool synchronise_folder(const struct outfile *file)
{
    char directory[PATH_MAX];
    directory_of(file->place, directory);
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return true;

    const bool good = synchronise(fd);
    const int failure = errno;
    close(fd);
    errno = failure;
    return good;
}

/* Put the whole file in its place. Returns 0 or the error. */
static int put_in_place(struct outfile *file, char kept[NAME_MAX + 1])
{
    const bool placed = file->keeps_existing ? rename_to_free(file->temporary, file->place)
                                             : !rename(file->temporary, file->place);
    int failure = 0;

    if (!placed) {
        failure = errno;
        rescue(file, kept);
    } else if (!synchronise_folder(file)) {
        failure = errno;
        file->temporary[0] = 0;
    }
    return failure;
}

bool outfile_finish(struct outfile **out, struct error *error)
{
    struct outfile *file = *out;

    *out = NULL;
    int failure = 0;
    char kept[NAME_MAX + 1] = "";

    /* Holds the lock until the file is in its place or removed. */
    const int lock = dup(fileno(file->stream));

    if (lock < 0)
        failure = errno;
    errno = 0;
    if (!failure && (fflush(file->stream) || ferror(file->stream)))
        failure = errno ? errno : EIO;
    if (!failure && !synchronise(fileno(file->stream)))
        failure = errno;
    if (!failure && file->nameless && !give_name(file) && !copy_to_name(file))
        failure = errno;
    if (fclose(file->stream) && !failure)
        failure = errno;
    if (!failure && file->temporary[0])
        failure = put_in_place(file, kept);

    if (failure && file->temporary[0])
        unlink(file->temporary);
    if (lock >= 0)
        close(lock);
    forget(file);
    free(file);
    if (*kept)
        return error_set(error, "cannot be put there: %s; the finished file is named %s",
                         strerror(failure), kept);
    return !failure || error_set(error, "cannot be written: %s", strerror(failure));
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

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool outfile_same_place(const char *path, const char *other)
{
    char directory[PATH_MAX], other_directory[PATH_MAX];
    struct stat a, b;

    if (!strcmp(path, "-") || !strcmp(other, "-"))
        return false;
    const bool there = !stat(path, &a), other_there = !stat(other, &b);
    if (there || other_there)
        return there && other_there && S_ISREG(a.st_mode) && is_same_file(&a, &b);

    if (strcmp(path + directory_length(path), other + directory_length(other)) != 0)
        return false;
    directory_of(path, directory);
    directory_of(other, other_directory);
    return !stat(directory, &a) && !stat(other_directory, &b) && is_same_file(&a, &b);
}

void outfile_guard_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", flags); /* it gets the lowest free descriptor, this one */
    }
}
