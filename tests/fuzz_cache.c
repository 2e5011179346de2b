/* Files of the kernel cache from hostile bytes: what is loaded is exactly what was stored under that key, and what is damaged
 * is gone afterwards.
 *
 * The first byte says what is put right before the file is written, since no fuzzer finds a checksum: bit 0 the magic and the
 * key, bit 1 the length, bit 2 the checksum; bit 3 asks for the entry of another key. Bits 4 and 5 together have the entry looked
 * up in a directory too, which takes ten times as long; else it is read from a file without a name. The file follows.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cache.h"
#include "sha256.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEY = 8, LENGTH = 40, HEAD = 48, DIGEST = COX__SHA256_BYTES, FRAME = HEAD + DIGEST, FILE_MAX = 4096 };
enum { RIGHT_HEAD = 1, RIGHT_LENGTH = 2, RIGHT_DIGEST = 4, OTHER_KEY = 8, BY_NAME = 48 };

#define CHECK(x)     \
    do {             \
        if (!(x))    \
            abort(); \
    } while (0)

static char directory[64], path[64 + 1 + 2 * DIGEST + 8];
static const unsigned char good_magic[8] = {'C', 'O', 'X', 'B', 'I', 'N', 0, 1};
static unsigned char key[DIGEST];
static unsigned lines;

static void on_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    lines++;
    CHECK(!strncmp(line, "kernel cache: ", 14) && !strchr(line, '\n'));
}

static const struct cox__log log_to = {.fn = on_line, .level = COX_LOG_DEBUG};

static void remove_all(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

static void make_key(void)
{
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)(i * 7 + 1);
}

/* In memory where the system has a folder for that. */
static void make_directory(void)
{
    snprintf(directory, sizeof directory, "%s/cox-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    CHECK(mkdtemp(directory));
    int used = snprintf(path, sizeof path, "%s/", directory);
    for (size_t i = 0; i < sizeof key; i++)
        used += snprintf(path + used, sizeof path - (size_t)used, "%02x", key[i]);
    snprintf(path + used, sizeof path - (size_t)used, ".bin");
    atexit(remove_all);
}

static void put_right(uint8_t *file, size_t size, unsigned what, const unsigned char *file_key)
{
    if (size < FRAME)
        return;
    if (what & RIGHT_HEAD) {
        memcpy(file, good_magic, sizeof good_magic);
        memcpy(file + KEY, file_key, sizeof key);
    }
    for (size_t i = 0; what & RIGHT_LENGTH && i < 8; i++)
        file[LENGTH + i] = (uint8_t)((uint64_t)(size - FRAME) >> (8 * i));
    if (what & RIGHT_DIGEST) {
        struct cox__sha256 sha;
        cox__sha256_begin(&sha);
        cox__sha256_feed(&sha, file, size - DIGEST);
        cox__sha256_end(&sha, file + size - DIGEST);
    }
}

/* Told without the loader: magic, key, length and checksum. */
static bool is_entry(const uint8_t *file, size_t size, const unsigned char *wanted)
{
    uint8_t right[FRAME], digest[DIGEST];
    struct cox__sha256 sha;
    if (size < FRAME)
        return false;
    memset(right, 0, sizeof right);
    put_right(right, sizeof right, RIGHT_HEAD, wanted);
    for (size_t i = 0; i < 8; i++)
        right[LENGTH + i] = (uint8_t)((uint64_t)(size - FRAME) >> (8 * i));
    if (memcmp(right, file, HEAD) != 0)
        return false;
    cox__sha256_begin(&sha);
    cox__sha256_feed(&sha, file, size - DIGEST);
    cox__sha256_end(&sha, digest);
    return !memcmp(digest, file + size - DIGEST, DIGEST);
}

static void check_payload(const uint8_t *loaded, size_t bytes, const uint8_t *file, size_t size, bool good)
{
    CHECK(!loaded == !good);
    CHECK(good ? bytes == size - FRAME && !memcmp(loaded, file + HEAD, bytes) : bytes == 0);
}

/* As far as a directory has no part in it. A file may also be shorter than it was when its size was asked for. */
static void read_unnamed(const uint8_t *file, size_t size, const unsigned char *wanted, bool good)
{
    static int fd = -1;
    const char *damage;
    size_t bytes = 1;
    if (fd < 0)
        fd = memfd_create("entry", MFD_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, file, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    uint8_t *loaded = cox__cache_read(fd, size, wanted, &bytes, &damage);
    CHECK(!loaded == !!damage);
    check_payload(loaded, bytes, file, size, good);
    free(loaded);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(!cox__cache_read(fd, size + 1, wanted, &bytes, &damage) && bytes == 0 && damage);
}

static void write_file(const uint8_t *file, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, file, size) == (ssize_t)size);
    close(fd);
}

/* The whole way. */
static void load_named(const uint8_t *file, size_t size, const unsigned char *wanted, bool good)
{
    size_t bytes = 1;
    if (!*directory)
        make_directory();
    write_file(file, size);
    lines = 0;
    uint8_t *loaded = cox__cache_load(directory, wanted, &bytes, &log_to);
    /* The file has the name of one key only. */
    bool named = !memcmp(wanted, key, sizeof key);
    check_payload(loaded, bytes, file, size, good && named);
    /* A damaged entry is said once and removed; other files are not touched. */
    bool damaged = !good && named;
    CHECK(lines == damaged && (access(path, F_OK) != 0) == damaged);
    free(loaded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t file[FILE_MAX];
    unsigned char wanted[DIGEST];
    if (size < 1 || size > sizeof file)
        return 0;
    make_key();
    unsigned what = *data++;
    size--;
    if (size)
        memcpy(file, data, size);
    put_right(file, size, what, key);
    memcpy(wanted, key, sizeof wanted);
    if (what & OTHER_KEY)
        wanted[0] ^= 1;
    bool good = is_entry(file, size, wanted);
    read_unnamed(file, size, wanted, good);
    if ((what & BY_NAME) == BY_NAME)
        load_named(file, size, wanted, good);
    return 0;
}
