/* SPDX-License-Identifier: Apache-2.0 */
#include "sources.h"

#include <stdlib.h>
#include <string.h>

uint32_t cox__sources_count(const struct cox_source *list)
{
    uint32_t count = 0;
    while (list && list[count].name)
        count++;

    return count;
}

/* Copy the elements that are marked. The block has the array first, then the texts. */
static bool copy_marked(const struct cox_source *list, const bool *marked, struct cox_source **out)
{
    const uint32_t all = cox__sources_count(list);
    size_t bytes = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < all; i++)
        if (marked[i]) {
            bytes += strlen(list[i].name) + strlen(list[i].text) + 2;
            count++;
        }

    *out = NULL;
    if (!count)
        return true;

    struct cox_source *copy = calloc(1, (count + 1) * sizeof *copy + bytes);
    if (!copy)
        return false;

    struct cox_source *to = copy;
    char *text = (char *)(copy + count + 1);
    for (uint32_t i = 0; i < all; i++) {
        if (!marked[i])
            continue;

        to->name = text;
        text = stpcpy(text, list[i].name) + 1;
        to->text = text;
        text = stpcpy(text, list[i].text) + 1;
        to++;
    }

    *out = copy;
    return true;
}

bool cox__sources_copy(const struct cox_source *list, struct cox_source **out)
{
    const uint32_t count = cox__sources_count(list);
    *out = NULL;
    if (!count)
        return true;

    bool *marked = malloc(count);
    if (!marked)
        return false;

    memset(marked, true, count);
    const bool copied = copy_marked(list, marked, out);
    free(marked);
    return copied;
}

/* Mark the headers that `text` names. Returns whether one of them is new. */
static bool mark_named(const struct cox_source *headers, uint32_t count, const char *text,
                       bool *marked)
{
    bool any = false;
    for (uint32_t h = 0; text && h < count; h++)
        if (!marked[h] && strstr(text, headers[h].name))
            any = marked[h] = true;

    return any;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct cox_source *)a)->name, ((const struct cox_source *)b)->name);
}

bool cox__sources_copy_used(const struct cox_source *headers, const struct cox_source *libraries,
                            const char *source, const char *options, struct cox_source **out)
{
    const uint32_t count = cox__sources_count(headers);
    *out = NULL;
    if (!count)
        return true;

    bool *marked = calloc(count, sizeof *marked);
    if (!marked)
        return false;

    mark_named(headers, count, source, marked);
    mark_named(headers, count, options, marked);
    for (const struct cox_source *l = libraries; l && l->name; l++)
        mark_named(headers, count, l->text, marked);

    /* Headers that name others, until none is new. */
    for (bool any = true; any;) {
        any = false;
        for (uint32_t h = 0; h < count; h++)
            if (marked[h])
                any |= mark_named(headers, count, headers[h].text, marked);
    }

    const bool copied = copy_marked(headers, marked, out);
    free(marked);
    if (copied && *out)
        qsort(*out, cox__sources_count(*out), sizeof **out, compare_names);
    return copied;
}

void cox__sources_feed(struct cox__digest *sha, const struct cox_source *list)
{
    for (; list && list->name; list++) {
        cox__digest_feed(sha, list->name, strlen(list->name) + 1);
        cox__digest_feed(sha, list->text, strlen(list->text) + 1);
    }
    cox__digest_feed(sha, "", 1); /* no name is empty, so this ends the list */
}

bool cox__sources_equal(const struct cox_source *a, const struct cox_source *b)
{
    const uint32_t count = cox__sources_count(a);
    bool equal = count == cox__sources_count(b);
    for (uint32_t i = 0; equal && i < count; i++)
        equal = strcmp(a[i].name, b[i].name) == 0 && strcmp(a[i].text, b[i].text) == 0;

    return equal;
}
