/* Give a fuzz target every file of a folder, where there is no libFuzzer:  fuzz_NAME DIR
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    long bytes = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) >= 0)
        rewind(file);
    if (bytes < 0) {
        perror(path);
        if (file)
            fclose(file);
        return 1;
    }
    /* Exactly as long as the file, so that reading beyond it is seen. */
    uint8_t *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    int bad = bytes > 0 && (!data || fread(data, 1, (size_t)bytes, file) != (size_t)bytes);
    fclose(file);
    if (bad)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, (size_t)bytes);
    free(data);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    int count = 0, bad = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        printf("%s\n", entry->d_name); /* the last one named is the one that crashes */
        fflush(stdout);
        bad |= replay(path);
        count++;
    }
    closedir(dir);
    printf("%d inputs\n", count);
    return bad || count == 0;
}
