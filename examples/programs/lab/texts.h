/* Texts that are files in the source tree and part of the program: scenarios, the style of the
 * report, the schema.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TEXTS_H
#define COX_EXAMPLES_LAB_TEXTS_H

struct lab_text {
    const char *name; /* of the file, without its folder; NULL ends the list */
    const char *text;
};

/* In the order of the names. */
extern const struct lab_text lab_texts[];

/* The text of that name, "" if there is none. */
const char *lab_text(const char *name);

#endif
