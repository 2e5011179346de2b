/* SPDX-License-Identifier: Apache-2.0 */
#include "energy.h"
#include "lab/refuse.h"
#include "sysfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DOMAINS_MAX = 16, ENTRIES_MAX = 64 };

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

static bool read_whole(const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && end != text && (*end == '\0' || *end == '\n') && *text != '-';
}

/* sysfs writes a new value for each read from the start. */
static bool read_counter(const struct domain *domain, uint64_t *uj)
{
    char text[32];
    ssize_t length = pread(domain->file, text, sizeof text - 1, 0);

    if (length <= 0)
        return false;
    text[length] = '\0';
    return read_whole(text, uj);
}

static struct lab_energy *create(void)
{
    struct lab_energy *energy = calloc(1, sizeof *energy);

    if (energy)
        pthread_mutex_init(&energy->lock, NULL);
    return energy;
}

/* False with errno set if the counter cannot be read. */
static bool add_domain(struct lab_energy *energy, const char *root, const char *entry)
{
    struct domain *domain = &energy->domains[energy->count];
    char text[64];

    if (!sysfs_text(root, text, sizeof text, "%s/max_energy_range_uj", entry) ||
        !read_whole(text, &domain->range_uj))
        domain->range_uj = 0;

    domain->file = sysfs_open(root, "%s/energy_uj", entry);
    if (domain->file < 0)
        return false;
    if (!read_counter(domain, &domain->last_uj)) {
        int error = errno;
        close(domain->file);
        errno = error;
        if (!errno)
            errno = EIO;
        return false;
    }

    energy->count++;
    size_t length = strlen(energy->name);
    snprintf(energy->name + length, sizeof energy->name - length, "%s%s",
             length ? ", " : "RAPL: ", domain->name);
    return true;
}

/* False if the entry is a package whose counter cannot be read. */
static bool add_package(struct lab_energy *energy, const char *root, const char *entry)
{
    struct domain *domain = &energy->domains[energy->count];

    return !sysfs_text(root, domain->name, sizeof domain->name, "%s/name", entry) ||
           strncmp(domain->name, "package", 7) != 0 || add_domain(energy, root, entry);
}

bool lab_energy_open(const char *root, struct lab_energy **out, char *why, size_t why_bytes)
{
    char entries[ENTRIES_MAX][SYSFS_NAME_BYTES];
    int error = 0;

    *out = create();
    if (!*out)
        return lab_refuse(why, why_bytes, "out of memory");

    /* A package is `intel-rapl:N` with the name "package-...", on AMD's CPUs too. Its parts
     * (`intel-rapl:N:M`) and the platform ("psys") would count its energy twice. */
    if (!root)
        root = "/sys/class/powercap";
    size_t count = sysfs_list(root, ".", "intel-rapl:", entries, ENTRIES_MAX);
    for (size_t i = 0; i < count && (*out)->count < DOMAINS_MAX && !error; i++)
        if (!add_package(*out, root, entries[i]))
            error = errno;
    if ((*out)->count > 0 && !error)
        return true;

    if (error)
        snprintf(why, why_bytes, "cannot read the processor's energy counter: %s%s",
                 strerror(error),
                 error == EACCES ? " (on most systems, only root may read it)" : "");
    else
        snprintf(why, why_bytes, "no energy counter: no RAPL package in %.400s", root);
    lab_energy_close(out);
    return false;
}

bool lab_energy_open_domain(const char *root, const char *entry, struct lab_energy **out)
{
    struct lab_energy *energy = *out = create();
    if (!energy)
        return false;

    sysfs_text(root, energy->domains[0].name, sizeof energy->domains[0].name, "%s/name", entry);
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
        else if (domain->range_uj >= domain->last_uj) /* the counter wrapped around to 0 */
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
