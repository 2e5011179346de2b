/* All that decides a film's mapped frames but the light of each: which file they come from, how they are to look, how
 * the devices compute. Equal profiles and equal settings of each frame give equal frames, on any machine.
 *
 * In files it is a line of text for each thing. Two are equal if their lines are.
 * Thread-safety: pure but for the files that are read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_PROFILE_H
#define TONEMAP_PROFILE_H

#include "media/identity.h"
#include "source.h"

struct profile {
    struct file_identity source;
    struct cox_video_shape shape;       /* without pitches */
    struct cox_video_settings settings; /* peak_nits 0: followed, and gain comes on top */
    struct film_steering steering;
    enum cox_arithmetic arithmetic;
};

/* Of what has been opened and chosen, with the arithmetic of the runtime. False, after saying why: the input is no file
 * that others could read. */
bool profile_make(struct profile *profile, const struct source *from,
                  enum cox_arithmetic arithmetic);

/* Have a source that has been opened be mapped as the profile says. False, after saying why: it is another film. `name`
 * is the file that the profile is from. */
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

/* Read a whole file. False, after saying why. */
bool profile_text_open(struct profile_text *text, const char *path);
void profile_text_close(struct profile_text *text);

/* The next line, with one blank between its words; NULL at the end of the file. What editors leave makes no difference:
 * tabs, blanks at the ends, CR before LF, a byte-order mark, no LF at the end of the file. Valid until the text is
 * closed. */
char *profile_text_line(struct profile_text *text);

/* Says that the last line is not what it should be. Returns false. */
bool profile_text_wrong(const struct profile_text *text, const char *what);

/* The lines of a profile; `what` is the kind of file, which the first line names. */
void profile_write(const struct profile *profile, const char *what, FILE *to);

/* The same lines back. False, after saying why. */
bool profile_read(struct profile *profile, const char *what, struct profile_text *text);

bool profile_equal(const struct profile *one, const struct profile *other);

/* The same; if not, it says in which line the second, of the file `name`, is not as the first, of `first`. */
bool profile_same(const struct profile *one, const char *first, const struct profile *other,
                  const char *name);

#endif
