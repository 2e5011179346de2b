/* The library's runtime, one for all elements of the process that want the same devices.
 *
 * It is made for the first element that needs it, which takes 0.1 to 2 s, and lives until the last reference to it is
 * given up: elements have one, and so has the allocator that their buffers' memory comes from.
 * Thread-safety: every function here is safe from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_SHARED_RUNTIME_H
#define GST_COX_SHARED_RUNTIME_H

#include <coxswain/coxswain.h>
#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(gst_cox_debug);

struct shared_runtime;

/* A reference to the runtime of these devices (as in cox_runtime_params; NULL = all) and this folder (NULL = nothing is
 * kept). NULL if there is none: *why, which is the caller's, says so in a sentence. Blocks while one is made. */
struct shared_runtime *shared_runtime_get(const char *devices, const char *cache_dir, char **why);

struct shared_runtime *shared_runtime_ref(struct shared_runtime *shared);

/* NULL is accepted. The last one blocks until the runtime has ended. */
void shared_runtime_unref(struct shared_runtime *shared);

cox_runtime *shared_runtime_of(const struct shared_runtime *shared);

/* The newest warning or error of its log, for a message to users; the caller's. "" if there is none. */
char *shared_runtime_last_line(struct shared_runtime *shared);

#endif
