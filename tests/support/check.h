/* Assertions for plain test programs. A failure ends the program at once, in every build type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CHECK_H
#define COX_TESTS_CHECK_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

enum { CHECK_LIMIT_S = 600 };

static const char *check_limited;

static inline void check_on_limit(int signal)
{
    static const char late[] = "did not end within ten minutes: ";
    (void)signal;
    if (write(STDERR_FILENO, late, sizeof late - 1) > 0 &&
        write(STDERR_FILENO, check_limited, strlen(check_limited)) > 0)
        _exit(write(STDERR_FILENO, "\n", 1) > 0 ? 1 : 2);
    _exit(1);
}

/* End the program with an error ten minutes from now. `what` describes its work, for the message. On the busiest
 * machine the programs need a tenth of that. */
static inline void check_limit(const char *what)
{
    sigset_t alarms;
    check_limited = what;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, check_on_limit);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(CHECK_LIMIT_S);
}

#endif
