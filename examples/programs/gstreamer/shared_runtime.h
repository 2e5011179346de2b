/* The library's runtime, one for all elements of the process with the same devices.
 *
 * It is created for the first element that needs it, which takes 0.1 to 2 s, and lives until the
 * last reference is dropped. Elements hold one, and so does the allocator of their buffers' memory.
 * Thread-safety: every function is safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_SHARED_RUNTIME_H
#define GST_COX_SHARED_RUNTIME_H

#include <coxswain/coxswain.h>
#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(gst_cox_debug);

struct shared_runtime;

/* A reference to the runtime of these devices (as in cox_runtime_params; NULL = all) and this
 * folder (NULL = nothing is kept). NULL on failure: *why says why in a sentence; the caller owns
 * it. Blocks while a runtime is created. */
struct shared_runtime *shared_runtime_get(const char *devices, const char *cache_dir, char **why);

struct shared_runtime *shared_runtime_ref(struct shared_runtime *shared);

/* Accepts NULL. The last call blocks until the runtime has ended. */
void shared_runtime_unref(struct shared_runtime *shared);

cox_runtime *shared_runtime_of(const struct shared_runtime *shared);

/* The newest warning or error of its log; "" if the log has neither. The caller owns it. */
char *shared_runtime_last_line(struct shared_runtime *shared);

#endif
