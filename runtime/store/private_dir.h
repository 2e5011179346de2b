/* Directories whose content only this user can have written.
 * Thread-safety: safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_PRIVATE_DIR_H
#define COX_RUNTIME_PRIVATE_DIR_H

#include "base/log.h"

#include <sys/stat.h>

/* Open a directory, or with `create` make it (mode 0700, parents too). Returns a descriptor, or -1
 * with a log line that begins with `what`. There is no log line if the directory does not exist and
 * `create` is false. The function checks:
 *
 * - The directory belongs to this user, and nobody else may write to it.
 * - The last component of its path is no link.
 * - Only this user and root can make the path lead to another directory. Each directory on the path
 *   belongs to root or to this user and is writable by nobody else, or is sticky (as /tmp is). Each
 *   link belongs to root or to this user.
 *
 * There are two exceptions. The group of this user may have write access to a directory of this
 * user on the path, since many systems give each user a group. And an owner that this user
 * namespace has no name for counts as root, since a container shows the outer system's root in that
 * way. */
int cox__private_dir_open(const char *dir, bool create, const char *what,
                          const struct cox__log *log);

/* Whether a file (or directory) belongs to this user and is writable by nobody else. */
bool cox__private_dir_is(const struct stat *st);

#endif
