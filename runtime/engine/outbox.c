/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox.h"
#include "invariant.h"

#include <sys/eventfd.h>
#include <unistd.h>

cox_status cox__outbox_open(struct cox__outbox *outbox)
{
    outbox->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    outbox->is_open = outbox->descriptor >= 0;
    return outbox->is_open ? COX_OK : COX_E_SYSTEM;
}

void cox__outbox_close(struct cox__outbox *outbox)
{
    if (outbox->is_open)
        close(outbox->descriptor);
    outbox->is_open = false;
}

void cox__outbox_put(struct cox_session *session, struct cox__frame *frame)
{
    struct cox__outbox *outbox = &session->outbox;
    COX_INVARIANT(outbox->count < COX__ORDER_MAX);
    outbox->frames[(outbox->first + outbox->count) % COX__ORDER_MAX] = frame;
    if (outbox->count++ == 0)
        eventfd_write(outbox->descriptor, 1);
    pthread_cond_broadcast(&session->delivered);
}

struct cox__frame *cox__outbox_take(struct cox_session *session)
{
    struct cox__outbox *outbox = &session->outbox;
    struct cox__frame *frame = outbox->frames[outbox->first];
    eventfd_t counter;
    COX_INVARIANT(outbox->count > 0);
    outbox->first = (outbox->first + 1) % COX__ORDER_MAX;
    if (--outbox->count == 0)
        eventfd_read(outbox->descriptor, &counter);
    return frame;
}
