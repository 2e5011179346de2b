/* Reports where a program crashed. On a fatal signal it writes the stack to standard error, one line for each
 * frame, "crash: OBJECT(...)", innermost first. setups.sh reads these lines.
 *
 * Call crash_tell once, before any other thread runs, if a driver or simulator may crash in the program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CRASH_H
#define COX_TESTS_CRASH_H

#include <execinfo.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

enum { CRASH_FRAMES_MAX = 48 };

static inline void crash_on_signal(int signal)
{
    void *frames[CRASH_FRAMES_MAX];
    const int count = backtrace(frames, CRASH_FRAMES_MAX);

    for (int i = 1; i < count; i++) { /* the first one is this function */
        if (write(STDERR_FILENO, "crash: ", 7) != 7)
            break;
        backtrace_symbols_fd(&frames[i], 1, STDERR_FILENO);
    }
    raise(signal); /* the handler is no longer installed, so the signal ends the program */
}

static inline void crash_tell(void)
{
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer prints more */
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction action = {.sa_handler = crash_on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER};
    void *frame;
    backtrace(&frame, 1); /* the first call loads the unwinder */
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
#endif
}

#endif
