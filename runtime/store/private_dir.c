/* Walks the path component by component. Each component is opened in the directory before it and
 * checked before the next step, so the directory that was checked is the one that is used. A plain
 * open would follow a link that another user has put into a directory that he may write to.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINKS_MAX = 40, /* the system's limit */
    /* what the system shows for an owner that is not in this user namespace */
    OWNER_UNKNOWN = 65534,
    WRITABLE_BY_OTHERS = S_IWGRP | S_IWOTH,
};

/* The state of a walk along a path. */
struct walk {
    int fd;              /* the directory that was reached */
    char rest[PATH_MAX]; /* the path from there on */
    int links;
    const char *refusal; /* why the directory is not used: another user may change it */
};

bool cox__private_dir_is(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & WRITABLE_BY_OTHERS) == 0;
}

static bool trusted_owner(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == OWNER_UNKNOWN;
}

/* Whether nobody else can replace what is in this directory. */
static bool steady(const struct stat *st)
{
    if (!trusted_owner(st))
        return false;
    if ((st->st_mode & S_ISVTX) || !(st->st_mode & WRITABLE_BY_OTHERS))
        return true;
    return !(st->st_mode & S_IWOTH) && st->st_uid == geteuid() && st->st_gid == getegid();
}

/* Go to `next`, and take ownership of it. With -1 the caller finds the reason in errno. */
static bool step_to(struct walk *walk, int next)
{
    if (next < 0)
        return false;
    if (walk->fd >= 0)
        close(walk->fd);
    walk->fd = next;
    return true;
}

static bool begin(struct walk *walk)
{
    const char *start = ".";
    if (walk->rest[0] == '/')
        start = "/";
    return step_to(walk, open(start, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Put a link's target in front of the rest of the path. */
static bool follow(struct walk *walk, const char *name, const char *behind)
{
    char target[PATH_MAX], whole[PATH_MAX];
    ssize_t length = readlinkat(walk->fd, name, target, sizeof target - 1);
    if (length < 0)
        return false;

    target[length] = '\0';
    int bytes = snprintf(whole, sizeof whole, "%s/%s", target, behind);
    if (++walk->links > LINKS_MAX || bytes < 0 || (size_t)bytes >= sizeof whole) {
        errno = ENAMETOOLONG;
        if (walk->links > LINKS_MAX)
            errno = ELOOP;
        return false;
    }

    memcpy(walk->rest, whole, (size_t)bytes + 1);
    return whole[0] != '/' || begin(walk);
}

/* Look at `name` in the directory that was reached. With `create`, make it if it does not exist. */
static bool look(struct walk *walk, const char *name, bool create, struct stat *st)
{
    if (fstatat(walk->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;

    if (errno != ENOENT || !create || (mkdirat(walk->fd, name, 0700) != 0 && errno != EEXIST))
        return false;

    return fstatat(walk->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Walk one component. Sets `*arrived` if it was the last one. */
static bool advance(struct walk *walk, bool create, bool *arrived)
{
    char name[NAME_MAX + 1], behind[PATH_MAX];
    struct stat st;

    const char *at = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(at, "/");
    const char *left = at + length + strspn(at + length, "/");

    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }

    if (length == 0) {
        at = ".";
        length = 1;
    }
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    snprintf(behind, sizeof behind, "%s", left);
    *arrived = behind[0] == '\0';

    if (fstat(walk->fd, &st) != 0)
        return false;

    if (!steady(&st)) {
        walk->refusal = "other users may change a directory in its path";
        return false;
    }

    if (!look(walk, name, create, &st))
        return false;

    if (S_ISLNK(st.st_mode)) {
        if (*arrived)
            walk->refusal = "it is a link";
        else if (!trusted_owner(&st))
            walk->refusal = "its path has a link of another user";
        return !walk->refusal && follow(walk, name, behind);
    }

    memcpy(walk->rest, behind, strlen(behind) + 1);

    /* Passing through a directory does not require the right to list it. */
    int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (*arrived)
        flags |= O_RDONLY;
    else
        flags |= O_PATH;
    return step_to(walk, openat(walk->fd, name, flags));
}

int cox__private_dir_open(const char *dir, bool create, const char *what,
                          const struct cox__log *log)
{
    struct walk walk = {.fd = -1};
    struct stat st;
    bool arrived = false;

    int length = snprintf(walk.rest, sizeof walk.rest, "%s", dir);
    if (length <= 0) {
        cox__log(log, COX_LOG_WARN, "%s: the directory's name is empty", what);
        return -1;
    }
    if ((size_t)length >= sizeof walk.rest) {
        cox__log(log, COX_LOG_WARN, "%s: the directory's name is too long", what);
        return -1;
    }

    bool ok = begin(&walk);
    while (ok && !arrived)
        ok = advance(&walk, create, &arrived);

    if (ok && (fstat(walk.fd, &st) != 0 || !cox__private_dir_is(&st))) {
        walk.refusal = "it belongs to another user or others may write to it";
        ok = false;
    }

    if (ok)
        return walk.fd;

    if (walk.refusal)
        cox__log(log, COX_LOG_WARN, "%s: the directory %s is not used, because %s", what, dir,
                 walk.refusal);
    else if (create || errno != ENOENT)
        cox__log(log, COX_LOG_WARN, "%s: cannot open the directory %s: %s", what, dir,
                 strerror(errno));

    if (walk.fd >= 0)
        close(walk.fd);
    return -1;
}
