/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "interrupt.h"
#include "common/now.h"
#include "common/outfile.h"
#include "media/video.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Signals that come this soon after the first one count as that one. */
enum { SAME_SIGNAL_NS = 500000000 };

static volatile sig_atomic_t signal_number;
static _Atomic uint64_t first_signal_ns; /* 0 = none came */
static _Atomic(struct video_input *) cancelled_input;
static atomic_int handling; /* handlers that may be using the input, on any thread */

/* A terminal that closes, several programs that signal one process group, and timeout(1) send two
 * signals at once. A user sends the second signal later, after seeing that the program goes on.
 * That signal ends it immediately. */
static void on_signal(int number)
{
    uint64_t first_ns = 0, here_ns = now_ns();
    if (!atomic_compare_exchange_strong(&first_signal_ns, &first_ns, here_ns)) {
        /* Another thread's handler may have come first with a later time. */
        if (here_ns < first_ns || here_ns - first_ns < SAME_SIGNAL_NS)
            return;
        outfile_remove_all(); /* at once, without waiting for a driver that hangs */
        _exit(128 + number);
    }

    const int kept = errno;
    signal_number = number;
    atomic_fetch_add(&handling, 1);
    struct video_input *input = atomic_load(&cancelled_input);
    if (input)
        video_input_cancel(input);

    atomic_fetch_sub(&handling, 1);
    errno = kept;
}

/* A driver's compiler may end the process (LLVM does, on an internal error). The signal is blocked
 * until this handler returns; then it is delivered again and ends the process. */
static void on_end(int number)
{
    outfile_remove_all();
    raise(number);
}

/* Ignored signals stay ignored. */
static void catch_user_signals(const struct sigaction *action)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], action, NULL);
    }
}

/* `action` is for the signals that a user sends. Only the first call has an effect. */
static void catch_with(struct sigaction action)
{
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGQUIT, SIGXCPU};
    static bool caught;
    if (caught)
        return;

    caught = true;
    sigemptyset(&action.sa_mask);
    catch_user_signals(&action);

    action.sa_handler = on_end;
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &action, NULL);
    atexit(outfile_remove_all);

    /* A closed pipe and a file that may not grow are errors of the write. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void interrupt_catch(void)
{
    catch_with((struct sigaction){.sa_handler = on_signal});
}

void interrupt_catch_at_once(void)
{
    catch_with((struct sigaction){.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND});
}

int interrupted(void)
{
    return signal_number;
}

void interrupt_cancels(struct video_input *input)
{
    atomic_store(&cancelled_input, input);
    if (input && signal_number) /* it came just before */
        video_input_cancel(input);

    while (!input && atomic_load(&handling)) /* the caller is about to close it */
        sched_yield();
}
