/* Lists of struct cox_source: the headers and libraries of kernels. NULL is an empty list.
 * Also the source of a kernel that is launched in parts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_SOURCES_H
#define COX_BASE_SOURCES_H

#include "digest.h"

#include <coxswain/session.h>

/* The elements of a list, without the one that ends it. */
uint32_t cox__sources_count(const struct cox_source *list);

/* Copy a list with its texts, in one block that the caller frees. The copy of an empty list is
 * NULL. False: no memory. */
bool cox__sources_copy(const struct cox_source *list, struct cox_source **out);

/* The same, for those headers that a kernel uses, in the order of their names. Their names appear
 * in its source, its options, its libraries, or another header that it uses. The compiler gets no
 * others, so unrelated headers need not be in keys of the cache. */
bool cox__sources_copy_used(const struct cox_source *headers, const struct cox_source *libraries,
                            const char *source, const char *options, struct cox_source **out);

/* Feed all names and texts. */
void cox__sources_feed(struct cox__digest *sha, const struct cox_source *list);

/* Whether a text of OpenCL C may ask for a work-item's group, or for sizes of the launch. */
bool cox__sources_ask_group(const char *text);

/* Copy the source of a kernel that is launched in parts, each at a global offset. If the kernel
 * asks for groups, sizes or the offset, it gets the answers of one launch. A source that does not
 * ask is only copied.
 *
 * `dimension` is the one that is cut, which is the last one. `items` are its work-items in all
 * parts. NULL: no memory. */
char *cox__sources_for_parts(const char *source, const struct cox_source *headers,
                             uint32_t dimension, uint32_t items);

bool cox__sources_equal(const struct cox_source *a, const struct cox_source *b);

#endif
