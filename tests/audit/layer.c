/* An OpenCL layer that audits how a program uses OpenCL. control.h has the rules; docs/reference/audit.md says how
 * to use it.
 *
 * Every call passes through this file's table and on to the drivers. The layer knows what the application could
 * know. A command is in flight from its enqueue until the application has seen its end. It can see that:
 *   By a status query, a wait, a blocking call or a callback.
 *   By the end of a later command in the same in-order queue.
 *   By the end of a command that waited for this one.
 *
 * So the findings do not depend on how fast the devices are.
 *
 * This file has the counts, the report, the loader's interface, and the functions that are only counted. The folder
 * layer/ has the other functions that replace those of the driver. layer.h describes them and the locks. `log_lock`
 * guards the texts. It may be taken while `lock` is held, not the reverse.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "layer.h"

#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))

cl_icd_dispatch next;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define X(name) #name,
const char *const call_name[] = {CALLS(X)};
#undef X

/* --- Counts and texts ------------------------------------------------------------------------------------ */

enum { TEXTS_MAX = 100, TEXT_BYTES = 320 };

_Atomic int current_phase = AUDIT_PHASE_SETUP;
static _Atomic uint64_t violation_count[AUDIT_RULES];
static _Atomic uint64_t created_count[AUDIT_TYPES][AUDIT_PHASES];
_Atomic uint64_t live_count[AUDIT_TYPES];
static _Atomic uint64_t failed_calls, call_count[CALL_COUNT];

_Thread_local int callback_depth;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[TEXTS_MAX][TEXT_BYTES]; /* the first text of each kind */
static uint64_t text_times[TEXTS_MAX];
static int text_count;

bool frames_run(void)
{
    int phase = atomic_load(&current_phase);
    return phase == AUDIT_PHASE_ADAPTING || phase == AUDIT_PHASE_STEADY;
}

