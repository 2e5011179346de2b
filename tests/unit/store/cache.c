/* The cache of compiled kernels. What was stored is loaded complete or not at all, whatever happened to its file.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "store/cache.h"
#include "unit/store/base.h"
#include "base/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[160]; /* the cache in the test's folder */
static unsigned char key[32], other[32];
static char path[256]; /* of the entry `key` */
static const struct cox__log silent = {.level = COX_LOG_WARN};

static void key_of(const char *text, unsigned char out[32])
{
    struct cox__digest sha;
    cox__digest_begin(&sha);
    cox__cache_feed(&sha, text, strlen(text));
    cox__digest_end(&sha, out);
}

static void path_of(const unsigned char of[32], char out[256])
{
    int at = snprintf(out, 256, "%s/", dir);
    for (int i = 0; i < 32; i++)
        at += snprintf(out + at, 256 - (size_t)at, "%02x", of[i]);
    snprintf(out + at, 256 - (size_t)at, ".bin");
}

static void setup(void)
{
    make_base();
    snprintf(dir, sizeof dir, "%s/cache", folder);
    key_of("one", key);
    key_of("other", other);
    path_of(key, path);
}

TestSuite(cache, .init = setup, .fini = remove_folder, .timeout = 600);

static void store(const unsigned char under[32], const char *text)
{
    cox__cache_store(dir, &cox__cache_kernels, under, text, strlen(text), &logger);
}

static size_t read_file(const char *from, unsigned char *data, size_t size)
{
    FILE *file = fopen(from, "rb");
    cr_assert_not_null(file, "%s", from);
    size_t got = fread(data, 1, size, file);
    fclose(file);
    return got;
}

static void replace_file(const char *to, const void *data, size_t bytes)
{
    unlink(to);
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0, "%s", to);
    cr_assert_eq(write(fd, data, bytes), (ssize_t)bytes);
    close(fd);
}

static int files_in(const char *folder)
{
    DIR *list = opendir(folder);
    cr_assert_not_null(list);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void expect_bytes(const unsigned char under[32], const void *data, size_t bytes)
{
    size_t got = 12345;
    void *back = cox__cache_load(dir, &cox__cache_kernels, under, &got, &logger);
    cr_assert_not_null(back, "%s", last_line);
    cr_assert_eq(got, bytes);
    cr_assert_arr_eq(back, data, bytes);
    free(back);
}

static void expect_stored(const unsigned char under[32], const char *text)
{
    expect_bytes(under, text, strlen(text));
}

static void expect_absent(const unsigned char under[32])
{
    size_t got = 12345;
    cr_assert_null(cox__cache_load(dir, &cox__cache_kernels, under, &got, &logger));
    cr_assert_eq(got, 0);
}

/* SHA-256 */

static void expect_digest(const void *data, size_t bytes, const char *hex)
{
    struct cox__digest sha;
    unsigned char digest[COX__SHA256_BYTES];
    char text[65];
    for (size_t piece = 1; piece <= 67; piece += 11) { /* the sizes of the pieces must not matter */
        cox__digest_begin(&sha);
        for (size_t at = 0; at < bytes; at += piece)
            cox__digest_feed(&sha, (const char *)data + at, bytes - at < piece ? bytes - at : piece);
        cox__digest_end(&sha, digest);
        for (size_t i = 0; i < sizeof digest; i++)
            snprintf(text + 2 * i, 3, "%02x", digest[i]);
        cr_assert_str_eq(text, hex, "%zu bytes in pieces of %zu", bytes, piece);
    }
}

Test(cache, sha256_agrees_with_the_published_vectors)
{
    /* NIST: examples of FIPS 180-2 and SHA256ShortMsg.rsp */
    expect_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
                  "lmnopqrsmnopqrstnopqrstu",
                  112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    expect_digest("\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    expect_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

Test(cache, a_piece_of_a_key_goes_in_after_its_length)
{
    unsigned char key[32], expected[32];
    struct cox__digest sha;
    cox__digest_begin(&sha);
    cox__digest_feed(&sha, "\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0c", 27);
    cox__digest_end(&sha, expected);
    cox__digest_begin(&sha);
    cox__cache_feed(&sha, "ab", 2);
    cox__cache_feed(&sha, NULL, 0);
    cox__cache_feed(&sha, "c", 1);
    cox__digest_end(&sha, key);
    cr_assert_arr_eq(key, expected, 32);
}

/* Storing and loading */

Test(cache, what_is_stored_comes_back)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
    static unsigned char data[1000003];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        key_of((char[]){(char)('a' + i), 0}, key);
        cox__cache_store(dir, &cox__cache_kernels, key, data, sizes[i], &logger);
        expect_bytes(key, data, sizes[i]);
    }
    cr_assert_eq(lines, 0, "%s", last_line);
    cr_assert_eq(files_in(dir), (int)(sizeof sizes / sizeof *sizes), "a temporary file is left");
}

Test(cache, an_entry_that_was_never_stored_is_absent_in_silence)
{
    expect_absent(key); /* not even the directory exists */
    store(other, "x");
    expect_absent(key);
    cr_assert_eq(lines, 0, "%s", last_line);
}

Test(cache, without_a_directory_nothing_is_cached_in_silence)
{
    size_t got = 1;
    cox__cache_store(NULL, &cox__cache_kernels, key, "x", 1, &logger);
    cr_assert_null(cox__cache_load(NULL, &cox__cache_kernels, key, &got, &logger));
    cr_assert_eq(got, 0);
    cr_assert_eq(lines, 0);
}

Test(cache, storing_again_replaces_the_entry)
{
    store(key, "a longer first");
    store(key, "second");
    expect_stored(key, "second");
    cr_assert_eq(files_in(dir), 1);
}

Test(cache, directories_and_files_are_private)
{
    static const char *const names[] = {"parent", "parent/cache"};
    struct stat st;
    umask(0);
    strcpy(dir, in_folder("parent/cache"));
    store(key, "x");
    path_of(key, path);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0600);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(stat(in_folder(names[i]), &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);
    }
}

