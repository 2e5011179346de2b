/* Reading JSON files strictly: an unknown key, a value of the wrong type or out of range is
 * refused, and the message names the place in the file.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_STRICT_JSON_H
#define COX_EXAMPLES_LAB_STRICT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRICT_PATH_BYTES = 160 };

/* One file. `why` (may be NULL) receives the first error. */
struct strict_reader {
    const char *file;
    char *why;
    size_t why_bytes;
    bool failed;
};

/* An object of the file. */
struct strict_place {
    struct strict_reader *reader;
    json_t *object;
    char path[STRICT_PATH_BYTES]; /* "" = the file itself */
};

/* Report an error; only the first one is kept. Returns false. */
__attribute__((format(printf, 3, 4))) bool strict_refuse(const struct strict_place *at,
                                                         const char *key, const char *format, ...);

/* Parse the file's text. The caller releases the value with json_decref; NULL after an error. An
 * object must not have a key twice. */
json_t *strict_parse(struct strict_reader *reader, const char *text, size_t bytes,
                     size_t bytes_max);

/* Go to an object whose keys must all be among `known`, which ends with NULL. `path` says where it
 * is, with `index` in place of a '#'; NULL = it is the whole file. */
bool strict_enter(struct strict_place *at, struct strict_reader *reader, json_t *value,
                  const char *const *known, const char *path, uint32_t index);

/* A number in [low, high]. Without the key `*out` is unchanged, or it is an error if `must` is set.
 * All of these return false once the reader has failed. */
bool strict_number(const struct strict_place *at, const char *key, bool must, double low,
                   double high, double *out);
bool strict_integer(const struct strict_place *at, const char *key, bool must, uint64_t low,
                    uint64_t high, uint64_t *out);
bool strict_boolean(const struct strict_place *at, const char *key, bool *out);

/* At least one character, less than `bytes` bytes, no control characters. */
bool strict_string(const struct strict_place *at, const char *key, bool must, size_t bytes,
                   char *out);
bool strict_is_printable(const char *text);

/* An array of 1 to `most` values; NULL without the key, or after an error. */
json_t *strict_array(const struct strict_place *at, const char *key, bool must, size_t most);

/* At most the first `bytes_max` + 1 bytes of a regular file, terminated; the caller frees them.
 * NULL with the reason, which begins with the path. Pipes and devices are refused: they may block
 * or never end. */
char *strict_read_file(const char *path, size_t bytes_max, size_t *bytes, char *why,
                       size_t why_bytes);

#endif
