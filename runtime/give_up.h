/* Memory that is never freed on purpose, because something that hangs may still use it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_GIVE_UP_H
#define COX_RUNTIME_GIVE_UP_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COX__LEAKS_ARE_CHECKED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define COX__LEAKS_ARE_CHECKED 1
#endif

#ifdef COX__LEAKS_ARE_CHECKED
#include <sanitizer/lsan_interface.h>
#endif

/* Tells a leak checker that this piece of memory, and all that it alone points to, stays. NULL is accepted. */
static inline void cox__give_up(const void *memory)
{
#ifdef COX__LEAKS_ARE_CHECKED
    if (memory)
        __lsan_ignore_object(memory);
#else
    (void)memory;
#endif
}

#endif
