/* A JSON writer: commas, indentation and escapes; numbers do not depend on the locale. The caller
 * must nest correctly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };

struct json {
    FILE *stream; /* write errors stay in the stream: ferror */
    unsigned depth;
    bool filled[JSON_DEPTH_MAX]; /* a value came before in this object or array */
    bool flat[JSON_DEPTH_MAX];   /* on one line */
    bool after_key;
};

void json_begin(struct json *json, FILE *stream);
void json_end(struct json *json); /* a final newline */

/* `flat`: on one line, with everything in it. */
void json_open_object(struct json *json, bool flat);
void json_open_array(struct json *json, bool flat);
void json_close_object(struct json *json);
void json_close_array(struct json *json);

void json_key(struct json *json, const char *key);

/* UTF-8; other bytes become U+FFFD. */
void json_string(struct json *json, const char *text);
void json_unsigned(struct json *json, uint64_t value);
/* Nanoseconds as microseconds with three decimals. */
void json_us(struct json *json, uint64_t ns);
/* Six decimals; null if not finite or beyond 1e15. */
void json_number(struct json *json, double value);
void json_null(struct json *json);
void json_bool(struct json *json, bool value);

/* A key and its value. Open objects and arrays are closed as above. */
void json_member_string(struct json *json, const char *key, const char *text);
void json_member_unsigned(struct json *json, const char *key, uint64_t value);
void json_member_us(struct json *json, const char *key, uint64_t ns);
void json_member_number(struct json *json, const char *key, double value);
void json_member_bool(struct json *json, const char *key, bool value);
void json_member_object(struct json *json, const char *key, bool flat);
void json_member_array(struct json *json, const char *key, bool flat);

#endif
