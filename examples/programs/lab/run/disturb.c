/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "disturb.h"
#include "disturb_child.h"
#include "disturb_quota.h"
#include "disturb_gpu.h"
#include "lab/refuse.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"hog", "gpu-hog", "quota", "delay"};
enum { KINDS = sizeof kind_names / sizeof kind_names[0], NOTED_CPUS_MAX = 16 };

const char *lab_disturb_kind_name(enum lab_disturb_kind kind)
{
    return kind_names[kind];
}

/* --- Parsing ---------------------------------------------------------------------------------- */

/* Read digits only. Returns their end; NULL if there are none or the number is above `most`. */
static const char *read_whole(const char *text, uint64_t most, uint64_t *value)
{
    const char *at = text;
    *value = 0;

    while (*at >= '0' && *at <= '9' && *value <= most)
        *value = 10 * *value + (uint64_t)(*at++ - '0');

    if (at == text || *value > most)
        return NULL;
    return at;
}

/* Read digits and a point; strtod would accept a sign, "inf" and white space too. Returns their
 * end. */
static const char *read_number(const char *text, double *value)
{
    size_t length = strspn(text, "0123456789.");
    char *end;

    *value = strtod(text, &end);
    if (length == 0 || end != text + length)
        return NULL;
    return end;
}

/* 0,2-5 */
static bool read_cpus(const char *text, const char *end, struct lab_disturbance *out)
{
    while (text < end) {
        uint64_t first, last;

        text = read_whole(text, CPU_SETSIZE - 1, &first);
        last = first;
        if (text && *text == '-')
            text = read_whole(text + 1, CPU_SETSIZE - 1, &last);

        if (!text || last < first || last - first >= LAB_HOG_CPUS_MAX - out->cpu_count)
            return false;

        for (uint64_t cpu = first; cpu <= last; cpu++)
            out->cpus[out->cpu_count++] = (uint16_t)cpu;

        if (text < end && (*text++ != ',' || text == end))
            return false;
    }
    return out->cpu_count > 0;
}

static bool read_value(const char *text, const char *end, struct lab_disturbance *out)
{
    uint64_t device;
    switch (out->kind) {
    case LAB_HOG:
        return !text || read_cpus(text, end, out);

    case LAB_GPU_HOG:
        return !text;

    case LAB_QUOTA:
        return text && read_number(text, &out->percent) == end && out->percent >= 1 &&
               out->percent <= 100;

    case LAB_DELAY:
        if (text)
            text = read_whole(text, COX_DEVICES_MAX - 1, &device);
        if (!text || *text != ',' || read_number(text + 1, &out->delay_us) != end)
            return false;
        out->device = (uint32_t)device;
        return out->delay_us >= 1 && out->delay_us <= 1e6;
    }

    return false;
}

bool lab_disturbance_parse(const char *text, struct lab_disturbance *out, char *why,
                           size_t why_bytes)
{
    static const char *const forms[KINDS] = {
        "hog@A:B or hog=CPUS@A:B, CPUS as in 0,2-5", "gpu-hog@A:B",
        "quota=PERCENT@A:B, PERCENT from 1 to 100",
        "delay=DEVICE,MICROSECONDS@A:B, from 1 to 1000000 microseconds"};

    *out = (struct lab_disturbance){.first_frame = 0};
    const char *at = strrchr(text, '@'), *value = strchr(text, '=');

    size_t name = strlen(text);
    if (value)
        name = (size_t)(value++ - text);
    else if (at)
        name = (size_t)(at - text);

    int kind = 0;
    while (kind < KINDS &&
           (strlen(kind_names[kind]) != name || strncmp(text, kind_names[kind], name) != 0))
        kind++;

    if (kind == KINDS)
        return lab_refuse(why, why_bytes,
                          "'%.80s': unknown kind; kinds: hog, gpu-hog, quota, delay", text);
    out->kind = (enum lab_disturb_kind)kind;

    if (strlen(text) >= sizeof out->text)
        return lab_refuse(why, why_bytes, "'%.80s...' is too long", text);
    memcpy(out->text, text, strlen(text) + 1);

    const char *end = NULL;
    if (at)
        end = read_whole(at + 1, INT32_MAX, &out->first_frame);
    if (end && *end == ':')
        end = read_whole(end + 1, INT32_MAX, &out->end_frame);
    else
        end = NULL;

    if (!end || *end || (value && value > at) || !read_value(value, at, out))
        return lab_refuse(why, why_bytes, "'%.80s': must be %s", text, forms[kind]);
    if (out->first_frame >= out->end_frame)
        return lab_refuse(why, why_bytes, "'%.80s': ends before it starts", text);

    return true;
}

