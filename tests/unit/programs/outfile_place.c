/* A finished file gets its place. It replaces no file that must stay, its name lasts, and nothing is lost when a call
 * fails. This program has functions of the C library's names, which fail on request.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/outfile.h"
#include "support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

TestSuite(outfile_place, .init = make_folder, .fini = remove_folder, .timeout = 600);

static struct error said;

/* The error of the next calls; 0 = they work. */
static int renameat2_fails, linkat_fails, link_fails, folder_fails;
static int folders; /* that were synchronised */

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    errno = renameat2_fails;
    return renameat2_fails ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    errno = linkat_fails;
    return linkat_fails ? -1 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
    errno = link_fails;
    return link_fails ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int fsync(int fd)
{
    struct stat about;
    const bool is_folder = !fstat(fd, &about) && S_ISDIR(about.st_mode);
    folders += is_folder;
    errno = folder_fails;
    return is_folder && folder_fails ? -1 : (int)syscall(SYS_fsync, fd);
}

static struct outfile *begin(const char *content)
{
    struct outfile *file;
    cr_assert(outfile_open(&file, in_folder("a"), &said), "%s", said.text);
    fputs(content, outfile_stream(file));
    return file;
}

static void expect_content(const char *name, const char *content)
{
    cr_expect(shell("test \"$(cat %s)\" = %s", name, content), "%s is not '%s'", name, content);
}

static void expect_files(int count)
{
    cr_expect(shell("test $(ls -A | wc -l) = %d", count), "not %d files", count);
}

/* Something appears meanwhile. */
static void expect_kept(const char *what)
{
    struct outfile *file = begin("new");
    outfile_keep_existing(file);
    cr_assert(shell("rm -f a*; echo other >a"));
    cr_expect_not(outfile_finish(&file, &said), "%s", what);
    cr_expect_str_eq(said.text, "cannot be put there: File exists; the finished file is named a.kept-1");
    expect_content("a", "other");
    expect_content("a.kept-1", "new");
    expect_files(2);
}

Test(outfile_place, a_file_that_appears_meanwhile_stays_if_that_is_asked_for)
{
    expect_kept("as usual");
    renameat2_fails = EINVAL;
    expect_kept("without such a rename");
    link_fails = EPERM;
    expect_kept("without links");
    renameat2_fails = link_fails = 0;
    outfile_use_names();
    expect_kept("with temporary names");
}

Test(outfile_place, nothing_is_kept_where_nothing_appears)
{
    for (int way = 0; way < 3; way++) {
        renameat2_fails = way > 0 ? ENOSYS : 0;
        link_fails = way > 1 ? EPERM : 0;
        struct outfile *file = begin("new");
        outfile_keep_existing(file);
        cr_expect(outfile_finish(&file, &said), "%s", said.text);
        expect_content("a", "new");
        expect_files(1);
        cr_assert(shell("rm a"));
    }
}

Test(outfile_place, a_file_that_appears_meanwhile_is_replaced_otherwise)
{
    struct outfile *file = begin("new");
    cr_assert(shell("echo other >a"));
    cr_expect(outfile_finish(&file, &said), "%s", said.text);
    expect_content("a", "new");
    expect_files(1);
}

Test(outfile_place, two_files_that_cannot_be_put_there_have_two_names)
{
    for (int i = 0; i < 2; i++) {
        struct outfile *file = begin("new");
        cr_assert(shell("mkdir a"));
        cr_expect_not(outfile_finish(&file, &said));
        cr_assert(shell("rmdir a"));
    }
    cr_expect_str_eq(said.text, "cannot be put there: Is a directory; the finished file is named a.kept-2");
    expect_content("a.kept-1", "new");
    expect_content("a.kept-2", "new");
}

Test(outfile_place, a_file_that_cannot_get_a_name_is_copied)
{
    struct outfile *file = begin("new");
    cr_assert_eq(fchmod(fileno(outfile_stream(file)), 0640), 0);
    linkat_fails = EPERM;
    cr_expect(outfile_finish(&file, &said), "%s", said.text);
    expect_content("a", "new");
    cr_expect(shell("test $(stat -c %%a a) = 640"));
    expect_files(1);
}

Test(outfile_place, the_folder_is_synchronised)
{
    struct outfile *file = begin("new");
    cr_expect(outfile_finish(&file, &said), "%s", said.text);
    cr_expect_eq(folders, 1);
    folder_fails = EINVAL; /* some file systems cannot */
    file = begin("newer");
    cr_expect(outfile_finish(&file, &said), "%s", said.text);
    folder_fails = EIO;
    file = begin("newest");
    cr_expect_not(outfile_finish(&file, &said));
    cr_expect_str_eq(said.text, "cannot be written: Input/output error");
    expect_content("a", "newest");
    expect_files(1);
}
