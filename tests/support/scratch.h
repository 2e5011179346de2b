/* Temporary folders of a test in /tmp.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SCRATCH_H
#define COX_TESTS_SCRATCH_H

#include <sys/wait.h>
#include <unistd.h>

/* Remove a folder and its contents. */
static inline void scratch_remove(const char *folder)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

#endif