bool lab_disturbance_possible(const struct lab_disturbance *disturbance, char *why,
                              size_t why_bytes)
{
    cpu_set_t usable;
    if (disturbance->kind != LAB_HOG || sched_getaffinity(0, sizeof usable, &usable) != 0)
        return true;

    for (uint32_t c = 0; c < disturbance->cpu_count; c++)
        if (!CPU_ISSET(disturbance->cpus[c], &usable))
            return lab_refuse(why, why_bytes, "this process may not use CPU %d",
                              disturbance->cpus[c]);
    return true;
}

/* --- Phases ----------------------------------------------------------------------------------- */

static void describe(const struct lab_disturbance *disturbances, uint32_t count,
                     struct lab_phase *phase)
{
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!(phase->active >> i & 1) || length >= sizeof phase->text)
            continue;

        int name = (int)strcspn(disturbances[i].text, "@");
        length += (size_t)snprintf(phase->text + length, sizeof phase->text - length, "%s%.*s",
                                   length ? " and " : "", name, disturbances[i].text);
    }

    if (!phase->active)
        snprintf(phase->text, sizeof phase->text, "undisturbed");
}

uint32_t lab_phases(const struct lab_disturbance *disturbances, uint32_t count, uint64_t frames,
                    struct lab_phase phases[LAB_PHASES_MAX])
{
    uint32_t made = 0;
    for (uint64_t from = 0, to; from < frames; from = to) {
        struct lab_phase *phase = &phases[made++];
        *phase = (struct lab_phase){.first_frame = from};
        to = frames;

        for (uint32_t i = 0; i < count; i++) {
            const struct lab_disturbance *d = &disturbances[i];
            if (d->first_frame <= from && from < d->end_frame)
                phase->active |= 1u << i;
            if (d->first_frame > from && d->first_frame < to)
                to = d->first_frame;
            if (d->end_frame > from && d->end_frame < to)
                to = d->end_frame;
        }

        phase->end_frame = to;
        describe(disturbances, count, phase);
    }

    return made;
}

/* --- The processor hog's process -------------------------------------------------------------- */

struct hog {
    uint16_t cpus[LAB_HOG_CPUS_MAX];
};

