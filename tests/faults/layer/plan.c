/* The current plan: which of its lines affect a call, and their counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

#include <stdio.h>
#include <string.h>

/* Plans are never freed: commands in flight and callbacks refer to their lines. */
struct active {
    struct active *older;
    uint32_t line_count;
    bool vanishing;
    uint64_t begin_ns;
    struct line *lines;
};
static struct active *active;

static bool line_is_about(const struct fault_line *line, const struct device *device)
{
    switch (line->device_kind) {
    case FAULT_DEVICE_ANY:
        return true;
    case FAULT_DEVICE_INDEX:
        return device->number == line->device;
    case FAULT_DEVICE_SUB:
        return device->number == line->device && device->sub >= 0 && (uint32_t)device->sub == line->sub;
    case FAULT_DEVICE_CPU:
        return device->type & CL_DEVICE_TYPE_CPU;
    case FAULT_DEVICE_GPU:
        return device->type & CL_DEVICE_TYPE_GPU;
    case FAULT_DEVICE_ACCELERATOR:
        return device->type & CL_DEVICE_TYPE_ACCELERATOR;
    case FAULT_DEVICE_NAME:
        return strstr(device->name, line->device_name);
    }
    return false;
}

/* Under the lock. */
static void learn(struct active *plan, uint32_t d)
{
    for (uint32_t i = 0; i < plan->line_count; i++)
        if (line_is_about(&plan->lines[i].plan, &devices[d]))
            plan->lines[i].devices |= bit(d);
}

void plans_learn(uint32_t device)
{
    for (struct active *a = active; a; a = a->older)
        learn(a, device);
}

bool may_vanish(void)
{
    pthread_mutex_lock(&lock);
    bool may = active && active->vanishing;
    pthread_mutex_unlock(&lock);
    return may;
}

cl_int arrive(int call, uint64_t set, const struct context *context, bool gives_event, struct faults *faults)
{
    *faults = (struct faults){{NULL}};
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; active && i < active->line_count; i++) {
        struct line *line = &active->lines[i];
        if (!fault_line_names(&line->plan, call, gives_event) ||
            (line->plan.device_kind != FAULT_DEVICE_ANY && !(line->devices & set)) ||
            (line->plan.after_ns && now_ns() - active->begin_ns < line->plan.after_ns))
            continue;
        line->matched++;
        if (!fault_line_strikes(&line->plan, line->matched, line->chosen))
            continue;
        line->chosen++;
        if (line->plan.kind == FAULT_KIND_VANISH) {
            vanish(line->plan.device_kind == FAULT_DEVICE_ANY ? ~UINT64_C(0) : line->devices, &line->plan);
            struck(line);
        } else if (!faults->by[line->plan.kind])
            faults->by[line->plan.kind] = line;
    }
    cl_int code = gone_code(call, set, context);
    pthread_mutex_unlock(&lock);
    if (faults->by[FAULT_KIND_HANG]) {
        struck(faults->by[FAULT_KIND_HANG]);
        sleep_ns(faults->by[FAULT_KIND_HANG]->plan.time_ns);
    }
    if (code == CL_SUCCESS && faults->by[FAULT_KIND_ERROR]) {
        struck(faults->by[FAULT_KIND_ERROR]);
        code = faults->by[FAULT_KIND_ERROR]->plan.code;
    }
    return code;
}

cl_int arrive_on(int call, uint64_t set, const struct context *context)
{
    struct faults faults;
    return arrive(call, set, context, false, &faults);
}

cl_int arrive_at(int call, const void *handle)
{
    uint64_t set = 0;
    struct context *context = NULL;
    pthread_mutex_lock(&lock);
    const struct object *object = find_any(handle);
    if (object) {
        set = object->devices;
        context = object->context;
        if (context)
            context->refs++;
    }
    pthread_mutex_unlock(&lock);
    cl_int code = arrive_on(call, set, context);
    if (context) {
        pthread_mutex_lock(&lock);
        context_put(context);
        pthread_mutex_unlock(&lock);
    }
    return code;
}

FAULT_EXPORT int cox_fault_load(const char *text, char *why, size_t why_bytes)
{
    struct fault_plan *plan = fault_plan_parse(text, strlen(text), "plan", why, why_bytes);
    if (!plan)
        return -1;
    struct active *fresh = must_alloc(1, sizeof *fresh);
    *fresh = (struct active){.line_count = plan->line_count,
                             .begin_ns = now_ns(),
                             .lines = must_alloc(plan->line_count, sizeof *fresh->lines)};
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fresh->lines[i].plan = plan->lines[i];
        fresh->vanishing |= plan->lines[i].kind == FAULT_KIND_VANISH;
    }
    fault_plan_free(&plan);
    pthread_mutex_lock(&lock);
    for (uint32_t d = 0; d < device_count; d++) {
        devices[d].gone = false;
        learn(fresh, d);
    }
    fresh->older = active;
    active = fresh;
    pthread_mutex_unlock(&lock);
    return 0;
}

FAULT_EXPORT uint64_t cox_fault_count(unsigned line, int what)
{
    uint64_t count = 0;
    pthread_mutex_lock(&lock);
    if (active && line < active->line_count) {
        const struct line *of = &active->lines[line];
        count = what == 0 ? of->matched : what == 1 ? of->chosen : atomic_load(&of->struck);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

FAULT_EXPORT int cox_fault_write(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stderr : fopen(path, "w");
    if (!file)
        return -1;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; active && i < active->line_count; i++) {
        const struct line *line = &active->lines[i];
        fprintf(file, "line %u matched %llu chosen %llu struck %llu: %s\n", (unsigned)line->plan.number,
                (unsigned long long)line->matched, (unsigned long long)line->chosen,
                (unsigned long long)atomic_load(&line->struck), line->plan.text);
    }
    pthread_mutex_unlock(&lock);
    int failed = ferror(file);
    if (file != stderr)
        failed |= fclose(file);
    return failed ? -1 : 0;
}
