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
    int other;    /* a byte passes the turn; its end means that the other side has ended */
    pid_t second; /* 0 in the second process */
    bool has_turn;
    void *shared;
    size_t shared_bytes;
};

struct lab_sides *lab_sides_begin(size_t shared_bytes)
{
    int ends[2], error;
    pid_t first = getpid();
    struct lab_sides *sides = calloc(1, sizeof *sides);
    void *shared = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);

    if (!sides || shared == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        goto fail;

    fflush(NULL); /* buffered text belongs to the first side */
    pid_t second = fork();
    if (second < 0) {
        error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        goto fail;
    }

    const int own = second == 0;
    close(ends[!own]);
    *sides = (struct lab_sides){.other = ends[own],
                                .second = second,
                                .has_turn = second != 0,
                                .shared = shared,
                                .shared_bytes = shared_bytes};

    /* The second side ends with the first one, for any reason. */
    if (second == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != first))
        _exit(EXIT_FAILURE);
    return sides;

fail:
    error = errno;
    if (shared != MAP_FAILED)
        munmap(shared, shared_bytes);
    free(sides);
    errno = error;
    return NULL;
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
    /* If the other side has ended, the next lab_sides_take says so. */
    (void)!send(sides->other, "", 1, MSG_NOSIGNAL);
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
        status = EXIT_FAILURE;
        if (WIFEXITED(found))
            status = WEXITSTATUS(found);
    }

    munmap(s->shared, s->shared_bytes);
    free(s);
    return status;
}
