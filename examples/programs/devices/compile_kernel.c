/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "compile_kernel.h"
#include "common/now.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_BAD = 1, HEADERS_MAX = 1024, FOLDERS_AT_ONCE = 16 };

/* Names and texts are allocated; an element without name ends the list. */
struct texts {
    struct cox_source headers[HEADERS_MAX + 1];
    struct cox_source libraries[LIBRARIES_MAX + 1];
    uint32_t header_count;
    char *source;
};

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "cox-devices: %s: %s\n", path, why);
    return EXIT_BAD;
}

/* Read a text file. Returns NULL with a line on standard error on failure. */
static char *read_text(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        fail(path, strerror(errno));
        return NULL;
    }

    errno = 0;
    const ssize_t length = getdelim(&text, &room, '\0', file);
    if (length < 0 && !ferror(file) && !errno) { /* an empty file */
        free(text);
        text = strdup("");
    } else if (length < 0 || text[length - 1] == '\0' || ferror(file)) {
        fail(path, errno ? strerror(errno) : "this is not a text: it has a byte of 0");
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* nftw gives its function no pointer. */
static struct texts *found;
static const char *found_dir;

/* Add a file as a header. Its name is the path in the folder. */
static int add_header(const char *path, const struct stat *info, int type, struct FTW *where)
{
    if (type == FTW_D && where->level > 0 && path[where->base] == '.')
        return FTW_SKIP_SUBTREE;
    if (type == FTW_DNR || type == FTW_NS)
        return fail(path, "cannot be read");
    if (type != FTW_F || !S_ISREG(info->st_mode) || path[where->base] == '.')
        return FTW_CONTINUE;
    if (found->header_count == HEADERS_MAX)
        return fail(found_dir, "more than 1024 files; name a folder that has only headers");

    const char *name = path + strlen(found_dir);
    while (*name == '/')
        name++;

    struct cox_source *header = &found->headers[found->header_count];
    header->text = read_text(path);
    header->name = header->text ? strdup(name) : NULL;
    if (!header->name) {
        free((char *)header->text);
        return EXIT_BAD;
    }

    found->header_count++;
    return FTW_CONTINUE;
}

/* Returns 0, or the exit status. */
static int read_files(const struct kernel_files *files, struct texts *texts)
{
    texts->source = read_text(files->source);
    if (!texts->source)
        return EXIT_BAD;

    for (uint32_t l = 0; l < files->library_count; l++) {
        texts->libraries[l].text = read_text(files->libraries[l]);
        if (!texts->libraries[l].text)
            return EXIT_BAD;
        texts->libraries[l].name = files->libraries[l];
    }

    if (!files->headers_dir)
        return 0;

    found = texts;
    found_dir = files->headers_dir;
    errno = 0;
    const int stopped = nftw(found_dir, add_header, FOLDERS_AT_ONCE, FTW_ACTIONRETVAL | FTW_PHYS);
    if (stopped < 0)
        return fail(found_dir, strerror(errno));
    return stopped ? EXIT_BAD : 0;
}

static void free_texts(struct texts *texts)
{
    for (uint32_t h = 0; h < texts->header_count; h++) {
        free((char *)texts->headers[h].name);
        free((char *)texts->headers[h].text);
    }
    for (uint32_t l = 0; l < LIBRARIES_MAX; l++)
        free((char *)texts->libraries[l].text);

    free(texts->source);
    free(texts);
}

int compile_kernel(cox_runtime *runtime, const struct kernel_files *files, cox_status *status)
{
    struct texts *texts = calloc(1, sizeof *texts);
    if (!texts)
        return fail(files->source, cox_status_text(COX_E_NOMEM));

    const int result = read_files(files, texts);
    if (!result) {
        const uint64_t began_ns = now_ns();
        *status = cox_compile(runtime,
                              &(const struct cox_compile_params){.source = texts->source,
                                                                 .options = files->options,
                                                                 .headers = texts->headers,
                                                                 .libraries = texts->libraries,
                                                                 .output = files->output});
        if (*status == COX_OK)
            printf("%s: compiled in %.2f s\n", files->source, (double)(now_ns() - began_ns) / 1e9);
    }

    free_texts(texts);
    return result;
}
