/* Memory that is never freed on purpose.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_HOST_LEAK_H
#define COX_HOST_LEAK_H

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

/* Memory that a hung device may still write to is never freed: it is leaked, once per hang. The
 * call tells a leak checker that this piece of memory, and all that only it points to, stays on
 * purpose. NULL is accepted. */
static inline void cox__leak(const void *memory)
{
#ifdef COX__LEAKS_ARE_CHECKED
    if (memory)
        __lsan_ignore_object(memory);
#else
    (void)memory;
#endif
}

#endif
