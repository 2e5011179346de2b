/* The kernels of cox-bench suite: files of this folder, as parts of the program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_TEXTS_H
#define BENCH_SUITE_TEXTS_H

struct suite_text {
    const char *name; /* of the file, without its folder; NULL ends the list */
    const char *text;
};

/* In the order of the names. */
extern const struct suite_text suite_texts[];

#endif
