/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "energy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DOMAINS_MAX = 16 };

struct domain {
    int file; /* its counter */
    uint64_t range_uj, last_uj;
    char name[32];
};

struct lab_energy {
    pthread_mutex_t lock;
    uint32_t count;
    struct domain domains[DOMAINS_MAX];
    double total_uj;
    char name[128];
};

/* The first line of a small file. */
static bool read_line(const char *folder, const char *entry, const char *name, char *text,
                      size_t bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%.500s/%.255s/%s", folder, entry, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool good = fgets(text, (int)bytes, file) != NULL;
    int error = errno;
    fclose(file);
    errno = error;
    text[good ? strcspn(text, "\n") : 0] = '\0';
    return good;
}

static bool read_whole(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && end != text && (*end == '\0' || *end == '\n') && *text != '-';
}

/* sysfs gives a new value to each read from the start. */
static bool read_counter(const struct domain *domain, uint64_t *uj)
{
    char text[32];
    ssize_t length = pread(domain->file, text, sizeof text - 1, 0);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return read_whole(text, uj);
}

/* A package is `intel-rapl:N` with the name "package-...", on AMD's processors too. Its parts (`intel-rapl:N:M`) are in
 * it, the platform ("psys") has it in itself, and `intel-rapl-mmio:N` is the same counter by another way. */
static bool is_candidate(const char *entry)
{
    return strncmp(entry, "intel-rapl:", 11) == 0 && !strchr(entry + 11, ':');
}

/* False with errno set if the counter cannot be read. */
static bool add_domain(struct lab_energy *energy, const char *root, const char *entry)
{
    struct domain *domain = &energy->domains[energy->count];
    char text[64], path[1024];
    if (!read_line(root, entry, "max_energy_range_uj", text, sizeof text) ||
        !read_whole(text, &domain->range_uj))
        domain->range_uj = 0;
    snprintf(path, sizeof path, "%.500s/%.255s/energy_uj", root, entry);
    domain->file = open(path, O_RDONLY | O_CLOEXEC);
    if (domain->file < 0)
        return false;
    if (!read_counter(domain, &domain->last_uj)) {
        int error = errno;
        close(domain->file);
        errno = error ? error : EIO;
        return false;
    }
    energy->count++;
    size_t length = strlen(energy->name);
    snprintf(energy->name + length, sizeof energy->name - length, "%s%s",
             length ? ", " : "RAPL: ", domain->name);
    return true;
}

/* False if it is a package whose counter cannot be read. */
static bool add_package(struct lab_energy *energy, const char *root, const char *entry)
{
    struct domain *domain = &energy->domains[energy->count];
    return !read_line(root, entry, "name", domain->name, sizeof domain->name) ||
           strncmp(domain->name, "package", 7) != 0 || add_domain(energy, root, entry);
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

bool lab_energy_open(const char *root, struct lab_energy **out, char *why, size_t why_bytes)
{
    struct dirent **entries = NULL;
    struct lab_energy *energy = calloc(1, sizeof *energy);
    *out = NULL;
    if (!energy) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    pthread_mutex_init(&energy->lock, NULL);
    root = root ? root : "/sys/class/powercap";
    int count = scandir(root, &entries, NULL, by_name), error = 0;
    for (int i = 0; i < count; i++) {
        if (is_candidate(entries[i]->d_name) && energy->count < DOMAINS_MAX && !error)
            error = add_package(energy, root, entries[i]->d_name) ? 0 : errno;
        free(entries[i]);
    }
    free(entries);
    if (energy->count > 0 && !error) {
        *out = energy;
        return true;
    }
    if (error)
        snprintf(why, why_bytes, "the processor's energy counter cannot be read: %s%s",
                 strerror(error), error == EACCES ? " (only root may, on most systems)" : "");
    else
        snprintf(why, why_bytes,
                 "this machine lets no energy counter be read: there is no RAPL package in %.400s",
                 root);
    lab_energy_close(&energy);
    return false;
}

bool lab_energy_open_domain(const char *root, const char *entry, struct lab_energy **out)
{
    struct lab_energy *energy = calloc(1, sizeof *energy);
    *out = energy;
    if (!energy)
        return false;
    pthread_mutex_init(&energy->lock, NULL);
    read_line(root, entry, "name", energy->domains[0].name, sizeof energy->domains[0].name);
    if (add_domain(energy, root, entry))
        return true;
    int error = errno;
    lab_energy_close(out);
    errno = error;
    return false;
}

void lab_energy_close(struct lab_energy **energy)
{
    struct lab_energy *e = *energy;
    *energy = NULL;
    if (!e)
        return;
    for (uint32_t i = 0; i < e->count; i++)
        close(e->domains[i].file);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

double lab_energy_joules(void *user)
{
    struct lab_energy *energy = user;
    bool good = true;
    pthread_mutex_lock(&energy->lock);
    for (uint32_t i = 0; i < energy->count; i++) {
        struct domain *domain = &energy->domains[i];
        uint64_t now;
        if (!read_counter(domain, &now)) {
            good = false;
            continue;
        }
        if (now >= domain->last_uj)
            energy->total_uj += (double)(now - domain->last_uj);
        else if (domain->range_uj >= domain->last_uj) /* it began again from 0 */
            energy->total_uj += (double)(domain->range_uj - domain->last_uj + now);
        domain->last_uj = now;
    }
    double joules = good ? energy->total_uj / 1e6 : -1;
    pthread_mutex_unlock(&energy->lock);
    return joules;
}

const char *lab_energy_name(const struct lab_energy *energy)
{
    return energy->name;
}
