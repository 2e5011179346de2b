/* Texts that are files in the source tree and part of the program: the kernels of cox-bench guides
 * and suite, the style of pages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_TEXTS_H
#define BENCH_TEXTS_H

struct bench_text {
    const char *name; /* of the file, without its folder; NULL ends the list */
    const char *text;
};

/* In the order of the folders and names. */
extern const struct bench_text bench_texts[];

/* The text of a file; "" = there is no such file. */
const char *bench_text(const char *name);

#endif
