/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"
#include "common/plain_output.h"
#include "common/text.h"
#include "media/identity.h" /* hash_bytes */

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

static FILE *say_stream; /* where results go; NULL = nowhere */

/* The lines of the library: errors that were kept, and hashes of the lines that were printed. Every
 * session logs the same lines about the same device; each is printed once. */
static struct {
    pthread_mutex_t lock;
    enum cox_log_level shown;
    size_t used;
    unsigned lines;
    char text[16384]; /* lines, each with a newline */
    unsigned printed_count;
    uint64_t printed[64];
} logbook = {.lock = PTHREAD_MUTEX_INITIALIZER, .shown = COX_LOG_WARN};

static void logbook_clear(void)
{
    logbook.used = 0;
    logbook.lines = 0;
    logbook.text[0] = '\0';
}

void messages_begin(FILE *results, enum cox_log_level shown)
{
    say_stream = results;
    logbook.shown = shown;
    logbook_clear(); /* errors of the input before */
}

bool messages_finish(void)
{
    const char *failure = say_stream ? plain_output_failure(say_stream) : NULL;
    return !failure || message_error("cannot write to standard output: %s", failure);
}

void say(const char *format, ...)
{
    char text[4096], plain[sizeof text];
    va_list args;
    if (!say_stream)
        return;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    /* Other newlines are those of names. */
    const size_t length = strlen(format);
    const bool ends_line = length && format[length - 1] == '\n';
    if (ends_line && *text)
        text[strlen(text) - 1] = '\0';
    fprintf(say_stream, "%s%s", text_plain(text, plain, sizeof plain), ends_line ? "\n" : "");
}

bool say_wanted(void)
{
    return say_stream;
}

const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* One line, also if a file's name has a newline. */
static void print_line(const char *kind, const char *format, va_list args)
{
    char line[2048], plain[2 * sizeof line];
    vsnprintf(line, sizeof line, format, args);
    fprintf(stderr, "cox-tonemap: %s%s\n", kind, text_plain(line, plain, sizeof plain));
}

bool message_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);

    return false;
}

static atomic_bool any_incompatible;

bool message_incompatible(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);

    atomic_store(&any_incompatible, true);
    return false;
}

bool messages_incompatible(void)
{
    return atomic_load(&any_incompatible);
}

void message_warning(const char *format, ...)
{
    va_list args;
    if (logbook.shown < COX_LOG_WARN)
        return;

    va_start(args, format);
    print_line("warning: ", format, args);
    va_end(args);
}

bool message_file_error(const char *path, const struct error *error)
{
    if (!strcmp(path, "-"))
        path = "standard stream";
    else if (!*path)
        path = "''";

    return message_error("%s: %s", path, error->text);
}

void message_file_warning(void *path, const char *what)
{
    message_warning("%s: %s", (const char *)path, what);
}

static bool printed_before(const char *line)
{
    const uint64_t hash = hash_bytes(HASH_START, line, strlen(line));
    for (unsigned i = 0; i < logbook.printed_count; i++)
        if (logbook.printed[i] == hash)
            return true;

    if (logbook.printed_count < sizeof logbook.printed / sizeof logbook.printed[0])
        logbook.printed[logbook.printed_count++] = hash;
    return false;
}

/* Add an error to those that are kept. A line that does not fit is dropped. */
static void keep_error(const char *line)
{
    const size_t length = strlen(line);
    if (length + 2 >= sizeof logbook.text - logbook.used)
        return;

    memcpy(logbook.text + logbook.used, line, length);
    logbook.used += length;
    logbook.text[logbook.used++] = '\n';
    logbook.text[logbook.used] = '\0';
    logbook.lines++;
}

void messages_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&logbook.lock);

    if (level == COX_LOG_ERROR)
        keep_error(line);
    else if (level <= logbook.shown && !printed_before(line))
        fprintf(stderr, "cox-tonemap: %s%s\n", level == COX_LOG_WARN ? "warning: " : "", line);

    pthread_mutex_unlock(&logbook.lock);
}

void messages_show_warnings(void)
{
    pthread_mutex_lock(&logbook.lock);

    for (const char *line = logbook.text; *line;) {
        const int length = (int)strcspn(line, "\n");
        if (logbook.shown >= COX_LOG_WARN)
            fprintf(stderr, "cox-tonemap: warning: %.*s\n", length, line);
        line += length + 1;
    }
    logbook_clear();

    pthread_mutex_unlock(&logbook.lock);
}

bool message_status_error(const char *what, cox_status status)
{
    pthread_mutex_lock(&logbook.lock);

    if (logbook.lines > 1)
        fputs(logbook.text, stderr);
    if (logbook.lines == 1)
        message_error("%s: %s: %.*s", what, cox_status_text(status),
                      (int)strcspn(logbook.text, "\n"), logbook.text);
    else
        message_error("%s: %s", what, cox_status_text(status));
    logbook_clear();

    pthread_mutex_unlock(&logbook.lock);
    return false;
}

bool message_library_errors(const char *what)
{
    char all[1536] = "unknown reason";
    size_t used = 0;
    pthread_mutex_lock(&logbook.lock);

    const char *separator = "";
    for (const char *line = logbook.text; *line && used < sizeof all;) {
        const int length = (int)strcspn(line, "\n");
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s", separator, length, line);
        separator = "; ";
        line += length + 1;
    }
    message_error("%s: %s", what, all);
    logbook_clear();

    pthread_mutex_unlock(&logbook.lock);
    return false;
}