/* Whether two texts differ only in their numbers. */
static bool same_kind(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

void violate(enum audit_rule rule, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    int at = snprintf(text, TEXT_BYTES, "%s %s: ", audit_phase_words[current_phase], audit_rule_words[rule]);
    va_start(args, format);
    vsnprintf(text + at, TEXT_BYTES - (size_t)at, format, args);
    va_end(args);
    atomic_fetch_add(&violation_count[rule], 1);
    pthread_mutex_lock(&log_lock);
    int i = 0;
    while (i < text_count && !same_kind(texts[i], text))
        i++;
    if (i == text_count && i < TEXTS_MAX)
        memcpy(texts[text_count++], text, sizeof text);
    if (i < TEXTS_MAX)
        text_times[i]++;
    pthread_mutex_unlock(&log_lock);
}

void enter(enum call call)
{
    atomic_fetch_add_explicit(&call_count[call], 1, memory_order_relaxed);
    if (callback_depth > 0)
        violate(AUDIT_RULE_CALL_IN_CALLBACK, "%s", call_name[call]);
}

cl_int answered(cl_int error)
{
    if (error != CL_SUCCESS)
        atomic_fetch_add(&failed_calls, 1);
    return error;
}

void note_created(enum audit_type type, const char *call)
{
    int phase = atomic_load(&current_phase);
    atomic_fetch_add(&created_count[type][phase], 1);
    if (phase == AUDIT_PHASE_STEADY && type != AUDIT_TYPE_EVENT && type != AUDIT_TYPE_MAPPING)
        violate(AUDIT_RULE_CREATED_IN_STEADY, "%s", call);
}

/* --- Functions that are only counted --------------------------------------------------------------------- */

#define PASS(type, name, decl, args)   \
    type CL_API_CALL audit_##name decl \
    {                                  \
        enter(CALL_##name);            \
        return next.name args;         \
    }

/* A query about an object. */
#define ASK(name, object, what) PASS(cl_int, name, (object o, what i, size_t n, void *v, size_t *r), (o, i, n, v, r))

ASK(clGetPlatformInfo, cl_platform_id, cl_platform_info)
ASK(clGetDeviceInfo, cl_device_id, cl_device_info)
ASK(clGetContextInfo, cl_context, cl_context_info)
ASK(clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info)
ASK(clGetMemObjectInfo, cl_mem, cl_mem_info)
ASK(clGetImageInfo, cl_mem, cl_image_info)
ASK(clGetSamplerInfo, cl_sampler, cl_sampler_info)
ASK(clGetProgramInfo, cl_program, cl_program_info)
ASK(clGetKernelInfo, cl_kernel, cl_kernel_info)
ASK(clGetEventProfilingInfo, cl_event, cl_profiling_info)
PASS(cl_int, clGetPlatformIDs, (cl_uint n, cl_platform_id *p, cl_uint *r), (n, p, r))
PASS(cl_int, clGetDeviceIDs, (cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id *d, cl_uint *r),
     (p, t, n, d, r))
PASS(cl_int, clGetSupportedImageFormats,
     (cl_context c, cl_mem_flags f, cl_mem_object_type t, cl_uint n, cl_image_format *v, cl_uint *r),
     (c, f, t, n, v, r))
PASS(cl_int, clGetProgramBuildInfo,
     (cl_program o, cl_device_id d, cl_program_build_info i, size_t n, void *v, size_t *r), (o, d, i, n, v, r))
PASS(cl_int, clGetKernelArgInfo, (cl_kernel o, cl_uint a, cl_kernel_arg_info i, size_t n, void *v, size_t *r),
     (o, a, i, n, v, r))
PASS(cl_int, clGetKernelWorkGroupInfo,
     (cl_kernel o, cl_device_id d, cl_kernel_work_group_info i, size_t n, void *v, size_t *r), (o, d, i, n, v, r))
PASS(void *, clGetExtensionFunctionAddressForPlatform, (cl_platform_id p, const char *name), (p, name))
PASS(cl_int, clSetMemObjectDestructorCallback, (cl_mem m, void(CL_CALLBACK *fn)(cl_mem, void *), void *user),
     (m, fn, user))
PASS(cl_int, clSetUserEventStatus, (cl_event e, cl_int s), (e, s))
PASS(cl_int, clGetDeviceAndHostTimer, (cl_device_id d, cl_ulong *a, cl_ulong *b), (d, a, b))

/* --- Exported functions ---------------------------------------------------------------------------------- */

EXPORT void cox_audit_phase(int phase)
{
    if (phase >= 0 && phase < AUDIT_PHASES)
        atomic_store(&current_phase, phase);
}

EXPORT uint64_t cox_audit_violations(int rule)
{
    return rule >= 0 && rule < AUDIT_RULES ? atomic_load(&violation_count[rule]) : 0;
}

EXPORT uint64_t cox_audit_created(int type, int phase)
{
    if (type < 0 || type >= AUDIT_TYPES || phase < 0 || phase >= AUDIT_PHASES)
        return 0;
    return atomic_load(&created_count[type][phase]);
}

EXPORT uint64_t cox_audit_live(int type)
{
    return type >= 0 && type < AUDIT_TYPES ? atomic_load(&live_count[type]) : 0;
}

EXPORT uint64_t cox_audit_calls(const char *name)
{
    uint64_t sum = 0;
    for (int i = 0; i < CALL_COUNT; i++)
        if (!name || strcmp(name, call_name[i]) == 0)
            sum += atomic_load(&call_count[i]);
    return sum;
}

EXPORT uint64_t cox_audit_finish(void)
{
    uint64_t sum = 0;
    for (int type = 0; type < AUDIT_TYPES; type++)
        sum += atomic_load(&live_count[type]);
    atomic_store(&violation_count[AUDIT_RULE_LEAK], sum);
    return sum;
}

EXPORT int cox_audit_write(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stderr : fopen(path, "w");
    if (!file)
        return -1;
    fprintf(file, "calls %llu\nfailed_calls %llu\n", (unsigned long long)cox_audit_calls(NULL),
            (unsigned long long)atomic_load(&failed_calls));
    for (int i = 0; i < CALL_COUNT; i++)
        if (call_count[i])
            fprintf(file, "call %s %llu\n", call_name[i], (unsigned long long)call_count[i]);
    for (int type = 0; type < AUDIT_TYPES; type++)
        for (int phase = 0; phase < AUDIT_PHASES; phase++)
            if (created_count[type][phase])
                fprintf(file, "created %s %s %llu\n", audit_type_words[type], audit_phase_words[phase],
                        (unsigned long long)created_count[type][phase]);
    for (int type = 0; type < AUDIT_TYPES; type++)
        fprintf(file, "live %s %llu\n", audit_type_words[type], (unsigned long long)live_count[type]);
    uint64_t sum = 0;
    for (int rule = 0; rule < AUDIT_RULES; rule++) {
        fprintf(file, "violation %s %llu\n", audit_rule_words[rule], (unsigned long long)violation_count[rule]);
        sum += violation_count[rule];
    }
    pthread_mutex_lock(&log_lock);
    for (int i = 0; i < text_count; i++)
        fprintf(file, "text %llu times %s\n", (unsigned long long)text_times[i], texts[i]);
    pthread_mutex_unlock(&log_lock);
    fprintf(file, "violations %llu\n", (unsigned long long)sum);
    int failed = ferror(file);
    if (file != stderr)
        failed |= fclose(file);
    return failed ? -1 : 0;
}

/* Runs after the program's own exit handlers, which may still release objects. */
__attribute__((destructor)) static void report_at_exit(void)
{
    const char *path = getenv("COX_AUDIT_REPORT");
    if (!next.clGetPlatformIDs)
        return; /* loaded, but not as a layer */
    cox_audit_finish();
    if (path && *path && cox_audit_write(path) != 0)
        fprintf(stderr, "layer_audit: cannot write %s\n", path);
}

/* --- The loader's interface ------------------------------------------------------------------------------ */

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    return layer_info("coxswain audit", info, bytes, value, got);
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
                                                   const cl_icd_dispatch **table)
{
    static cl_icd_dispatch ours;
    const cl_uint known = sizeof ours / sizeof ours.clGetPlatformIDs;
    if (!target || !entries_ret || !table || entries < known)
        return CL_INVALID_VALUE;
    next = *target;
    ours = *target; /* functions outside the layer go directly to the driver */
#define X(name)    \
    if (next.name) \
        ours.name = audit_##name;
    CALLS(X)
#undef X
    const char *phase = getenv("COX_AUDIT_PHASE");
    for (int i = 0; phase && i < AUDIT_PHASES; i++)
        if (strcmp(phase, audit_phase_words[i]) == 0)
            current_phase = i;
    *table = &ours;
    *entries_ret = known;
    return CL_SUCCESS;
}
