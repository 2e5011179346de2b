/* Files of the source tree that are embedded in the program: scenarios, the style sheet, the
 * schema, the licence.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TEXTS_H
#define COX_EXAMPLES_LAB_TEXTS_H

struct lab_text {
    const char *name; /* of the file, without its folder; NULL ends the list */
    const char *text;
};

/* Scenarios in the order of the names. */
extern const struct lab_text lab_texts[];

/* The text with that name, or "". */
const char *lab_text(const char *name);

#endif