Test(cache, trailing_slashes_in_the_directory_do_not_matter)
{
    char slashed[200];
    snprintf(slashed, sizeof slashed, "%s///", dir);
    cox__cache_store(slashed, &cox__cache_kernels, key, "x", 1, &logger);
    expect_stored(key, "x");
}

/* Damage */

/* The file of the entry `key` must count as damaged: the cache logs it, removes it and does not load it. */
static void expect_damaged(const char *what, size_t which)
{
    struct stat st;
    size_t got = 1;
    lines = 0;
    void *back = cox__cache_load(dir, &cox__cache_kernels, key, &got, &logger);
    cr_assert_null(back, "%s %zu was not detected", what, which);
    cr_assert_eq(got, 0);
    cr_assert_eq(lines, 1, "%s %zu was not logged", what, which);
    cr_assert_not_null(strstr(last_line, "damaged"), "%s", last_line);
    cr_assert_eq(lstat(path, &st), -1, "%s %zu was not removed", what, which);
}

Test(cache, an_entry_that_is_cut_changed_or_longer_is_logged_removed_and_absent)
{
    static const char text[] = "forty-two bytes of a compiled kernel, so..";
    unsigned char whole[256];
    store(key, text);
    size_t size = read_file(path, whole, sizeof whole);
    cr_assert_gt(size, 42);
    cr_assert_lt(size, sizeof whole);
    for (size_t cut = 0; cut < size; cut++) {
        replace_file(path, whole, cut);
        expect_damaged("a cut at byte", cut);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        whole[bit / 8] ^= (unsigned char)(1 << bit % 8);
        replace_file(path, whole, size);
        expect_damaged("the flip of bit", bit);
        whole[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    whole[size] = 0;
    replace_file(path, whole, size + 1);
    expect_damaged("a longer file by", 1);
    replace_file(path, whole, size);
    expect_stored(key, text);
}

Test(cache, an_entry_that_is_not_what_it_seems_is_logged_removed_and_absent)
{
    struct cox__cache_kind older = cox__cache_kernels;
    unsigned char data[1024];
    char other_path[256];
    store(other, "payload");
    path_of(other, other_path);
    cr_assert_eq(rename(other_path, path), 0);
    expect_damaged("another key's", 0);

    older.magic[7]--;
    cox__cache_store(dir, &older, key, "payload", 7, &logger);
    expect_damaged("the layout", older.magic[7]);

    store(key, "payload");
    cr_assert_eq(chmod(path, 0666), 0);
    expect_damaged("one that others may write to", 0);

    cr_assert_eq(mkfifo(path, 0600), 0); /* a reader must not block on it */
    expect_damaged("a pipe", 0);

    store(key, "payload");
    cr_assert_eq(rename(path, in_folder("target")), 0); /* a valid entry, except that it is a link */
    cr_assert_eq(symlink(in_folder("target"), path), 0);
    expect_damaged("a link", 0);
    cr_assert_gt(read_file(in_folder("target"), data, sizeof data), 7, "the cache does not touch it");

    store(key, "payload");
    cr_assert_eq(link(path, in_folder("name")), 0);
    const size_t bytes = read_file(in_folder("name"), data, sizeof data);
    expect_damaged("one with a second name", 0);
    cr_assert_eq(read_file(in_folder("name"), data, sizeof data), bytes, "the cache does not touch it");
}

/* Open the file of the entry `key` and read it as a file of `size` bytes. */
static const char *read_damage(int flags, size_t size)
{
    const int fd = open(path, flags);
    const char *damage = "";
    size_t bytes = 1;
    cr_assert(fd >= 0, "%s", path);
    errno = EINTR; /* from an earlier call */
    cr_assert_null(cox__cache_read(fd, size, &cox__cache_kernels, key, &bytes, &damage));
    cr_assert_eq(bytes, 0);
    const int error = errno;
    close(fd);
    errno = error;
    return damage;
}

/* Somebody may cut a file after its size was read. */
Test(cache, a_file_that_is_shorter_than_its_size_ends_early)
{
    unsigned char whole[256];
    store(key, "payload");
    const size_t size = read_file(path, whole, sizeof whole);
    for (size_t cut = 0; cut < size; cut++) {
        replace_file(path, whole, cut);
        const char *damage = read_damage(O_RDONLY, size);
        cr_assert_not_null(damage, "a cut at byte %zu", cut);
        cr_assert_str_eq(damage, "it ends early", "a cut at byte %zu", cut);
        cr_assert_eq(errno, 0, "a cut at byte %zu", cut);
    }
}

Test(cache, a_file_that_cannot_be_read_is_not_damaged)
{
    unsigned char whole[256];
    store(key, "payload");
    cr_assert_null(read_damage(O_WRONLY, read_file(path, whole, sizeof whole)));
    cr_assert_eq(errno, EBADF);
}

Test(cache, a_damaged_entry_can_be_stored_again)
{
    store(key, "payload");
    replace_file(path, "rubbish", 7);
    expect_absent(key);
    store(key, "payload");
    expect_stored(key, "payload");
}

/* Hostile directories */

Test(cache, storing_over_a_link_replaces_the_link_and_not_its_target)
{
    struct stat st;
    unsigned char whole[256];
    const char *target = in_folder("target");
    replace_file(target, "precious", 8);
    cr_assert_eq(mkdir(dir, 0700), 0);
    cr_assert_eq(symlink(target, path), 0);
    store(key, "payload");
    expect_stored(key, "payload");
    cr_assert_eq(lstat(path, &st), 0);
    cr_assert(S_ISREG(st.st_mode));
    cr_assert_eq(read_file(target, whole, sizeof whole), 8);
    cr_assert_arr_eq(whole, "precious", 8);
}

Test(cache, a_directory_that_is_a_link_is_not_used)
{
    const char *target = in_folder("elsewhere");
    cr_assert_eq(mkdir(target, 0700), 0);
    cr_assert_eq(symlink(target, dir), 0);
    store(key, "payload");
    cr_assert_eq(lines, 1);
    cr_assert_eq(files_in(target), 0);
    expect_absent(key);
    strcat(dir, "/"); /* with a slash the system would follow the link */
    store(key, "payload");
    cr_assert_eq(files_in(target), 0);
}

Test(cache, a_directory_that_others_may_write_to_is_not_used)
{
    store(key, "payload");
    cr_assert_eq(chmod(dir, 0777), 0);
    expect_absent(key);
    cr_assert_eq(lines, 1);
    store(key, "planted");
    cr_assert_eq(lines, 2);
    cr_assert_eq(chmod(dir, 0700), 0);
    expect_stored(key, "payload");
}

Test(cache, a_directory_in_the_place_of_an_entry_is_survived)
{
    cr_assert_eq(mkdir(dir, 0700), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_absent(key);
    cr_assert_eq(lines, 1);
    store(key, "payload");
    cr_assert_eq(lines, 2);
    cr_assert_eq(files_in(dir), 1, "a temporary file is left");
}

Test(cache, a_directory_that_cannot_be_made_is_one_log_line)
{
    replace_file(in_folder("file"), "x", 1);
    strcpy(dir, in_folder("file/cache"));
    store(key, "payload");
    cr_assert_eq(lines, 1);
    expect_absent(key);
    strcpy(dir, "");
    store(key, "payload");
    expect_absent(key);
    cr_assert_eq(lines, 4);
}

Test(cache, a_directory_that_cannot_be_written_is_one_log_line_and_still_read)
{
    store(key, "payload");
    if (geteuid() == 0) { /* root may write everywhere, so become another user */
        cr_assert_eq(chmod(folder, 0755), 0);
        cr_assert_eq(chown(dir, 65534, 65534), 0);
        cr_assert_eq(chown(path, 65534, 65534), 0);
        cr_assert_eq(seteuid(65534), 0);
    }
    cr_assert_eq(chmod(dir, 0500), 0);
    store(other, "second");
    cr_assert_eq(lines, 1);
    expect_stored(key, "payload");
    expect_absent(other);
    cr_assert_eq(chmod(dir, 0700), 0);
    if (getuid() == 0)
        cr_assert_eq(seteuid(0), 0);
}

Test(cache, a_directory_of_another_user_is_not_used)
{
    skip_unless(geteuid() == 0, "only root can give a directory away");
    store(key, "payload");
    cr_assert_eq(chown(dir, 65534, 65534), 0);
    expect_absent(key);
    cr_assert_eq(lines, 1);
}

Test(cache, a_full_disk_is_one_log_line_and_leaves_nothing)
{
    static const char data[10000];
    store(key, "payload");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, limit;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 5000;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cox__cache_store(dir, &cox__cache_kernels, key, data, sizeof data, &logger);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    cr_assert_eq(lines, 1);
    cr_assert_eq(files_in(dir), 1);
    expect_stored(key, "payload"); /* the old entry is untouched */
}

Test(cache, what_a_dead_writer_left_is_swept_and_what_a_live_one_writes_is_not)
{
    char old_file[256], new_file[256];
    cr_assert_eq(mkdir(dir, 0700), 0);
    snprintf(old_file, sizeof old_file, "%s/tmp-0123456789abcdef", dir);
    snprintf(new_file, sizeof new_file, "%s/tmp-fedcba9876543210", dir);
    replace_file(old_file, "half", 4);
    replace_file(new_file, "half", 4);
    struct timespec long_ago[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
    cr_assert_eq(utimensat(AT_FDCWD, old_file, long_ago, 0), 0);
    store(key, "payload");
    cr_assert_eq(access(old_file, F_OK), -1);
    cr_assert_eq(access(new_file, F_OK), 0);
}

/* Kinds of files */

static const struct cox__cache_kind small = {.what = "small files",
                                             .magic = {'S', 'M', 'A', 'L', 'L', 0, 0, 1},
                                             .suffix = ".small",
                                             .bytes_max = 8,
                                             .files_max = 3,
                                             .write_failed = COX_LOG_INFO};

static bool has(const struct cox__cache_kind *kind, const char *text)
{
    size_t bytes;
    key_of(text, key);
    void *content = cox__cache_load(dir, kind, key, &bytes, &logger);
    free(content);
    return content;
}

Test(cache, files_of_two_kinds_and_one_key_do_not_meet)
{
    store(key, "payload");
    cr_assert_not(has(&small, "one"));
    cox__cache_store(dir, &small, key, "small", 5, &logger);
    expect_stored(key, "payload");
    cr_assert(has(&small, "one"));
    cr_assert_eq(lines, 0, "%s", last_line);
}

Test(cache, beyond_so_many_files_of_a_kind_the_oldest_goes)
{
    static const char *const texts[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        key_of(texts[i], key);
        store(key, "payload");
        cox__cache_store(dir, &small, key, texts[i], 1, &logger);
        path_of(key, path);
        strcpy(strrchr(path, '.'), ".small");
        struct timespec then[2] = {{.tv_sec = 1000 + (i + 1) % 3}, {.tv_sec = 1000 + (i + 1) % 3}};
        cr_assert_eq(utimensat(AT_FDCWD, path, then, 0), 0);
    }
    key_of("a", key); /* once more, now that there is room for it */
    cox__cache_store(dir, &small, key, "A", 1, &logger);
    cr_assert(has(&small, "a") && has(&small, "b") && has(&small, "c"));
    key_of("d", key);
    cox__cache_store(dir, &small, key, "d", 1, &logger);
    cr_assert(has(&small, "a") && has(&small, "b") && has(&small, "d"));
    cr_assert_not(has(&small, "c"), "the oldest");
    cr_assert(has(&cox__cache_kernels, "a") && has(&cox__cache_kernels, "b") && has(&cox__cache_kernels, "c"));
    cr_assert_eq(lines, 0, "%s", last_line);
}

Test(cache, a_content_that_is_longer_than_its_kind_allows_is_damage)
{
    struct cox__cache_kind large = small;
    large.bytes_max = 100;
    cox__cache_store(dir, &large, key, "nine byte", 9, &logger);
    cr_assert_not(has(&small, "one"));
    cr_assert_eq(lines, 1);
    cr_assert_not_null(strstr(last_line, "too long"), "%s", last_line);
    cr_assert_eq(files_in(dir), 0);
}

/* Concurrency */

enum { BIG = 200000, ROUNDS = 40 };

/* Store payloads of one repeated byte under one key, over and over. */
static void store_rounds(int seed)
{
    unsigned char *data = malloc(BIG);
    key_of("contended", key);
    for (int i = 0; i < ROUNDS; i++) {
        memset(data, seed + i, BIG);
        cox__cache_store(dir, &cox__cache_kernels, key, data, (size_t)(BIG - 1000 * i), &silent);
    }
    free(data);
}

/* Load while others store, until `over` returns true. Every result must be one complete payload. */
static void load_while_stored(bool (*over)(void))
{
    int seen = 0;
    key_of("contended", key);
    for (bool last = false; !last;) {
        last = over();
        size_t bytes;
        unsigned char *data = cox__cache_load(dir, &cox__cache_kernels, key, &bytes, &logger);
        if (!data)
            continue;
        seen++;
        bool whole = bytes <= BIG && bytes % 1000 == 0 && (BIG - bytes) / 1000 == (size_t)(data[0] % 100);
        for (size_t at = 1; at < bytes; at++)
            whole = whole && data[at] == data[0];
        free(data);
        cr_assert(whole, "a mixture of two entries was read");
    }
    cr_assert_gt(seen, 0);
    cr_assert_eq(lines, 0, "%s", last_line);
    cr_assert_eq(files_in(dir), 1, "a temporary file is left");
}

static int writers = 2;

static bool processes_are_over(void)
{
    int status = 0;
    while (writers && waitpid(-1, &status, WNOHANG) > 0) {
        cr_assert_eq(status, 0);
        writers--;
    }
    return !writers;
}

Test(cache, two_processes_that_store_one_key_at_once_leave_one_whole_entry)
{
    for (int i = 0; i < writers; i++) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            store_rounds(100 * i);
            _exit(0);
        }
    }
    load_while_stored(processes_are_over);
}

static atomic_int threads = 2;

static void *store_thread(void *seed)
{
    store_rounds(*(int *)seed);
    atomic_fetch_sub(&threads, 1);
    return NULL;
}

static bool threads_are_over(void)
{
    return atomic_load(&threads) == 0;
}

Test(cache, two_threads_that_store_one_key_at_once_leave_one_whole_entry)
{
    pthread_t thread[2];
    int seeds[2] = {0, 100};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, store_thread, &seeds[i]), 0);
    load_while_stored(threads_are_over);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
}
