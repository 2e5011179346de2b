/* Gives a fuzz target its stored inputs, for builds without libFuzzer:  fuzz_NAME ARCHIVE [INPUT]
 *
 * ARCHIVE is a ustar file (tests/fuzz/corpus.sh). INPUT names one of its members; by default all are used.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    static const struct header end;
    struct header header;
    const char *wrong = NULL;
    int count = 0;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: %s ARCHIVE [INPUT]\n", argv[0]);
        return 2;
    }
    FILE *archive = fopen(argv[1], "rb");
    if (!archive) {
        perror(argv[1]);
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
        const bool wanted = argc < 3 || !strcmp(argv[2], header.name);
        if (!replay(archive, &header, wanted))
            wrong = "a member that is cut short";
        count += wanted;
    }
    fclose(archive);

    if (wrong)
        fprintf(stderr, "%s: it has %s\n", argv[1], wrong);
    printf("%d inputs\n", count);
    return wrong || count == 0;
}
