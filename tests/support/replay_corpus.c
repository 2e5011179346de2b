/* Gives a fuzz target inputs, for builds without libFuzzer:
 *
 *   fuzz_NAME ARCHIVE [INPUT]       those of ARCHIVE, a ustar file (tests/fuzz/corpus.sh), or the one named INPUT
 *   fuzz_NAME --seeds FROM COUNT    random ones, made of the numbers FROM to FROM + COUNT - 1
 *   fuzz_NAME --write SEED FILE     writes the input of a number to a file, for corpus.sh
 *
 * If the program ends in the middle of a random input, or takes a minute for it, it prints the command that repeats it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED_BYTES_MAX = 320, SEED_SECONDS = 60, SEEDS_AT_ONCE = 1000 };
enum { BLOCK = 512, CHECKSUM_AT = 148, CHECKSUM_BYTES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct header {
    char name[100];
    char ids[24];
    char size[12];
    char time[12];
    char checksum[CHECKSUM_BYTES];
    char type;
    char link[100];
    char magic[6];
    char rest[BLOCK - 263];
};
_Static_assert(sizeof(struct header) == BLOCK && offsetof(struct header, checksum) == CHECKSUM_AT, "ustar");

/* The sum of all bytes of the header, with the checksum itself read as spaces. */
static unsigned long sum_of(const struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned long sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i - CHECKSUM_AT < CHECKSUM_BYTES ? ' ' : bytes[i];
    return sum;
}

/* Returns the fault of a member, or NULL. */
static const char *check(const struct header *header)
{
    if (memcmp(header->magic, "ustar", sizeof header->magic) || strtoul(header->checksum, NULL, 8) != sum_of(header))
        return "no header of a ustar archive";
    if (header->type != '0' || !memchr(header->name, 0, sizeof header->name))
        return "a member that is no file, or has a long name";
    return NULL;
}

/* Give the next member's contents to the target if `wanted`. The memory is exactly as long, so that a sanitizer
 * detects reads beyond it. */
static bool replay(FILE *archive, const struct header *header, bool wanted)
{
    const size_t size = strtoul(header->size, NULL, 8), padding = (BLOCK - size % BLOCK) % BLOCK;
    char rest[BLOCK];
    uint8_t *data = size > 0 ? malloc(size) : NULL;
    bool whole = (data || size == 0) && fread(data ? data : (uint8_t *)rest, 1, size, archive) == size;
    whole = whole && fread(rest, 1, padding, archive) == padding;

    if (whole && wanted) {
        puts(header->name); /* so that the last name printed is the input that crashed */
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return whole;
}

static int replay_all(const char *path, const char *input)
{
    static const struct header end;
    struct header header;
    const char *wrong = NULL;
    int count = 0;

    FILE *archive = fopen(path, "rb");
    if (!archive) {
        perror(path);
        return 1;
    }

    while (!wrong) {
        if (fread(&header, 1, BLOCK, archive) != BLOCK) {
            wrong = "no end";
            break;
        }
        if (!memcmp(&header, &end, BLOCK))
            break;
        wrong = check(&header);
        if (wrong)
            break;
        const bool wanted = !input || !strcmp(input, header.name);
        if (!replay(archive, &header, wanted))
            wrong = "a member that is cut short";
        count += wanted;
    }
    fclose(archive);

    if (wrong)
        fprintf(stderr, "%s: it has %s\n", path, wrong);
    printf("%d inputs\n", count);
    return wrong || count == 0;
}

/* ---- random inputs ---- */

static char again[300]; /* how to repeat the current input */

static void on_death(int number)
{
    const ssize_t written = write(2, again, strlen(again));
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

/* The next random number (splitmix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns the number of bytes. */
static size_t make_input(uint64_t seed, uint8_t *data)
{
    uint64_t state = seed;
    const size_t size = next_random(&state) % (SEED_BYTES_MAX + 1);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)next_random(&state);
    return size;
}

static void run_some(const char *program, uint64_t from, uint64_t count)
{
    static const int deaths[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    uint8_t random[SEED_BYTES_MAX];

    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        signal(deaths[i], on_death);

    for (uint64_t seed = from; seed < from + count; seed++) {
        snprintf(again, sizeof again, "again: %s --seeds %llu 1\n", program, (unsigned long long)seed);
        const size_t size = make_input(seed, random);
        uint8_t *data = size > 0 ? malloc(size) : NULL;
        if (data)
            memcpy(data, random, size);
        alarm(SEED_SECONDS);
        LLVMFuzzerTestOneInput(data, size);
        alarm(0);
        free(data);
    }
}

/* In processes that run some of them each, since memory that a hung device may use is never freed. */
static int run_seeds(const char *program, uint64_t from, uint64_t count)
{
    for (uint64_t done = 0; done < count; done += SEEDS_AT_ONCE) {
        const uint64_t left = count - done;
        int status = 0;
        const pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            run_some(program, from + done, left < SEEDS_AT_ONCE ? left : SEEDS_AT_ONCE);
            exit(0);
        }
        if (waitpid(child, &status, 0) < 0 || status)
            return 1;
    }

    printf("%llu seeds\n", (unsigned long long)count);
    return 0;
}

static int write_seed(uint64_t seed, const char *path)
{
    uint8_t data[SEED_BYTES_MAX];
    const size_t size = make_input(seed, data);
    FILE *file = fopen(path, "wb");
    const bool written = file && fwrite(data, 1, size, file) == size;

    if (!file || fclose(file) || !written) {
        perror(path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--seeds"))
        return run_seeds(argv[0], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    if (argc == 4 && !strcmp(argv[1], "--write"))
        return write_seed(strtoull(argv[2], NULL, 10), argv[3]);
    if (argc == 2 || argc == 3)
        return replay_all(argv[1], argc == 3 ? argv[2] : NULL);

    fprintf(stderr, "usage: %s ARCHIVE [INPUT] | --seeds FROM COUNT | --write SEED FILE\n", argv[0]);
    return 2;
}
