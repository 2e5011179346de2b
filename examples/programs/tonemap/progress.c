/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void progress_begin(struct progress *progress, FILE *stream, uint64_t total, uint64_t now_ns)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(fileno(stream)) && !(term && !strcmp(term, "dumb"));
    *progress = (struct progress){
        .stream = terminal ? stream : NULL, .total = total, .begin_ns = now_ns};
}

enum { BAR_LEAST = 6, BAR_MOST = 20 };

/* "[>>>>        ]  ": how much of it all is done. Its mark is none of a split's. */
static void draw_bar(char bar[BAR_MOST + 5], size_t width, uint64_t done, uint64_t total)
{
    const size_t filled = done < total ? (size_t)((double)done / (double)total * (double)width)
                                       : width;
    memset(bar, ' ', width + 4);
    memset(bar + 1, '>', filled);
    bar[0] = '[';
    bar[width + 1] = ']';
    bar[width + 4] = 0;
}

/* As much of a bar as there is space for in the line beside `others` characters. */
static size_t bar_width(size_t others, size_t columns)
{
    const size_t space = columns > others + 4 ? columns - others - 4 : 0;
    return space > BAR_MOST ? BAR_MOST : space < BAR_LEAST ? BAR_LEAST : space;
}

void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                     const char *split, unsigned columns)
{
    char before[64], after[96], apart[64] = "", bar[BAR_MOST + 5] = "";
    double seconds = (double)elapsed_ns / 1e9;
    double fps = seconds > 0 ? (double)done / seconds : 0;
    const size_t limit = columns && columns < bytes ? columns : bytes - 1;
    snprintf(before, sizeof before, "%llu", (unsigned long long)done);
    int length = snprintf(after, sizeof after, "%.1f frames/s", fps);
    if (total)
        snprintf(before + strlen(before), sizeof before - strlen(before), "/%llu",
                 (unsigned long long)total);
    strcat(before, " frames  ");
    if (total && done && done <= total && fps > 0) {
        double rest = (double)(total - done) / fps + 0.5;
        unsigned long long s = rest < 1e7 ? (unsigned long long)rest : 9999999;
        if (s >= 3600)
            snprintf(after + length, sizeof after - (size_t)length, "  %llu:%02llu:%02llu left",
                     s / 3600, s / 60 % 60, s % 60);
        else
            snprintf(after + length, sizeof after - (size_t)length, "  %llu:%02llu left", s / 60,
                     s % 60);
    }
    if (*split)
        snprintf(apart, sizeof apart, "  split %s", split);
    if (strlen(before) + (total ? BAR_LEAST + 4 : 0) + strlen(after) + strlen(apart) > limit)
        *apart = 0;
    if (total)
        draw_bar(bar, bar_width(strlen(before) + strlen(after) + strlen(apart), limit), done,
                 total);
    snprintf(text, limit + 1, "%s%s%s%s", before, bar, after, apart);
}

void progress_format_json(char *text, size_t bytes, const struct progress *progress, uint64_t done,
                          uint64_t now_ns, bool ended)
{
    const double seconds = (double)(now_ns - progress->begin_ns) / 1e9;
    const double fps = seconds > 0 ? (double)done / seconds : 0;
    char total[24] = "null", left[32] = "null", bound[48] = "null";
    if (progress->total)
        snprintf(total, sizeof total, "%llu", (unsigned long long)progress->total);
    if (progress->total >= done && fps > 0)
        snprintf(left, sizeof left, "%.1f", (double)(progress->total - done) / fps);
    if (progress->bound)
        snprintf(bound, sizeof bound, "\"%.40s\"", progress->bound);
    snprintf(
        text, bytes,
        "{\"frames\": %llu, \"total\": %s, \"seconds\": %.1f, \"fps\": %.2f, \"left_s\": %s, \"bytes\": %llu, "
        "\"bound\": %s, \"ended\": %s}",
        (unsigned long long)done, total, seconds, fps, left, (unsigned long long)progress->bytes,
        bound, ended ? "true" : "false");
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

/* "  12.3 MB  bound by devices", where the line has space for it beside the rest. */
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

void progress_update(struct progress *progress, uint64_t done, const char *split, uint64_t now_ns)
{
    if (progress->json) {
        if (now_ns - (progress->drawn_ns ? progress->drawn_ns : progress->begin_ns) >= 1000000000)
            write_json(progress, done, now_ns, false);
        return;
    }
    if (!progress->stream || now_ns - progress->begin_ns < 500000000 ||
        now_ns - progress->drawn_ns < 100000000)
        return;
    struct winsize size;
    unsigned columns = 79;
    if (!ioctl(fileno(progress->stream), TIOCGWINSZ, &size) && size.ws_col > 1)
        columns = size.ws_col - 1u;
    char text[256], more[128];
    describe_more(progress, columns, more, sizeof more);
    progress_format(text, sizeof text, done, progress->total, now_ns - progress->begin_ns, split,
                    columns - (unsigned)strlen(more));
    fprintf(progress->stream, "\r%s%s\x1b[K", text, more);
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
