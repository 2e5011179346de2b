/* A library to preload: each call in calls.h that our code makes passes through here and may fail. See sites.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* clang 14 crashes if a fortified header and our definition both have the name `fprintf`. */
#include "calls.h"
#include "sites.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g
#define ARGUMENTS           \
    (long[7])               \
    {                       \
        a, b, c, d, e, f, g \
    }

enum failure { ZERO, MINUS, CODE, CLOSED };
enum { NONE = -1, STDOUT = -2 };
typedef long any_call(PARAMETERS);

struct call {
    const char *name;
    enum failure failure;
    int code, stream;
    any_call *real;
};

static void *find(const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static void *(*real)(void *, const char *);
    for (unsigned i = 0; i < 3 && !real; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&real, &found, sizeof found);
    }
    return real(RTLD_NEXT, name);
}

/* NULL if the call has none; fflush(NULL) has none either. */
static FILE *stream_of(const struct call *call, const long *arguments)
{
    if (call->stream == STDOUT)
        return stdout;
    return call->stream == NONE ? NULL : (FILE *)arguments[call->stream];
}

static void mark_error(FILE *stream)
{
    if (stream)
        stream->_flags |= 0x20; /* glibc's mark for ferror */
}

static long fail(const struct call *call, const long *arguments)
{
    if (call->failure == CLOSED)
        call->real(arguments[0], 0, 0, 0, 0, 0, 0);
    if (stream_of(call, arguments))
        mark_error(stream_of(call, arguments));
    errno = call->code;
    switch (call->failure) {
    case ZERO:
        return 0;
    case CODE:
        return call->code;
    default:
        return -1;
    }
}

/* Half of what a write would write. */
static void write_half(const struct call *call, const long *arguments)
{
    if (!strcmp(call->name, "writev"))
        call->real(arguments[0], arguments[1], (arguments[2] + 1) / 2, 0, 0, 0, 0);
    else if (strstr(call->name, "write") && !stream_of(call, arguments))
        call->real(arguments[0], arguments[1], arguments[2] / 2, arguments[3], 0, 0, 0);
    else if (stream_of(call, arguments))
        fflush(stream_of(call, arguments));
}

/* Messages must come, so standard error never fails. */
static bool is_message(const struct call *call, const long *arguments)
{
    if (stream_of(call, arguments))
        return stream_of(call, arguments) == stderr;
    return !strcmp(call->name, "write") && arguments[0] == 2;
}

static long pass(struct call *call, void *caller, const long *x)
{
    if (!call->real) {
        void *found = find(call->name);
        memcpy(&call->real, &found, sizeof found);
    }
    const enum strike strike = is_message(call, x) ? STRIKE_NONE : site_pass(call->name, caller);

    if (strike == STRIKE_FAIL)
        return fail(call, x);
    if (strike == STRIKE_HALF) {
        write_half(call, x);
        site_kill();
    }

    const long result = call->real(x[0], x[1], x[2], x[3], x[4], x[5], x[6]);
    if (strike == STRIKE_AFTER)
        site_kill();
    return result;
}

#define HOOK_FUNCTION(name, failure, code, stream)                      \
    {                                                                   \
        static struct call call = {#name, failure, code, stream, NULL}; \
        return pass(&call, __builtin_return_address(0), ARGUMENTS);     \
    }
/* The C name differs, since the compiler knows the types of the real functions. */
#define HOOK(name, failure, code, stream)               \
    EXPORT long hook_##name(PARAMETERS) __asm__(#name); \
    EXPORT long hook_##name(PARAMETERS) HOOK_FUNCTION(name, failure, code, stream)

MEMORY_CALLS(HOOK)
OPEN_CALLS(HOOK)
READ_CALLS(HOOK)
WRITE_CALLS(HOOK)
NAME_CALLS(HOOK)
PROCESS_CALLS(HOOK)

/* --- libav ------------------------------------------------------------------------------------------------------- */
#define LIBAV_CALL(name, failure, code, stream)                            \
    static struct call call_##name = {#name, failure, code, stream, NULL}; \
    static long hook_##name(PARAMETERS)                                    \
    {                                                                      \
        return pass(&call_##name, __builtin_return_address(0), ARGUMENTS); \
    }
LIBAV_POINTERS(LIBAV_CALL)
LIBAV_STATUSES(LIBAV_CALL)

#define LIBAV_ROW(name, failure, code, stream) {&call_##name, hook_##name},
static const struct libav_row {
    struct call *call;
    any_call *hook;
} libav_rows[] = {LIBAV_POINTERS(LIBAV_ROW) LIBAV_STATUSES(LIBAV_ROW)};

EXPORT void *hook_dlsym(void *handle, const char *name) __asm__("dlsym");
EXPORT void *hook_dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real) {
        void *found = find("dlsym");
        memcpy(&real, &found, sizeof found);
    }
    void *found = real(handle, name);
    if (!found || !site_is_ours(__builtin_return_address(0)))
        return found;

    for (unsigned i = 0; i < sizeof libav_rows / sizeof *libav_rows; i++) {
        if (strcmp(libav_rows[i].call->name, name) != 0)
            continue;
        memcpy(&libav_rows[i].call->real, &found, sizeof found);
        memcpy(&found, &libav_rows[i].hook, sizeof found);
        break;
    }
    return found;
}

/* --- Variadic calls ---------------------------------------------------------------------------------------------- */
static bool strikes(const char *call, void *caller, FILE *stream)
{
    if (stream == stderr || site_pass(call, caller) != STRIKE_FAIL)
        return false;
    mark_error(stream);
    errno = stream ? ENOSPC : ENOMEM;
    return true;
}

#define HOOK_PRINT(name, stream, real, ...)                      \
    {                                                            \
        if (strikes(#name, __builtin_return_address(0), stream)) \
            return -1;                                           \
        va_list list;                                            \
        va_start(list, format);                                  \
        const int result = real(__VA_ARGS__, format, list);      \
        va_end(list);                                            \
        return result;                                           \
    }

#define UNUSED __attribute__((unused))
/* The compiler would check the parameters of the real names. */
#define HOOK_VARIADIC(name, stream, real, first, ...)                            \
    EXPORT int hook_##name(__VA_ARGS__, const char *format, ...) __asm__(#name); \
    EXPORT int hook_##name(__VA_ARGS__, const char *format, ...) HOOK_PRINT(name, stream, real, first)

HOOK_VARIADIC(fprintf, file, vfprintf, file, FILE *file)
HOOK_VARIADIC(__fprintf_chk, file, vfprintf, file, FILE *file, UNUSED int flag)
HOOK_VARIADIC(__printf_chk, stdout, vfprintf, stdout, UNUSED int flag)
HOOK_VARIADIC(asprintf, NULL, vasprintf, text, char **text)
HOOK_VARIADIC(__asprintf_chk, NULL, vasprintf, text, char **text, UNUSED int flag)
