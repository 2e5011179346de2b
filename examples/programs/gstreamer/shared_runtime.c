/* SPDX-License-Identifier: Apache-2.0 */
#include "shared_runtime.h"

GST_DEBUG_CATEGORY(gst_cox_debug); /* plugin.c initialises it */

struct shared_runtime {
    guint references; /* under `lock`, as is the list */
    char *devices;
    char *cache_dir;
    cox_runtime *runtime;
    GMutex line_lock;
    char line[512];
};

static GMutex lock;
static GList *runtimes;

/* A cox_log_fn. */
static void take_line(void *user, enum cox_log_level level, const char *line)
{
    static const GstDebugLevel levels[] = {[COX_LOG_ERROR] = GST_LEVEL_ERROR,
                                           [COX_LOG_WARN] = GST_LEVEL_WARNING,
                                           [COX_LOG_INFO] = GST_LEVEL_INFO,
                                           [COX_LOG_DEBUG] = GST_LEVEL_DEBUG};
    struct shared_runtime *shared = user;

    GST_CAT_LEVEL_LOG(gst_cox_debug, levels[level], NULL, "%s", line);
    if (level > COX_LOG_WARN)
        return;
    g_mutex_lock(&shared->line_lock);
    g_strlcpy(shared->line, line, sizeof shared->line);
    g_mutex_unlock(&shared->line_lock);
}

static void free_shared(struct shared_runtime *shared)
{
    cox_runtime_destroy(&shared->runtime);
    g_mutex_clear(&shared->line_lock);
    g_free(shared->devices);
    g_free(shared->cache_dir);
    g_free(shared);
}

static struct shared_runtime *make(const char *devices, const char *cache_dir, char **why)
{
    struct shared_runtime *shared = g_new0(struct shared_runtime, 1);

    shared->references = 1;
    shared->devices = g_strdup(devices);
    shared->cache_dir = g_strdup(cache_dir);
    g_mutex_init(&shared->line_lock);
    const bool all = gst_debug_category_get_threshold(gst_cox_debug) >= GST_LEVEL_DEBUG;
    const cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                              .cache_dir = cache_dir,
                                                              .log = take_line,
                                                              .log_user = shared,
                                                              .log_level = all ? COX_LOG_DEBUG
                                                                               : COX_LOG_INFO},
                           &shared->runtime);
    if (status == COX_OK)
        return shared;

    *why = g_strdup_printf("%s%s%s", cox_status_text(status), shared->line[0] ? ": " : "",
                           shared->line);
    free_shared(shared);
    return NULL;
}

struct shared_runtime *shared_runtime_get(const char *devices, const char *cache_dir, char **why)
{
    struct shared_runtime *found = NULL;

    g_mutex_lock(&lock);
    for (GList *at = runtimes; at && !found; at = at->next) {
        struct shared_runtime *shared = at->data;
        if (!g_strcmp0(shared->devices, devices) && !g_strcmp0(shared->cache_dir, cache_dir))
            found = shared;
    }
    if (found) {
        found->references++;
    } else {
        found = make(devices, cache_dir, why);
        if (found)
            runtimes = g_list_prepend(runtimes, found);
    }
    g_mutex_unlock(&lock);
    return found;
}

struct shared_runtime *shared_runtime_ref(struct shared_runtime *shared)
{
    g_mutex_lock(&lock);
    shared->references++;
    g_mutex_unlock(&lock);
    return shared;
}

void shared_runtime_unref(struct shared_runtime *shared)
{
    if (!shared)
        return;
    g_mutex_lock(&lock);
    const bool last = !--shared->references;

    if (last)
        runtimes = g_list_remove(runtimes, shared);
    g_mutex_unlock(&lock);
    if (last)
        free_shared(shared);
}

cox_runtime *shared_runtime_of(const struct shared_runtime *shared)
{
    return shared->runtime;
}

char *shared_runtime_last_line(struct shared_runtime *shared)
{
    g_mutex_lock(&shared->line_lock);
    char *line = g_strdup(shared->line);
    g_mutex_unlock(&shared->line_lock);
    return line;
}
