/* Compilation ahead of time: a kernel's source for every device, into the cache and into a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "base/sources.h"
#include "engine/engine.h"
#include "host/topology.h"
#include "store/output.h"
#include "misuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether drivers may make a file of this name in a folder of theirs. */
static bool is_allowed(const char *name)
{
    if (*name == '\0' || *name == '/')
        return false;

    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

/* `kind`: "header" or "library". */
static cox_status check_list(const struct cox_source *list, const char *kind,
                             const struct cox__log *log)
{
    for (const struct cox_source *s = list; s && s->name; s++) {
        if (!s->text) {
            cox__log(log, COX_LOG_ERROR, "%s %s has no text", kind, s->name);
            return COX_E_INVALID;
        }

        for (const struct cox_source *other = list; other < s; other++)
            if (strcmp(other->name, s->name) == 0) {
                cox__log(log, COX_LOG_ERROR, "%s %s is listed twice", kind, s->name);
                return COX_E_INVALID;
            }
    }
    return COX_OK;
}

cox_status cox__compile_check(const struct cox_source *headers, const struct cox_source *libraries,
                              const struct cox__log *log)
{
    for (const struct cox_source *h = headers; h && h->name; h++)
        if (!is_allowed(h->name)) {
            cox__log(log, COX_LOG_ERROR,
                     "header '%s': the name is not allowed; allowed: a relative path without '..'",
                     h->name);
            return COX_E_INVALID;
        }

    const cox_status status = check_list(headers, "header", log);
    if (status)
        return status;
    return check_list(libraries, "library", log);
}

/* Compile for all devices, one after the other. Errors: that of the last device, if it compiles on
 * none; COX_E_SYSTEM, COX_E_NOMEM. */
static cox_status compile_all(cox_runtime *runtime, const struct cox__variant *kernel, FILE *file)
{
    struct cox__backend *backend = runtime->backend;
    const uint32_t count = backend->ops->device_count(backend);
    cox_status status = COX_E_UNSUPPORTED;
    uint32_t compiled = 0;

    for (uint32_t d = 0; backend->ops->compile && d < count; d++) {
        struct cox_device_info info;
        backend->ops->device_info(backend, d, &info);

        status = backend->ops->compile(backend, d, kernel, file);
        if (status == COX_E_SYSTEM || status == COX_E_NOMEM)
            return status;
        if (status)
            cox__log(&runtime->log, COX_LOG_WARN, "%s is left out: %s", info.name,
                     cox_status_text(status));
        compiled += status == COX_OK;
    }
    return compiled ? COX_OK : status;
}

/* Compile, with the headers that the source uses. */
static cox_status compile(cox_runtime *runtime, const struct cox_compile_params *params, FILE *file)
{
    const char *options = params->options ? params->options : "";
    struct cox_source *headers;
    if (!cox__sources_copy_used(params->headers, params->libraries, params->source, options,
                                &headers))
        return COX_E_NOMEM;

    const bool has_libraries = cox__sources_count(params->libraries) > 0;
    const struct cox__variant kernel = {.source = params->source,
                                        .options = options,
                                        .headers = headers,
                                        .libraries = has_libraries ? params->libraries : NULL};

    if (runtime->topology)
        cox__topology_enter(runtime->topology);
    const cox_status status = compile_all(runtime, &kernel, file);
    if (runtime->topology)
        cox__topology_leave(runtime->topology);

    free(headers);
    return status;
}

static cox_status cannot_write(const cox_runtime *runtime, const char *path, int error)
{
    cox__log(&runtime->log, COX_LOG_ERROR, "cannot write %s: %s", path, strerror(error));
    return COX_E_SYSTEM;
}

/* Compile into the file `params->output`. An existing file stays if that fails. */
static cox_status compile_to_file(cox_runtime *runtime, const struct cox_compile_params *params)
{
    struct cox__output output;
    if (!cox__output_open(&output, params->output))
        return cannot_write(runtime, params->output, errno);

    errno = 0;
    cox_status status = compile(runtime, params, output.file);
    int error = errno;
    if (!cox__output_close(&output, status == COX_OK) && !status) {
        status = COX_E_SYSTEM;
        error = errno;
    }

    if (status == COX_E_SYSTEM)
        cannot_write(runtime, params->output, error ? error : EIO);
    return status;
}

cox_status cox_compile(cox_runtime *runtime, const struct cox_compile_params *params)
{
    if (!runtime || cox__misuse_null(runtime, params, "cox_compile", "params") ||
        cox__misuse_null(runtime, params->source, "cox_compile", "source") ||
        cox__misuse(runtime, "cox_compile"))
        return COX_E_INVALID;

    cox_status status = cox__compile_check(params->headers, params->libraries, &runtime->log);
    if (status)
        return status;

    if (params->output)
        status = compile_to_file(runtime, params);
    else
        status = compile(runtime, params, NULL);
    if (status == COX_E_NOMEM)
        cox__log(&runtime->log, COX_LOG_ERROR, "no memory to compile a kernel");
    return status;
}
