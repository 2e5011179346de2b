/* Directories that hold what only this user may have written.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_PRIVATE_DIR_H
#define COX_RUNTIME_PRIVATE_DIR_H

#include "base/log.h"

#include <sys/stat.h>

/* A descriptor of the directory, made if `create` (mode 0700, parents too), or -1: with a log line that begins with
 * `what`, except where it does not exist and `create` is unset. What is promised of it:
 *
 * - It belongs to this user, nobody else may write to it, and the last component of its path is no link.
 * - Nobody but this user and root can have another directory found under this path: each directory on the way belongs
 *   to root or to this user and is writable by nobody else, or is sticky (as /tmp); each link on the way belongs to
 *   root or to this user.
 *
 * Two concessions. A directory of this user that his own group may write to may stand on the way, since many systems
 * give each user a group of his own. And an owner that this user namespace has no name for counts as root, since in a
 * container that is how the outer system's root shows. */
int cox__private_dir_open(const char *dir, bool create, const char *what,
                          const struct cox__log *log);

/* Whether a file (or directory) belongs to this user and is writable by nobody else. */
bool cox__private_dir_is(const struct stat *st);

#endif
