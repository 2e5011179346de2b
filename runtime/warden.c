/* SPDX-License-Identifier: Apache-2.0 */
#include "warden.h"

#include <stdlib.h>

struct cox__warden {
    bool inline_tasks;
};

cox_status cox__warden_create(struct cox__warden **out, struct cox__topology *topology, bool inline_tasks)
{
    (void)topology;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return COX_E_NOMEM;
    (*out)->inline_tasks = inline_tasks;
    return COX_OK;
}

bool cox__warden_run(struct cox__warden *warden, void (*task)(void *ctx), void *ctx)
{
    (void)warden;
    task(ctx);
    return true;
}

bool cox__warden_destroy(struct cox__warden **warden, uint64_t patience_ns)
{
    (void)patience_ns;
    free(*warden);
    *warden = NULL;
    return true;
}
