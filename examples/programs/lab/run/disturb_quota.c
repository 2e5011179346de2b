/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disturb_quota.h"
#include "lab/refuse.h"

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
    /* much shorter than the usual 100 ms, so that a frame is slowed, not stopped */
    PERIOD_US = 10000,
    PATH_BYTES = 1024
};

#define GROUP_PREFIX "coxswain-lab-"

struct lab_quota {
    bool unified;           /* version 2 */
    char home[PATH_BYTES];  /* the process's group before */
    char group[PATH_BYTES]; /* the group that was made */
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

    while (strncmp(list, word, length) != 0 || !strchr(",\n", list[length])) {
        list = strchr(list, ',');
        if (!list)
            return false;
        list++;
    }
    return true;
}

/* Find the mount point of a hierarchy: version 2, or version 1 with the controller cpu. */
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

        if (unified)
            found = strcmp(type, "cgroup2") == 0;
        else
            found = strcmp(type, "cgroup") == 0 && listed(options, "cpu");
        if (found) {
            snprintf(mount, PATH_BYTES / 2, "%s%s", root, at);
            snprintf(below, PATH_BYTES / 2, "%s", top);
        }
    }

    if (file)
        fclose(file);
    return found;
}

/* Find the process's group in that hierarchy. */
static bool find_home(const char *root, bool unified, char *home)
{
    char path[PATH_BYTES], line[4096], mount[PATH_BYTES / 2], below[PATH_BYTES / 2];

    if (!root)
        root = "";
    if (!find_mount(root, unified, mount, below))
        return false;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = NULL;

        if (controllers)
            group = strchr(controllers + 1, ':');

        if (!group)
            continue;

        *group++ = '\0';
        controllers++;
        found = unified ? !*controllers : listed(controllers, "cpu");
        if (!found)
            continue;

        /* A container may show only the hierarchy below `below`. */
        size_t hidden = strlen(below);
        if (strcmp(below, "/") == 0 || strncmp(group, below, hidden) != 0)
            hidden = 0;
        group += hidden;
        snprintf(home, PATH_BYTES, "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
    }

    if (file)
        fclose(file);
    return found;
}

/* Remove the groups of killed runs. */
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
        us = 1000; /* the minimum of the system */

    if (quota->unified) {
        if (us > 0)
            snprintf(text, sizeof text, "%lld %d", us, PERIOD_US);
        else
            snprintf(text, sizeof text, "max %d", PERIOD_US);
        return write_text(quota->group, "cpu.max", text);
    }

    if (us <= 0)
        us = -1; /* no quota */
    snprintf(text, sizeof text, "%lld", us);
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
        if (!find_home(root, version == 2, home))
            continue;

        remove_left_over(home);

        char *slash = strrchr(home, '/');
        if (slash) {
            *slash = '\0';
            remove_left_over(home);
        }
    }
}

bool lab_quota_open(const char *root, struct lab_quota **out, char *why, size_t why_bytes)
{
    struct lab_quota *quota = calloc(1, sizeof *quota);
    char reason[160] = "no control groups are mounted";

    *out = NULL;
    if (!quota)
        return lab_refuse(why, why_bytes, "out of memory");

    for (int version = 2; version >= 1; version--) {
        quota->unified = version == 2;
        if (!find_home(root, quota->unified, quota->home))
            continue;
        char parent[PATH_BYTES];
        snprintf(parent, sizeof parent, "%s", quota->home);
        char *slash = strrchr(parent, '/');
        bool good = open_below(quota, quota->home);
        int error = errno;

        if (!good && slash) {
            *slash = '\0';
            good = open_below(quota, parent);
        }
        if (good) {
            *out = quota;
            return true;
        }

        const char *cause = strerror(error);
        if (error == ENOENT)
            cause = "the cpu controller is not enabled for control groups here";
        snprintf(reason, sizeof reason, "version %d: %s", version, cause);
    }

    free(quota);
    return lab_refuse(why, why_bytes, "cannot create a control group with a quota here (%s)",
                      reason);
}

const char *lab_quota_group(const struct lab_quota *quota)
{
    return quota->group;
}

bool lab_quota_set(struct lab_quota *quota, double processors, char *why, size_t why_bytes)
{
    return set_limit(quota, processors) ||
           lab_refuse(why, why_bytes, "%.200s: %s", quota->group, strerror(errno));
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
