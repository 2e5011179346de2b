/* Texts that are files in the source tree and part of the program: the kernels of cox-bench guides,
 * the style of pages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_TEXTS_H
#define BENCH_GUIDES_TEXTS_H

struct guides_text {
    const char *name; /* of the file, without its folder; NULL ends the list */
    const char *text;
};

/* In the order of the names. */
extern const struct guides_text guides_texts[];

#endif
