/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "words.h"
#include "common/outfile.h"
#include "media/video.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *say_stream; /* where results go; NULL = nowhere */

/* What the library said. */
static struct {
    pthread_mutex_t lock;
    enum cox_log_level shown;
    size_t used;
    unsigned lines;
    char text[16384]; /* lines, each with a newline */
    unsigned said_count;
    uint64_t said
        [64]; /* hashes of what was printed: every session has the same to say of the same device */
} logbook = {.lock = PTHREAD_MUTEX_INITIALIZER, .shown = COX_LOG_WARN};

void words_begin(FILE *results, enum cox_log_level shown)
{
    say_stream = results;
    logbook.shown = shown;
    logbook.used = logbook.lines = 0; /* of another input */
    logbook.text[0] = '\0';
}

bool words_finish(void)
{
    if (say_stream && (fflush(say_stream) || ferror(say_stream)))
        return complain("cannot write to the terminal or pipe: %s", strerror(errno));
    return true;
}

void say(const char *format, ...)
{
    if (!say_stream)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(say_stream, format, args);
    va_end(args);
}

bool say_wanted(void)
{
    return say_stream;
}

static void complain_args(const char *format, va_list args)
{
    char line[2048];
    vsnprintf(line, sizeof line, format, args);
    fprintf(stderr, "cox-tonemap: %s\n", line);
}

bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_args(format, args);
    va_end(args);
    return false;
}

static atomic_bool misfits;

bool misfit(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain_args(format, args);
    va_end(args);
    atomic_store(&misfits, true);
    return false;
}

bool words_misfit(void)
{
    return atomic_load(&misfits);
}

void warn(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (logbook.shown >= COX_LOG_WARN)
        fprintf(stderr, "cox-tonemap: warning: %s\n", line);
}

bool complain_about(const char *path, const struct error *error)
{
    return complain("%s: %s",
                    !strcmp(path, "-") ? "standard stream"
                    : *path            ? path
                                       : "''",
                    error->text);
}

void warn_about(void *path, const char *what)
{
    warn("%s: %s", (const char *)path, what);
}

static bool said_before(const char *line)
{
    uint64_t hash = hash_bytes(HASH_START, line, strlen(line));
    for (unsigned i = 0; i < logbook.said_count; i++)
        if (logbook.said[i] == hash)
            return true;
    if (logbook.said_count < sizeof logbook.said / sizeof logbook.said[0])
        logbook.said[logbook.said_count++] = hash;
    return false;
}

void words_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&logbook.lock);
    if (level == COX_LOG_ERROR) {
        size_t length = strlen(line);
        if (length + 2 < sizeof logbook.text - logbook.used) {
            memcpy(logbook.text + logbook.used, line, length);
            logbook.used += length;
            logbook.text[logbook.used++] = '\n';
            logbook.text[logbook.used] = 0;
            logbook.lines++;
        }
    } else if (level <= logbook.shown && !said_before(line)) {
        fprintf(stderr, "cox-tonemap: %s%s\n", level == COX_LOG_WARN ? "warning: " : "", line);
    }
    pthread_mutex_unlock(&logbook.lock);
}

static void logbook_clear(void)
{
    logbook.used = 0;
    logbook.lines = 0;
    logbook.text[0] = 0;
}

void words_warn(void)
{
    pthread_mutex_lock(&logbook.lock);
    for (const char *line = logbook.text; *line;) {
        int length = (int)strcspn(line, "\n");
        if (logbook.shown >= COX_LOG_WARN)
            fprintf(stderr, "cox-tonemap: warning: %.*s\n", length, line);
        line += length + 1;
    }
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
}

bool complain_status(const char *what, cox_status status)
{
    pthread_mutex_lock(&logbook.lock);
    if (logbook.lines > 1)
        fputs(logbook.text, stderr);
    if (logbook.lines == 1)
        complain("%s: %s: %.*s", what, cox_status_text(status), (int)strcspn(logbook.text, "\n"),
                 logbook.text);
    else
        complain("%s: %s", what, cox_status_text(status));
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
    return false;
}

bool complain_reasons(const char *what)
{
    pthread_mutex_lock(&logbook.lock);
    char all[1536] = "";
    size_t used = 0;
    for (const char *line = logbook.text; *line && used < sizeof all;
         line += strcspn(line, "\n") + 1)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s", used ? "; " : "",
                                 (int)strcspn(line, "\n"), line);
    complain("%s: %s", what, *all ? all : "the reason is not known");
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
    return false;
}

/* --- Interruption ------------------------------------------------------------------------------------------------- */

enum {
    TOGETHER_NS = 500000000
}; /* signals that come so soon after the first one count as that one */

static volatile sig_atomic_t signal_number;
static _Atomic uint64_t first_signal_ns; /* 0 = none came */
static _Atomic(struct video_input *) cancelled_input;
static atomic_int handling; /* handlers that may be using the input, on any thread */

/* A terminal that closes, several programs that signal one process group, and timeout(1) send two signals at once. A
 * user who wants the program to end at once sends the second one after having seen that it goes on. */
static void on_signal(int number)
{
    uint64_t first_ns = 0, here_ns = now_ns();
    if (!atomic_compare_exchange_strong(&first_signal_ns, &first_ns, here_ns)) {
        /* Another thread's handler may have come first with a later time. */
        if (here_ns < first_ns || here_ns - first_ns < TOGETHER_NS)
            return;
        outfile_remove_all(); /* at once, without waiting for a driver that hangs */
        _exit(128 + number);
    }
    int kept = errno;
    signal_number = number;
    atomic_fetch_add(&handling, 1);
    struct video_input *input = atomic_load(&cancelled_input);
    if (input)
        video_input_cancel(input);
    atomic_fetch_sub(&handling, 1);
    errno = kept;
}

/* A driver's compiler may end the process (LLVM does, on an internal error). The signal is delivered again after this,
 * and ends it. */
static void on_end(int number)
{
    outfile_remove_all();
    raise(number); /* held back until this returns */
}

/* `action` is for the signals that a user sends. */
static void catch_with(struct sigaction action)
{
    static bool caught;
    if (caught)
        return;
    caught = true;
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    action.sa_handler = on_end;
    action.sa_flags = (int)SA_RESETHAND;
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGQUIT, SIGXCPU};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &action, NULL);
    atexit(outfile_remove_all);
    signal(SIGPIPE,
           SIG_IGN); /* a closed pipe and a file that may not grow are errors of the write */
    signal(SIGXFSZ, SIG_IGN);
}

void catch_signals(void)
{
    catch_with((struct sigaction){.sa_handler = on_signal});
}

void catch_signals_at_once(void)
{
    catch_with((struct sigaction){.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND});
}

int interrupted(void)
{
    return signal_number;
}

void interruption_cancels(struct video_input *input)
{
    atomic_store(&cancelled_input, input);
    if (input && signal_number) /* it came just before */
        video_input_cancel(input);
    while (!input && atomic_load(&handling)) /* the caller is about to close it */
        sched_yield();
}
