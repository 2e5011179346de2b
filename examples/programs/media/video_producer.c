/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* If the clock is gone, return false and leave `*ns` unchanged. A process that has just begun may
 * read 0. */
static bool read_clock(clockid_t clock, uint64_t *ns)
{
    struct timespec now;
    if (clock_gettime(clock, &now))
        return false;
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return true;
}

/* The number that is a directory's name; 0 if the name is not a number. */
static pid_t number_of(const struct dirent *entry)
{
    char *end;
    const long number = strtol(entry->d_name, &end, 10);
    if (*end || number <= 0 || number > INT32_MAX)
        return 0;
    return (pid_t)number;
}

/* --- Threads ---------------------------------------------------------------------------------- */

void video_threads_list(struct video_threads *threads)
{
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");

    threads->count = 0;
    if (!tasks)
        return;
    while (threads->count < VIDEO_THREADS_MAX && (entry = readdir(tasks)))
        if (number_of(entry))
            threads->ids[threads->count++] = number_of(entry);
    closedir(tasks);
}

static bool is_among(const struct video_threads *threads, pid_t id)
{
    for (uint32_t i = 0; i < threads->count; i++)
        if (threads->ids[i] == id)
            return true;
    return false;
}

void video_threads_without(struct video_threads *threads, const struct video_threads *others)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < threads->count; i++)
        if (!is_among(others, threads->ids[i]))
            threads->ids[count++] = threads->ids[i];
    threads->count = count;
}

uint64_t video_threads_cpu_ns(const struct video_threads *threads)
{
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        /* The thread's clock, made from its number as pthread_getcpuclockid does. */
        const clockid_t clock = (clockid_t)(~(uint32_t)threads->ids[i] << 3 | 6);
        uint64_t ns = 0;
        read_clock(clock, &ns);
        sum_ns += ns;
    }

    return sum_ns;
}

/* --- The program that writes to a pipe -------------------------------------------------------- */

/* Whether `name`, an entry of an open /proc/PID/fd, is the pipe, open for writing. */
static bool is_writing_end(int fd, const char *name, const struct stat *pipe)
{
    struct stat file, link;
    return !fstatat(fd, name, &file, 0) && file.st_dev == pipe->st_dev &&
           file.st_ino == pipe->st_ino && !fstatat(fd, name, &link, AT_SYMLINK_NOFOLLOW) &&
           link.st_mode & S_IWUSR;
}

/* Whether a process has the pipe open for writing. */
static bool writes_to(int proc, const char *process, const struct stat *pipe)
{
    struct dirent *entry;
    char path[64];
    bool found = false;

    snprintf(path, sizeof path, "%.16s/fd", process);
    const int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    DIR *files = fdopendir(fd);
    if (!files) {
        close(fd);
        return false;
    }

    while (!found && (entry = readdir(files)))
        found = is_writing_end(fd, entry->d_name, pipe);
    closedir(files);
    return found;
}

static void read_name(int proc, const char *process, char name[VIDEO_NAME_BYTES])
{
    char path[64];
    ssize_t bytes = 0;

    snprintf(path, sizeof path, "%.16s/comm", process);
    const int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        bytes = read(fd, name, VIDEO_NAME_BYTES - 1);
        close(fd);
    }

    name[bytes < 0 ? 0 : bytes] = 0;
    name[strcspn(name, "\n")] = 0;
    make_printable(name); /* the process chooses it, and it goes to the terminal */
}

/* Add a process of /proc to the writers, if it is one. */
static void look_at_process(struct video_writers *writers, int proc, const struct dirent *entry,
                            const struct stat *pipe)
{
    const pid_t id = number_of(entry);
    struct video_writer *writer = &writers->writers[writers->count];
    if (!id || id == getpid() || getsid(id) != getsid(0) || !writes_to(proc, entry->d_name, pipe) ||
        clock_getcpuclockid(id, &writer->clock) || !read_clock(writer->clock, &writer->first_ns))
        return;

    read_name(proc, entry->d_name, writer->name);
    writer->last_ns = writer->first_ns;
    writers->count++;
}

/* Looks at the processes of this one's session only: a shell starts both ends of a pipe in one, and
 * all files of all processes would take long. */
static void find_writers(struct video_writers *writers, int pipe_fd)
{
    struct dirent *entry;
    struct stat pipe;
    if (fstat(pipe_fd, &pipe) || !S_ISFIFO(pipe.st_mode))
        return;
    DIR *processes = opendir("/proc");
    if (!processes)
        return;

    while (writers->count < VIDEO_WRITERS_MAX && (entry = readdir(processes)))
        look_at_process(writers, dirfd(processes), entry, &pipe);
    closedir(processes);
}

/* The sum of all writers (a shell may have the pipe open too); the busiest one gives the name. */
static void sum_writers(struct video_writers *writers, struct video_producer *producer)
{
    uint64_t most_ns = 0;
    for (uint32_t i = 0; i < writers->count; i++) {
        struct video_writer *writer = &writers->writers[i];
        if (!writer->gone) /* later another program may have its number */
            writer->gone = !read_clock(writer->clock, &writer->last_ns);
        producer->cpu_ns += writer->last_ns - writer->first_ns;

        if (!i || writer->last_ns > most_ns) {
            most_ns = writer->last_ns;
            memcpy(producer->name, writer->name, sizeof producer->name);
        }
    }

    if (writers->count)
        producer->kind = VIDEO_PRODUCER_PROCESS;
}

void video_input_producer(struct video_input *input, struct video_producer *producer)
{
    *producer = (struct video_producer){.kind = VIDEO_PRODUCER_UNKNOWN};
    if (input->reader->producer) {
        input->reader->producer(input, producer);
        return;
    }
    if (input->source.seekable || input->source.fd < 0) {
        producer->kind = VIDEO_PRODUCER_FILE;
        return;
    }

    if (!input->writers.sought)
        find_writers(&input->writers, input->source.fd);
    input->writers.sought = true;
    sum_writers(&input->writers, producer);
}
