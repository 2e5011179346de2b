/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "progress.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void progress_begin(struct progress *progress, FILE *stream, uint64_t total, uint64_t now_ns)
{
    const char *term = getenv("TERM");
    const bool dumb = term && !strcmp(term, "dumb");
    *progress = (struct progress){.total = total, .begin_ns = now_ns};
    if (isatty(fileno(stream)) && !dumb)
        progress->stream = stream;
}

enum { BAR_LEAST = 6, BAR_MOST = 20 };

/* "[>>>>        ]  ": the share that is done. No bar of a split has its mark. */
static void draw_bar(char bar[BAR_MOST + 5], size_t width, uint64_t done, uint64_t total)
{
    size_t filled = width;
    if (done < total)
        filled = (size_t)((double)done / (double)total * (double)width);

    memset(bar, ' ', width + 4);
    memset(bar + 1, '>', filled);
    bar[0] = '[';
    bar[width + 1] = ']';
    bar[width + 4] = 0;
}

/* The width of the bar in a line with `others` other characters. */
static size_t bar_width(size_t others, size_t columns)
{
    if (columns < others + 4 + BAR_LEAST)
        return BAR_LEAST;
    if (columns > others + 4 + BAR_MOST)
        return BAR_MOST;

    return columns - others - 4;
}

/* "  1:02:03 left" */
static void describe_left(double seconds, char *text, size_t bytes)
{
    unsigned long long s = 9999999;
    if (seconds + 0.5 < 1e7)
        s = (unsigned long long)(seconds + 0.5);

    if (s >= 3600)
        snprintf(text, bytes, "  %llu:%02llu:%02llu left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, bytes, "  %llu:%02llu left", s / 60, s % 60);
}

static double rate_of(uint64_t done, double seconds)
{
    return seconds > 0 ? (double)done / seconds : 0;
}

void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                     const char *split, unsigned columns)
{
    char before[64], after[96], left[32] = "", apart[64] = "", bar[BAR_MOST + 5] = "";
    const double fps = rate_of(done, (double)elapsed_ns / 1e9);
    size_t limit = bytes - 1, bar_least = 0;
    if (columns && columns < bytes)
        limit = columns;
    if (total)
        bar_least = BAR_LEAST + 4;

    snprintf(before, sizeof before, "%" PRIu64 " frames  ", done);
    if (total)
        snprintf(before, sizeof before, "%" PRIu64 "/%" PRIu64 " frames  ", done, total);
    if (total && done && done <= total && fps > 0)
        describe_left((double)(total - done) / fps, left, sizeof left);
    snprintf(after, sizeof after, "%.1f frames/s%s", fps, left);
    if (*split)
        snprintf(apart, sizeof apart, "  split %s", split);

    size_t others = strlen(before) + strlen(after) + strlen(apart);
    if (others + bar_least > limit) {
        others -= strlen(apart);
        *apart = 0;
    }
    if (total)
        draw_bar(bar, bar_width(others, limit), done, total);
    snprintf(text, limit + 1, "%s%s%s%s", before, bar, after, apart);
}

void progress_format_json(char *text, size_t bytes, const struct progress *progress, uint64_t done,
                          uint64_t now_ns, bool ended)
{
    const double seconds = (double)(now_ns - progress->begin_ns) / 1e9;
    const double fps = rate_of(done, seconds);
    char total[24] = "null", left[32] = "null", bound[48] = "null";
    if (progress->total)
        snprintf(total, sizeof total, "%" PRIu64, progress->total);
    if (progress->total >= done && fps > 0)
        snprintf(left, sizeof left, "%.1f", (double)(progress->total - done) / fps);
    if (progress->bound)
        snprintf(bound, sizeof bound, "\"%.40s\"", progress->bound);
    for (size_t i = 1; progress->bound && bound[i + 1]; i++)
        if (bound[i] == '"' || bound[i] == '\\') /* of a process's name */
            bound[i] = '?';

    snprintf(text, bytes,
             "{\"frames\": %" PRIu64 ", \"total\": %s, \"seconds\": %.1f, \"fps\": %.2f, "
             "\"left_s\": %s, \"bytes\": %" PRIu64 ", \"bound\": %s, \"ended\": %s}",
             done, total, seconds, fps, left, progress->bytes, bound, ended ? "true" : "false");
}

static void write_json(struct progress *progress, uint64_t done, uint64_t now_ns, bool ended)
{
    char text[320];
    progress_format_json(text, sizeof text, progress, done, now_ns, ended);
    fprintf(progress->stream, "%s\n", text);
    fflush(progress->stream);

    progress->drawn_ns = now_ns;
}

void progress_use_json(struct progress *progress, FILE *stream)
{
    progress->stream = stream;
    progress->json = true;
}

void progress_end(struct progress *progress, uint64_t done, uint64_t now_ns)
{
    if (progress->json)
        write_json(progress, done, now_ns, true);
}

/* "  12.3 MB  bound by devices", as far as the line has space for it. */
static void describe_more(const struct progress *progress, unsigned columns, char *text,
                          size_t bytes)
{
    enum { REST_LEAST = 60 };
    char size[32] = "", bound[64] = "";
    if (progress->bytes)
        snprintf(size, sizeof size, "  %.1f MB", (double)progress->bytes / 1e6);
    if (progress->bound)
        snprintf(bound, sizeof bound, "  bound by %.40s", progress->bound);
    if (strlen(size) + strlen(bound) + REST_LEAST > columns)
        bound[0] = 0;

    if (strlen(size) + REST_LEAST > columns)
        size[0] = 0;
    snprintf(text, bytes, "%s%s", size, bound);
}

static unsigned terminal_columns(FILE *stream)
{
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) || size.ws_col <= 1)
        return 79;

    return size.ws_col - 1u;
}

/* A line of JSON each second. */
static void update_json(struct progress *progress, uint64_t done, uint64_t now_ns)
{
    uint64_t last_ns = progress->drawn_ns;
    if (!last_ns)
        last_ns = progress->begin_ns;
    if (now_ns - last_ns >= 1000000000)
        write_json(progress, done, now_ns, false);
}

void progress_update(struct progress *progress, uint64_t done, const char *split, uint64_t now_ns)
{
    char text[384], more[128], plain[384];
    if (progress->json) {
        update_json(progress, done, now_ns);
        return;
    }
    if (!progress->stream || now_ns - progress->begin_ns < 500000000 ||
        now_ns - progress->drawn_ns < 100000000)
        return;

    const unsigned columns = terminal_columns(progress->stream);
    describe_more(progress, columns, more, sizeof more);
    progress_format(text, sizeof text, done, progress->total, now_ns - progress->begin_ns, split,
                    columns - (unsigned)strlen(more));
    strncat(text, more, sizeof text - strlen(text) - 1);
    fprintf(progress->stream, "\r%s\x1b[K", text_plain(text, plain, sizeof plain));
    fflush(progress->stream);

    progress->drawn_ns = now_ns;
    progress->visible = true;
}

void progress_clear(struct progress *progress)
{
    if (!progress->visible)
        return;

    fputs("\r\x1b[K", progress->stream);
    fflush(progress->stream);
    progress->visible = false;
}
