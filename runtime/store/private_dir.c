/* The path is walked component by component, each opened in the one before and looked at before the next step, so that
 * what was looked at is what is used. The system's own way would follow a link that another user put into a directory
 * that he may write to.
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
    LINKS_MAX = 40, /* as the system has it */
    /* what the system shows for an owner that is not of this user namespace */
    OWNER_UNKNOWN = 65534,
    WRITABLE_BY_OTHERS = S_IWGRP | S_IWOTH,
};

/* A path on its way. */
struct walk {
    int fd;              /* the directory that was reached */
    char rest[PATH_MAX]; /* what is still to go */
    int links;
    const char *refusal; /* of something that another user may change */
};

bool cox__private_dir_is(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & WRITABLE_BY_OTHERS) == 0;
}

static bool trusted_owner(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == OWNER_UNKNOWN;
}

/* Whether nobody else can put something else in the place of what stands in this directory. */
static bool steady(const struct stat *st)
{
    if (!trusted_owner(st))
        return false;
    if ((st->st_mode & S_ISVTX) || !(st->st_mode & WRITABLE_BY_OTHERS))
        return true;
    return !(st->st_mode & S_IWOTH) && st->st_uid == geteuid() && st->st_gid == getegid();
}

/* Go to `next`, which is owned from here on; -1 passes errno on. */
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
    return step_to(walk, open(walk->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Put a link's target before what is still to go behind it. */
static bool follow(struct walk *walk, const char *name, const char *behind)
{
    char target[PATH_MAX], whole[PATH_MAX];
    ssize_t length = readlinkat(walk->fd, name, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    int bytes = snprintf(whole, sizeof whole, "%s/%s", target, behind);
    if (++walk->links > LINKS_MAX || bytes < 0 || (size_t)bytes >= sizeof whole) {
        errno = walk->links > LINKS_MAX ? ELOOP : ENAMETOOLONG;
        return false;
    }
    memcpy(walk->rest, whole, (size_t)bytes + 1);
    return whole[0] != '/' || begin(walk);
}

/* Look at `name` in the directory that was reached, which is made if it has to be. */
static bool look(struct walk *walk, const char *name, bool create, struct stat *st)
{
    if (fstatat(walk->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    if (errno != ENOENT || !create || (mkdirat(walk->fd, name, 0700) != 0 && errno != EEXIST))
        return false;
    return fstatat(walk->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* One component. `*arrived`: it was the last one. */
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
    snprintf(name, sizeof name, "%.*s", length > 0 ? (int)length : 1, length > 0 ? at : ".");
    snprintf(behind, sizeof behind, "%s", left);
    *arrived = behind[0] == '\0';
    if (fstat(walk->fd, &st) != 0)
        return false;
    if (!steady(&st)) {
        walk->refusal = "others may change what lies in a directory on the way";
        return false;
    }
    if (!look(walk, name, create, &st))
        return false;
    if (S_ISLNK(st.st_mode)) {
        if (*arrived)
            walk->refusal = "it is a link";
        else if (!trusted_owner(&st))
            walk->refusal = "a link on the way is another user's";
        return !walk->refusal && follow(walk, name, behind);
    }
    memcpy(walk->rest, behind, strlen(behind) + 1);
    /* To pass through a directory takes no right to list it. */
    int flags = (*arrived ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    return step_to(walk, openat(walk->fd, name, flags));
}

int cox__private_dir_open(const char *dir, bool create, const char *what,
                          const struct cox__log *log)
{
    struct walk walk = {.fd = -1};
    struct stat st;
    bool arrived = false;
    int length = snprintf(walk.rest, sizeof walk.rest, "%s", dir);
    if (length <= 0 || (size_t)length >= sizeof walk.rest) {
        cox__log(log, COX_LOG_WARN, "%s: %s", what,
                 length > 0 ? "the directory's name is too long" : "the directory has no name");
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
