/* SPDX-License-Identifier: Apache-2.0 */
#include "sources.h"

#include <stdio.h>
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

/* ---- kernels that are launched in parts ---- */

bool cox__sources_ask_group(const char *text)
{
    static const char *const questions[] = {"get_group_id", "get_num_groups", "get_global_size",
                                            "get_global_offset", "linear_id"};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strstr(text, questions[i]))
            return true;
    return false;
}

/* OpenCL counts groups from the beginning of a launch, but ids from the beginning of all. */
char *cox__sources_for_parts(const char *source, const struct cox_source *headers,
                             uint32_t dimension, uint32_t items)
{
    static const char format[] =
        "size_t cox__groups_before(void) { return get_global_offset(%u) / get_local_size(%u); }\n"
        "size_t cox__groups(void) { return (%u + get_local_size(%u) - 1) / get_local_size(%u); }\n"
        "#define get_group_id(d) (get_group_id(d) + ((d) == %u ? cox__groups_before() : 0))\n"
        "#define get_num_groups(d) ((d) == %u ? cox__groups() : get_num_groups(d))\n"
        "#define get_global_size(d) (get_num_groups(d) * get_local_size(d))\n"
        "#define get_global_offset(d) ((size_t)0)\n"
        "#define get_global_linear_id() %s\n"
        "#define get_group_linear_id() %s\n"
        "#line 1\n"
        "%s";
    const char *id = "(get_global_id(1) * get_global_size(0) + get_global_id(0))";
    const char *group = "(get_group_id(1) * get_num_groups(0) + get_group_id(0))";
    const uint32_t d = dimension;
    char *copied;

    bool asks = cox__sources_ask_group(source);
    for (const struct cox_source *h = headers; h && h->name; h++)
        asks |= cox__sources_ask_group(h->text);
    if (!asks)
        return strdup(source);

    if (d == 0) {
        id = "get_global_id(0)";
        group = "get_group_id(0)";
    }
    if (asprintf(&copied, format, d, d, items, d, d, d, d, id, group, source) < 0)
        return NULL;
    return copied;
}
