/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disturb_quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PERIOD_US = 10000,
    PATH_BYTES = 1024
}; /* short against the usual 100 ms: a frame is to feel a share, not a stop */

#define GROUP_PREFIX "coxswain-lab-"

struct lab_quota {
    bool unified;           /* version 2 */
    char home[PATH_BYTES];  /* the process's group when we came */
    char group[PATH_BYTES]; /* the one that we made */
};

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = (ssize_t)strlen(text), wrote = write(file, text, (size_t)length);
    int error = wrote < 0 ? errno : 0;
    close(file);
    errno = error;
    return wrote == length;
}

static bool enter(const char *folder)
{
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    return write_text(folder, "cgroup.procs", pid);
}

/* Whether a word is in a list with commas. */
static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 &&
            (at[length] == ',' || !at[length] || at[length] == '\n'))
            return true;
    return false;
}

/* Where a hierarchy is mounted: version 2, or version 1 with the controller cpu. */
static bool find_mount(const char *root, bool unified, char *mount, char *below)
{
    char path[PATH_BYTES], line[4096];
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        /* ID parent device ROOT MOUNTPOINT options ... - TYPE source SUPEROPTIONS */
        char at[512], top[512], type[32], options[512] = "";
        char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*s %*s %*s %511s %511s", top, at) != 2 ||
            sscanf(dash, " - %31s %*s %511s", type, options) < 1)
            continue;
        found = unified ? strcmp(type, "cgroup2") == 0
                        : strcmp(type, "cgroup") == 0 && listed(options, "cpu");
        if (found) {
            snprintf(mount, PATH_BYTES / 2, "%s%s", root, at);
            snprintf(below, PATH_BYTES / 2, "%s", top);
        }
    }
    if (file)
        fclose(file);
    return found;
}

/* The process's group in that hierarchy. */
static bool find_home(const char *root, bool unified, char *home)
{
    char path[PATH_BYTES], line[4096], mount[PATH_BYTES / 2], below[PATH_BYTES / 2];
    if (!find_mount(root, unified, mount, below))
        return false;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        found = unified ? !*controllers : listed(controllers, "cpu");
        if (!found)
            continue;
        size_t shown = strcmp(below, "/") != 0 && strncmp(group, below, strlen(below)) == 0
                           ? strlen(below)
                           : 0;
        snprintf(home, PATH_BYTES, "%s%s", mount,
                 strcmp(group + shown, "/") == 0 ? "" : group + shown);
    }
    if (file)
        fclose(file);
    return found;
}

/* Groups of runs that were killed. */
static void remove_left_over(const char *parent)
{
    DIR *folder = opendir(parent);
    char path[PATH_BYTES + 300];
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) != 0)
            continue;
        int pid = atoi(entry->d_name + strlen(GROUP_PREFIX));
        snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
            rmdir(path);
    }
    if (folder)
        closedir(folder);
}

static bool set_limit(const struct lab_quota *quota, double processors)
{
    char text[64];
    long long us = (long long)(processors * PERIOD_US + 0.5);
    if (us > 0 && us < 1000)
        us = 1000; /* the least that the system takes */
    if (quota->unified) {
        if (us > 0)
            snprintf(text, sizeof text, "%lld %d", us, PERIOD_US);
        else
            snprintf(text, sizeof text, "max %d", PERIOD_US);
        return write_text(quota->group, "cpu.max", text);
    }
    snprintf(text, sizeof text, "%lld", us > 0 ? us : -1);
    return write_text(quota->group, "cpu.cfs_quota_us", text);
}

static bool open_below(struct lab_quota *quota, const char *parent)
{
    remove_left_over(parent);
    snprintf(quota->group, sizeof quota->group, "%.900s/" GROUP_PREFIX "%d", parent, (int)getpid());
    if (mkdir(quota->group, 0755) != 0)
        return false;
    char period[32];
    snprintf(period, sizeof period, "%d", PERIOD_US);
    if ((quota->unified || write_text(quota->group, "cpu.cfs_period_us", period)) &&
        set_limit(quota, 0) && enter(quota->group))
        return true;
    int error = errno;
    rmdir(quota->group);
    errno = error;
    return false;
}

void lab_quota_tidy(const char *root)
{
    for (int version = 2; version >= 1; version--) {
        char home[PATH_BYTES];
        if (!find_home(root ? root : "", version == 2, home))
            continue;
        remove_left_over(home);
        char *slash = strrchr(home, '/');
        if (slash)
            *slash = '\0';
        if (slash)
            remove_left_over(home);
    }
}

bool lab_quota_open(const char *root, struct lab_quota **out, char *why, size_t why_bytes)
{
    struct lab_quota *quota = calloc(1, sizeof *quota);
    char reason[160] = "there is no control group hierarchy";
    *out = NULL;
    if (!quota) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    for (int version = 2; version >= 1; version--) {
        quota->unified = version == 2;
        if (!find_home(root ? root : "", quota->unified, quota->home))
            continue;
        char parent[PATH_BYTES];
        snprintf(parent, sizeof parent, "%s", quota->home);
        char *slash = strrchr(parent, '/');
        if (open_below(quota, quota->home)) {
            *out = quota;
            return true;
        }
        int error = errno;
        if (slash)
            *slash = '\0';
        if (slash && open_below(quota, parent)) {
            *out = quota;
            return true;
        }
        snprintf(reason, sizeof reason, "version %d: %s", version,
                 error == ENOENT ? "the controller cpu is not given to groups here"
                                 : strerror(error));
    }
    snprintf(why, why_bytes, "no control group with a quota can be made here (%s)", reason);
    free(quota);
    return false;
}

const char *lab_quota_group(const struct lab_quota *quota)
{
    return quota->group;
}

bool lab_quota_set(struct lab_quota *quota, double processors, char *why, size_t why_bytes)
{
    if (set_limit(quota, processors))
        return true;
    snprintf(why, why_bytes, "%.200s: %s", quota->group, strerror(errno));
    return false;
}

void lab_quota_close(struct lab_quota **quota)
{
    struct lab_quota *q = *quota;
    *quota = NULL;
    if (!q)
        return;
    set_limit(q, 0);
    if (enter(q->home))
        rmdir(q->group);
    free(q);
}
