/* Background threads of the library, and condition variables for waits with a time limit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_THREAD_H
#define COX_HOST_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* Start a joinable thread. Of the signals it takes only those of faults in the thread itself: the
 * application may have mapped a file, and catch SIGBUS. `name` has at most 15 characters. False:
 * the system gives no thread. pthread_setname_np requires _GNU_SOURCE. */
static inline bool cox__thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg),
                                     void *arg)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);

    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const bool started = pthread_create(thread, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (started)
        pthread_setname_np(*thread, name);
    return started;
}

/* A condition variable whose time limits are those of cox__clock_ns. False: there is no memory. */
static inline bool cox__cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic))
        return false;

    const bool made = !pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) &&
                      !pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return made;
}

#endif
