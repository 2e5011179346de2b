/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sides.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct lab_sides {
    int other;    /* a byte that comes is the turn, its end the other side's */
    pid_t second; /* 0 in the second process */
    bool has_turn;
    void *shared;
    size_t shared_bytes;
};

struct lab_sides *lab_sides_begin(size_t shared_bytes)
{
    int ends[2];
    pid_t first = getpid();
    struct lab_sides *sides = calloc(1, sizeof *sides);
    void *shared = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);
    if (!sides || shared == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        if (shared != MAP_FAILED)
            munmap(shared, shared_bytes);
        free(sides);
        return NULL;
    }
    fflush(NULL); /* what is buffered is the first side's */
    pid_t second = fork();
    if (second < 0) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        munmap(shared, shared_bytes);
        free(sides);
        errno = error;
        return NULL;
    }
    close(ends[second ? 1 : 0]);
    *sides = (struct lab_sides){.other = ends[second ? 0 : 1],
                                .second = second,
                                .has_turn = second != 0,
                                .shared = shared,
                                .shared_bytes = shared_bytes};
    /* It ends with the first side, however that ends. */
    if (second == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != first))
        _exit(EXIT_FAILURE);
    return sides;
}

bool lab_sides_is_second(const struct lab_sides *sides)
{
    return sides && sides->second == 0;
}

void *lab_sides_shared(const struct lab_sides *sides)
{
    return sides->shared;
}

bool lab_sides_take(struct lab_sides *sides)
{
    char turn;
    if (!sides || sides->has_turn)
        return true;
    ssize_t got;
    do {
        got = recv(sides->other, &turn, 1, 0);
    } while (got < 0 && errno == EINTR);
    sides->has_turn = got == 1;
    return sides->has_turn;
}

void lab_sides_pass(struct lab_sides *sides)
{
    if (!sides || !sides->has_turn)
        return;
    sides->has_turn = false;
    (void)!send(sides->other, "", 1,
                MSG_NOSIGNAL); /* if the other side has ended, the next lab_sides_take says so */
}

int lab_sides_end(struct lab_sides **sides, int status)
{
    struct lab_sides *s = *sides;
    int found = 0;
    *sides = NULL;
    if (!s)
        return status;
    close(s->other);
    if (s->second) {
        while (waitpid(s->second, &found, 0) < 0 && errno == EINTR)
            continue;
        status = WIFEXITED(found) ? WEXITSTATUS(found) : EXIT_FAILURE;
    }
    munmap(s->shared, s->shared_bytes);
    free(s);
    return status;
}
