/* The C library's functions write to the variables stdout and stderr. These become streams that
 * escape, so no call can bypass them by mistake.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plain_output.h"
#include "text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1024, CHARACTER_BYTES = 4, ESCAPED = TEXT_ESCAPED_MAX / CHARACTER_BYTES };

/* A stream that escapes. A character may be written in two parts; the first one is kept. */
struct plain {
    int fd;
    size_t kept_bytes;
    int failure; /* errno of the first write that failed, or 0 */
    char kept[CHARACTER_BYTES];
};

static struct plain outputs[2] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
static FILE *terminal;

static bool write_all(int fd, const char *data, size_t bytes)
{
    while (bytes) {
        const ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;

        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* Whether the text ends in the first bytes of a character. */
static bool is_begun(const unsigned char *text, size_t bytes)
{
    size_t needed = 1;
    if (text[0] >= 0xF0 && text[0] < 0xF8)
        needed = 4;
    else if (text[0] >= 0xE0)
        needed = 3;
    else if (text[0] >= 0xC0)
        needed = 2;
    if (bytes >= needed || text[0] >= 0xF8)
        return false;

    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xC0) != 0x80)
            return false;
    return true;
}

/* Escape a text that has a terminator. Returns how many bytes of it were used. */
static size_t escape(const unsigned char *text, size_t bytes, char *out, size_t *out_bytes)
{
    size_t at = 0;
    unsigned length;

    for (*out_bytes = 0; at < bytes && !is_begun(text + at, bytes - at); at += length)
        *out_bytes += text_escape(text + at, "\n\t", &length, out + *out_bytes);
    return at;
}

/* The function of a stream: returns the bytes that were written, 0 with errno on failure. */
static ssize_t write_plain(void *cookie, const char *data, size_t bytes)
{
    struct plain *plain = cookie;
    char text[CHARACTER_BYTES + PIECE_BYTES + 1], out[sizeof text * ESCAPED + 1];

    for (size_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done;
        if (piece > PIECE_BYTES)
            piece = PIECE_BYTES;

        memcpy(text, plain->kept, plain->kept_bytes);
        memcpy(text + plain->kept_bytes, data + done, piece);
        const size_t whole = plain->kept_bytes + piece;
        text[whole] = '\0';

        size_t out_bytes;
        const size_t used = escape((const unsigned char *)text, whole, out, &out_bytes);
        plain->kept_bytes = whole - used;
        memcpy(plain->kept, text + used, plain->kept_bytes);
        if (!write_all(plain->fd, out, out_bytes)) {
            if (!plain->failure)
                plain->failure = errno;
            return 0;
        }
    }
    return (ssize_t)bytes;
}

static FILE *make_plain(struct plain *plain, int buffering)
{
    FILE *stream = fopencookie(plain, "w", (cookie_io_functions_t){.write = write_plain});
    if (!stream || setvbuf(stream, NULL, buffering, BUFSIZ)) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return stream;
}

void plain_output_begin(void)
{
    int buffering = _IOFBF;
    if (isatty(STDOUT_FILENO))
        buffering = _IOLBF;

    FILE *out = make_plain(&outputs[0], buffering);
    FILE *messages = make_plain(&outputs[1], _IONBF);
    terminal = stderr;
    stdout = out;
    stderr = messages;
}

const char *plain_output_failure(FILE *stream)
{
    errno = 0;
    if (!fflush(stream) && !ferror(stream))
        return NULL;

    /* A write that failed earlier left only its mark in the stream. */
    const struct plain *plain = &outputs[stream == stderr];
    if (plain->failure)
        return strerror(plain->failure);
    return errno ? strerror(errno) : "a write failed";
}

FILE *plain_output_terminal(void)
{
    if (terminal)
        return terminal;
    return stderr;
}
