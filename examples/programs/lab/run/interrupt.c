/* SPDX-License-Identifier: Apache-2.0 */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupts;

static void on_signal(int number)
{
    if (++interrupts > 1) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void lab__run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool lab__run_interrupted(void)
{
    return interrupts > 0;
}
