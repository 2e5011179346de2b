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
    *progress = (struct progress){.stream = terminal ? stream : NULL, .total = total, .begin_ns = now_ns};
}

void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns, const char *bar,
                     unsigned columns)
{
    char count[48], left[32] = "";
    double seconds = (double)elapsed_ns / 1e9;
    double fps = seconds > 0 ? (double)done / seconds : 0;
    if (total) {
        snprintf(count, sizeof count, "%llu/%llu frames", (unsigned long long)done, (unsigned long long)total);
        if (done && done <= total && fps > 0) {
            double rest = (double)(total - done) / fps + 0.5;
            unsigned long long s = rest < 1e7 ? (unsigned long long)rest : 9999999;
            if (s >= 3600)
                snprintf(left, sizeof left, "  %llu:%02llu:%02llu left", s / 3600, s / 60 % 60, s % 60);
            else
                snprintf(left, sizeof left, "  %llu:%02llu left", s / 60, s % 60);
        }
    } else {
        snprintf(count, sizeof count, "%llu frames", (unsigned long long)done);
    }
    snprintf(text, bytes, "%s  %.1f frames/s  %s%s", count, fps, bar, left);
    if (columns && columns < bytes)
        text[columns] = 0;
}

void progress_update(struct progress *progress, uint64_t done, const char *bar, uint64_t now_ns)
{
    if (!progress->stream || now_ns - progress->begin_ns < 500000000 || now_ns - progress->drawn_ns < 100000000)
        return;
    struct winsize size;
    unsigned columns = 79;
    if (!ioctl(fileno(progress->stream), TIOCGWINSZ, &size) && size.ws_col > 1)
        columns = size.ws_col - 1u;
    char text[256];
    progress_format(text, sizeof text, done, progress->total, now_ns - progress->begin_ns, bar, columns);
    fprintf(progress->stream, "\r%s\x1b[K", text);
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
