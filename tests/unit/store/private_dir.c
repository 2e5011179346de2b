/* Which directories count as private, and what their path may contain.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "store/private_dir.h"
#include "unit/store/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { STRANGER = 12345 };

/* The directory is also the working directory. */
static void setup(void)
{
    make_base();
    cr_assert_eq(chdir(folder), 0);
}

TestSuite(private_dir, .init = setup, .fini = remove_folder, .timeout = 300);

/* The path is accepted and leads to the directory `is`. */
static void expect_open(const char *path, const char *is)
{
    struct stat got, wanted;
    lines = 0;
    int fd = cox__private_dir_open(path, false, "test", &logger);
    cr_assert(fd >= 0, "%s: %s", path, last_line);
    cr_assert_eq(lines, 0, "%s", last_line);
    cr_assert_eq(fstat(fd, &got), 0);
    cr_assert_eq(stat(is, &wanted), 0);
    cr_assert(got.st_dev == wanted.st_dev && got.st_ino == wanted.st_ino, "%s is not %s", path, is);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

/* The path is refused, and nothing is created in it. */
static void expect_refused(const char *path, const char *why)
{
    for (int create = 0; create < 2; create++) {
        lines = 0;
        cr_assert_eq(cox__private_dir_open(path, create, "test", &logger), -1, "%s", path);
        cr_assert_eq(lines, 1, "%s", path);
        cr_assert_not_null(strstr(last_line, why), "%s", last_line);
    }
}

static void make(const char *path, mode_t mode)
{
    cr_assert(mkdir(path, mode) == 0 || errno == EEXIST);
    cr_assert_eq(chmod(path, mode), 0);
}

Test(private_dir, is_found_by_any_spelling_of_its_path)
{
    char path[256], long_path[PATH_MAX + 10];
    make("a", 0755);
    make("a/b", 0700);
    snprintf(path, sizeof path, "%s/a/b", folder);
    expect_open(path, path);
    snprintf(path, sizeof path, "//%s//a/./b///", folder);
    expect_open(path, "a/b");
    expect_open("a/b", "a/b");
    expect_open("./a/../a/b/.", "a/b");
    expect_refused("", "name is empty");
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    expect_refused(long_path, "too long");
    long_path[NAME_MAX + 1] = '\0';
    expect_refused(long_path, strerror(ENAMETOOLONG));
}

Test(private_dir, is_made_with_its_parents_for_this_user_only)
{
    struct stat st;
    umask(0);
    cr_assert_eq(cox__private_dir_open("a/b/c", false, "test", &logger), -1);
    cr_assert_eq(lines, 0, "a missing directory is not logged");
    int fd = cox__private_dir_open("a/b/c", true, "test", &logger);
    cr_assert(fd >= 0, "%s", last_line);
    close(fd);
    for (const char **path = (const char *[]){"a", "a/b", "a/b/c", NULL}; *path; path++) {
        cr_assert_eq(stat(*path, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700, "%s", *path);
    }
}

Test(private_dir, is_not_what_others_may_write_to)
{
    static const mode_t modes[] = {0770, 0702, 01777};
    for (int i = 0; i < 3; i++) {
        make("a", modes[i]);
        expect_refused("a", "others may write");
    }
    make("a", 0755);
    expect_open("a", "a");
}

Test(private_dir, does_not_lie_in_what_others_may_write_to)
{
    make("open", 0777);
    make("open/a", 0700);
    make("open/a/b", 0700);
    expect_refused("open/a", "in its path");
    expect_refused("open/a/b", "in its path");
    expect_refused("open/new", "in its path");
    cr_assert_eq(access("open/new", F_OK), -1);
    make("open", 01777); /* like /tmp */
    expect_open("open/a/b", "open/a/b");
    make("open", 0775); /* this user's own group */
    expect_open("open/a/b", "open/a/b");
    if (geteuid() != 0)
        return; /* the remaining cases need a second group */
    cr_assert_eq(chown("open", (uid_t)-1, STRANGER), 0);
    expect_refused("open/a/b", "in its path");
}

Test(private_dir, is_found_behind_links_of_this_user)
{
    char way[256];
    make("a", 0755);
    make("a/b", 0700);
    snprintf(way, sizeof way, "%s/a", folder);
    cr_assert_eq(symlink(way, "absolute"), 0);
    cr_assert_eq(symlink("a/../absolute", "relative"), 0);
    expect_open("absolute/b", "a/b");
    expect_open("relative/b/", "a/b");
    int fd = cox__private_dir_open("relative/new/er", true, "test", &logger);
    cr_assert(fd >= 0);
    close(fd);
    expect_open("relative/new/er", "a/new/er");
    cr_assert_eq(symlink("loop", "loop"), 0);
    expect_refused("loop/b", strerror(ELOOP));
}

Test(private_dir, is_no_link_itself)
{
    make("a", 0700);
    cr_assert_eq(symlink("a", "link"), 0);
    cr_assert_eq(symlink("nowhere", "dangling"), 0);
    expect_refused("link", "it is a link");
    expect_refused("link//", "it is a link");
    expect_refused("dangling", "it is a link");
    cr_assert_eq(access("nowhere", F_OK), -1);
}

Test(private_dir, is_no_file)
{
    cr_assert(close(open("file", O_CREAT | O_WRONLY, 0600)) == 0 && mkfifo("fifo", 0600) == 0);
    expect_refused("file", strerror(ENOTDIR));
    expect_refused("file/a", strerror(ENOTDIR));
    expect_refused("fifo", strerror(ENOTDIR));
}

Test(private_dir, has_nothing_of_other_users_on_the_way)
{
    skip_unless(geteuid() == 0, "only root can give things away");
    make("a", 0755);
    make("a/b", 0700);
    make("common", 01777);
    cr_assert_eq(symlink("../a", "common/link"), 0);
    expect_open("common/link/b", "a/b");
    cr_assert_eq(lchown("common/link", STRANGER, STRANGER), 0);
    expect_refused("common/link/b", "link of another user");
    cr_assert_eq(chown("a", STRANGER, STRANGER), 0);
    expect_refused("a/b", "in its path");
    cr_assert_eq(chown("a", 65534, 65534), 0); /* in a container: a directory that root of the outer system owns */
    expect_open("a/b", "a/b");
    cr_assert_eq(chown("a/b", STRANGER, STRANGER), 0);
    expect_refused("a/b", "another user");
}

Test(private_dir, may_lie_behind_what_cannot_be_listed)
{
    skip_unless(geteuid() != 0, "root may list everything");
    make("a", 0700);
    make("a/b", 0700);
    make("a", 0311);
    expect_open("a/b", "a/b");
    make("a", 0700);
}
