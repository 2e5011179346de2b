/* Why something failed, as one printable line.
 *
 * Thread-safety: any thread, each with its own struct error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ERROR_H
#define ERROR_H

#include <stdbool.h>

struct error {
    char text[256];
};

/* Set the text. Returns false, so that a function can `return error_set(...)`. */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replace each character that is not printable ASCII by '?', for text that goes to a terminal. */
void make_printable(char *text);

#endif
