/* What makes an input's frames: the decoder's threads, or the program at the other end of a pipe, and the processor
 * time of them. Linux tells it in /proc; elsewhere, and of programs of other users, it is unknown.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* False = the clock is gone, or there is none: `ns` stays as it is. A process that has just begun may well read 0. */
static bool read_clock(clockid_t clock, uint64_t *ns)
{
    struct timespec now;
    if (clock_gettime(clock, &now))
        return false;
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return true;
}

/* The number that is a directory's whole name; 0 = it is none. */
static pid_t number_of(const struct dirent *entry)
{
    char *end;
    const long number = strtol(entry->d_name, &end, 10);
    return *end || number <= 0 || number > INT32_MAX ? 0 : (pid_t)number;
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

void video_threads_list(struct video_threads *threads)
{
    DIR *tasks = opendir("/proc/self/task");
    threads->count = 0;
    for (struct dirent *entry;
         tasks && threads->count < VIDEO_THREADS_MAX && (entry = readdir(tasks));)
        if (number_of(entry))
            threads->ids[threads->count++] = number_of(entry);
    if (tasks)
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
    uint64_t ns = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        uint64_t own_ns =
            0; /* on the thread's clock, as pthread_getcpuclockid makes it of its number */
        read_clock((clockid_t)(~(uint32_t)threads->ids[i] << 3 | 6), &own_ns);
        ns += own_ns;
    }
    return ns;
}

/* --- The program before a pipe ------------------------------------------------------------------------------------ */

/* Whether a process has the pipe open for writing. */
static bool writes_to(int proc, const char *process, const struct stat *pipe)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "%.16s/fd", process);
    const int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = fd < 0 ? NULL : fdopendir(fd);
    if (!files) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *entry; !found && (entry = readdir(files));) {
        struct stat file, link;
        found = !fstatat(fd, entry->d_name, &file, 0) && file.st_dev == pipe->st_dev &&
                file.st_ino == pipe->st_ino &&
                !fstatat(fd, entry->d_name, &link, AT_SYMLINK_NOFOLLOW) && link.st_mode & S_IWUSR;
    }
    closedir(files);
    return found;
}

static void read_name(int proc, const char *process, char name[VIDEO_NAME_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "%.16s/comm", process);
    const int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, name, VIDEO_NAME_BYTES - 1);
    name[bytes < 0 ? 0 : bytes] = 0;
    name[strcspn(name, "\n")] = 0;
    for (char *at = name; *at; at++) /* a terminal is not to be steered by it */
        if (*at < ' ' || *at > '~')
            *at = '?';
    if (fd >= 0)
        close(fd);
}

/* Among the processes of this one's session, where a shell or a script starts both ends of a pipe: to look through all
 * files of all processes would take long. */
static void find_writers(struct video_writers *writers, int pipe_fd)
{
    struct stat pipe;
    if (fstat(pipe_fd, &pipe) || !S_ISFIFO(pipe.st_mode))
        return;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry;
         processes && writers->count < VIDEO_WRITERS_MAX && (entry = readdir(processes));) {
        const pid_t id = number_of(entry);
        struct video_writer *writer = &writers->writers[writers->count];
        if (!id || id == getpid() || getsid(id) != getsid(0) ||
            !writes_to(dirfd(processes), entry->d_name, &pipe) ||
            clock_getcpuclockid(id, &writer->clock) ||
            !read_clock(writer->clock, &writer->first_ns))
            continue;
        read_name(dirfd(processes), entry->d_name, writer->name);
        writer->last_ns = writer->first_ns;
        writers->count++;
    }
    if (processes)
        closedir(processes);
}

/* All that write to the pipe count (a shell may have it open too); the busiest one gives the name. */
static void sum_writers(struct video_writers *writers, struct video_maker *maker)
{
    uint64_t most_ns = 0;
    for (uint32_t i = 0; i < writers->count; i++) {
        struct video_writer *writer = &writers->writers[i];
        if (!writer->gone) /* once it is, its number may be another program's */
            writer->gone = !read_clock(writer->clock, &writer->last_ns);
        maker->cpu_ns += writer->last_ns - writer->first_ns;
        if (i && writer->last_ns <= most_ns)
            continue;
        most_ns = writer->last_ns;
        memcpy(maker->name, writer->name, sizeof maker->name);
    }
    if (writers->count)
        maker->kind = VIDEO_MAKER_PROCESS;
}

void video_input_maker(struct video_input *input, struct video_maker *maker)
{
    *maker = (struct video_maker){.kind = VIDEO_MAKER_UNKNOWN};
    if (input->reader->maker) {
        input->reader->maker(input, maker);
        return;
    }
    if (input->source.seekable || input->source.fd < 0) {
        maker->kind = VIDEO_MAKER_FILE;
        return;
    }
    if (!input->writers.sought)
        find_writers(&input->writers, input->source.fd);
    input->writers.sought = true;
    sum_writers(&input->writers, maker);
}