static bool hog_begin(void *memory, uint32_t worker)
{
    const struct hog *hog = memory;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(hog->cpus[worker], &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void hog_work(void *memory)
{
    (void)memory;
    for (volatile int i = 0; i < 2000; i++)
        continue;
}

static const struct lab_child_job hog_job = {
    .memory_bytes = sizeof(struct hog), .begin = hog_begin, .work = hog_work};

/* --- All of them ------------------------------------------------------------------------------ */

struct lab_disturber {
    uint32_t count;
    struct lab_disturbance disturbances[LAB_DISTURBANCES_MAX];
    struct lab_child *children[LAB_DISTURBANCES_MAX]; /* NULL = it has no process */
    char notes[LAB_DISTURBANCES_MAX][240];
    bool ready[LAB_DISTURBANCES_MAX], dropped[LAB_DISTURBANCES_MAX];
    uint32_t active;
    struct lab_quota *quota; /* one group for all quotas */
    pid_t pids[LAB_DISTURBANCES_MAX];
    size_t pid_count;
};

bool lab_disturber_start(const struct lab_disturbance *disturbances, uint32_t count,
                         struct lab_disturber **out, char *why, size_t why_bytes)
{
    struct lab_disturber *disturber = calloc(1, sizeof *disturber);
    *out = disturber;
    if (!disturber)
        return lab_refuse(why, why_bytes, "out of memory");

    for (uint32_t i = 0; i < count; i++) {
        disturber->disturbances[disturber->count++] = disturbances[i];
        const struct lab_child_job *job = NULL;

        if (disturbances[i].kind == LAB_HOG)
            job = &hog_job;
        if (disturbances[i].kind == LAB_GPU_HOG)
            job = &lab_gpu_hog_job;

        if (!job)
            continue;

        disturber->children[i] = lab_child_start(job);
        if (!disturber->children[i]) {
            lab_refuse(why, why_bytes, "%s: cannot start a process: %s", disturbances[i].text,
                       strerror(errno));
            lab_disturber_stop(out);
            return false;
        }

        disturber->pids[disturber->pid_count++] = lab_child_pid(disturber->children[i]);
    }

    return true;
}

/* Choose the CPUs: the given ones, else those of the first CPU device, else the first usable one.
 * Returns the reason for people. */
static const char *choose_cpus(struct lab_disturbance *d, const uint16_t *cpus, uint32_t cpu_count,
                               const cpu_set_t *usable)
{
    if (d->cpu_count)
        return "";
    if (cpu_count) {
        d->cpu_count = (uint32_t)fmin(cpu_count, LAB_HOG_CPUS_MAX);
        memcpy(d->cpus, cpus, d->cpu_count * sizeof *cpus);
        return ", used by the first CPU device";
    }

    for (uint16_t cpu = 0; cpu < CPU_SETSIZE - 1 && d->cpu_count == 0; cpu++)
        if (CPU_ISSET(cpu, usable))
            d->cpus[d->cpu_count++] = cpu;
    return ", because no CPU device has threads bound to cores";
}

static bool prepare_hog(struct lab_disturber *disturber, uint32_t i, const uint16_t *cpus,
                        uint32_t cpu_count, char *why, size_t why_bytes)
{
    struct lab_disturbance *d = &disturber->disturbances[i];
    struct hog *hog = lab_child_memory(disturber->children[i]);
    cpu_set_t usable;

    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return lab_refuse(why, why_bytes, "cannot read which CPUs this process may use: %s",
                          strerror(errno));

    const char *because = choose_cpus(d, cpus, cpu_count, &usable);
    if (!lab_disturbance_possible(d, why, why_bytes))
        return false;

    char *note = disturber->notes[i];
    const size_t room = sizeof disturber->notes[i];
    size_t length = (size_t)snprintf(note, room, "on CPU");
    for (uint32_t c = 0; c < d->cpu_count; c++) {
        hog->cpus[c] = d->cpus[c];
        if (c < NOTED_CPUS_MAX)
            length += (size_t)snprintf(note + length, room - length, "%s %d", c ? "," : "",
                                       d->cpus[c]);
    }
    snprintf(note + length, room - length, "%s%s", d->cpu_count >= NOTED_CPUS_MAX ? " ..." : "",
             because);
    return lab_child_prepare(disturber->children[i], d->cpu_count, why, why_bytes);
}

static bool prepare_gpu_hog(struct lab_disturber *disturber, uint32_t i,
                            const struct cox_device_info *gpu, char *why, size_t why_bytes)
{
    if (!gpu)
        return lab_refuse(why, why_bytes, "no GPU is in use");

    lab_gpu_hog_choose(lab_child_memory(disturber->children[i]), gpu);
    snprintf(disturber->notes[i], sizeof disturber->notes[i], "on %.100s", gpu->name);
    return lab_child_prepare(disturber->children[i], 1, why, why_bytes);
}

static bool prepare_quota(struct lab_disturber *disturber, uint32_t i, char *why, size_t why_bytes)
{
    if (!disturber->quota && !lab_quota_open(NULL, &disturber->quota, why, why_bytes))
        return false;

    snprintf(disturber->notes[i], sizeof disturber->notes[i], "by %.200s",
             lab_quota_group(disturber->quota));
    return true;
}

bool lab_disturber_prepare(struct lab_disturber *disturber, const uint16_t *cpus,
                           uint32_t cpu_count, const struct cox_device_info *gpu, uint32_t *which,
                           char *why, size_t why_bytes)
{
    for (uint32_t i = 0; i < disturber->count; i++) {
        bool good = true;
        *which = i;

        if (disturber->dropped[i] || disturber->ready[i])
            continue;

        if (disturber->disturbances[i].kind == LAB_HOG)
            good = prepare_hog(disturber, i, cpus, cpu_count, why, why_bytes);
        else if (disturber->disturbances[i].kind == LAB_GPU_HOG)
            good = prepare_gpu_hog(disturber, i, gpu, why, why_bytes);
        else if (disturber->disturbances[i].kind == LAB_QUOTA)
            good = prepare_quota(disturber, i, why, why_bytes);

        if (!good)
            return false;
        disturber->ready[i] = true;
    }
    return true;
}

void lab_disturber_drop(struct lab_disturber *disturber, uint32_t which)
{
    disturber->dropped[which] = true;
    lab_child_stop(&disturber->children[which]);

    disturber->pid_count = 0;
    for (uint32_t i = 0; i < disturber->count; i++)
        if (disturber->children[i])
            disturber->pids[disturber->pid_count++] = lab_child_pid(disturber->children[i]);
}

const char *lab_disturber_note(const struct lab_disturber *disturber, uint32_t which)
{
    return disturber->notes[which];
}

/* Set the smallest quota that is on. */
static bool set_quota(struct lab_disturber *disturber, uint32_t active, char *why, size_t why_bytes)
{
    double percent = 100, processors = 0;
    cpu_set_t usable;

    if (!disturber->quota || sched_getaffinity(0, sizeof usable, &usable) != 0)
        return true;
    for (uint32_t i = 0; i < disturber->count; i++) {
        const struct lab_disturbance *d = &disturber->disturbances[i];

        if (d->kind == LAB_QUOTA && active >> i & 1 && !disturber->dropped[i] &&
            d->percent <= percent) {
            percent = d->percent;
            processors = percent / 100 * CPU_COUNT(&usable);
        }
    }

    return lab_quota_set(disturber->quota, processors, why, why_bytes);
}

bool lab_disturber_set(struct lab_disturber *disturber, uint32_t active, char *why,
                       size_t why_bytes)
{
    char reason[200] = "";

    if (active == disturber->active)
        return true;

    for (uint32_t i = 0; i < disturber->count; i++) {
        bool on = active >> i & 1;
        if (disturber->children[i] && on != (disturber->active >> i & 1) &&
            !lab_child_switch(disturber->children[i], on, reason, sizeof reason))
            return lab_refuse(why, why_bytes, "%s: %s", disturber->disturbances[i].text, reason);
    }

    if (!set_quota(disturber, active, reason, sizeof reason))
        return lab_refuse(why, why_bytes, "quota: %s", reason);

    disturber->active = active;
    return true;
}

const pid_t *lab_disturber_children(const struct lab_disturber *disturber, size_t *count)
{
    *count = disturber->pid_count;
    return disturber->pids;
}

void lab_disturber_stop(struct lab_disturber **disturber)
{
    struct lab_disturber *d = *disturber;
    *disturber = NULL;
    if (!d)
        return;

    for (uint32_t i = 0; i < d->count; i++)
        lab_child_stop(&d->children[i]);
    lab_quota_close(&d->quota);
    free(d);
}
