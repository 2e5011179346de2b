/* A profile is all that decides the mapped frames of a film, except the light of each frame: the
 * source file, the look, and how the devices compute. Equal profiles and equal light give equal
 * frames on any machine.
 *
 * In a file each field is a line of text. Two profiles are equal if their lines are equal.
 * Thread-safety: pure except for the files that are read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_PROFILE_H
#define TONEMAP_PROFILE_H

#include "media/identity.h"
#include "source.h"

#include <stdio.h>

struct profile {
    struct file_identity source;
    struct cox_video_shape shape;       /* without pitches */
    struct cox_video_settings settings; /* peak_nits 0: steered, and gain is applied on top */
    struct film_steering steering;
    struct film_chosen chosen;
    enum cox_arithmetic arithmetic;
};

/* The profile of a source with a chosen shape and light, for the arithmetic of the runtime. Returns
 * false, after printing why, if the input is not a file that other machines could read. */
bool profile_make(struct profile *profile, const struct source *from,
                  enum cox_arithmetic arithmetic);

/* Make an open source be mapped by the profile. Returns false, after printing why, if it is another
 * film. `name` is the file of the profile. */
bool profile_apply(const struct profile *profile, struct source *from, const char *name);

/* --- In files --- */

/* A file's text, read line by line. */
struct profile_text {
    const char *path;
    char *text; /* of the whole file, ended by a 0 */
    size_t bytes, at;
    unsigned line; /* the last one that was read, from 1 */
    bool is_ended; /* it has an LF */
};

/* Read a whole file. Here and below: false after printing why. */
bool profile_text_open(struct profile_text *text, const char *path);
void profile_text_close(struct profile_text *text);

/* The next line, with one blank between its words; NULL at the end of the file. It does not matter
 * if an editor leaves tabs, blanks at the ends, CR before LF, a byte-order mark, or no LF at the
 * end of the file. The line is valid until the text is closed. */
char *profile_text_line(struct profile_text *text);

/* Print that the last line is wrong. Returns false. */
bool profile_text_wrong(const struct profile_text *text, const char *what);

/* The lines of a profile. `what` is the kind of file, which the first line names. Returns the
 * length. */
enum { PROFILE_BYTES = 4096 };
size_t profile_format(const struct profile *profile, const char *what, char text[PROFILE_BYTES]);
void profile_write(const struct profile *profile, const char *what, FILE *to);

/* Read these lines. */
bool profile_read(struct profile *profile, const char *what, struct profile_text *text);

bool profile_equal(const struct profile *one, const struct profile *other);

/* The same; if the profiles differ, print the first line that differs. The profiles are of the
 * files `first` and `name`. */
bool profile_same(const struct profile *one, const char *first, const struct profile *other,
                  const char *name);

#endif
