/* SPDX-License-Identifier: Apache-2.0 */
#include "sync.h"
#include "invariant.h"

void cox__sync_init(struct cox__sync *sync)
{
    pthread_mutex_init(&sync->turn, NULL);
    pthread_mutex_init(&sync->lock, NULL);
}

void cox__sync_destroy(struct cox__sync *sync)
{
    pthread_mutex_destroy(&sync->lock);
    pthread_mutex_destroy(&sync->turn);
}

/* ---- one use ---- */

/* Called with the lock held. */
static cox_status leave(struct cox__sync *sync)
{
    const bool reads = sync->reads, writes = sync->writes;
    COX_INVARIANT(sync->users);

    if (--sync->users || !reads)
        return COX_OK;

    sync->reads = sync->writes = false;
    return sync->end(sync, reads, writes);
}

cox_status cox__sync_begin(struct cox__sync *sync, bool writes)
{
    cox_status status = COX_OK;

    pthread_mutex_lock(&sync->turn);
    pthread_mutex_lock(&sync->lock);
    sync->users++; /* no other use is the last one from here on */
    const bool reads_new = !sync->reads, writes_new = writes && !sync->writes;
    pthread_mutex_unlock(&sync->lock);

    /* Without the lock: another use may end meanwhile, on the scheduler thread. */
    if (reads_new || writes_new)
        status = sync->begin(sync, reads_new, writes_new);

    pthread_mutex_lock(&sync->lock);
    if (status == COX_OK) {
        sync->reads = true;
        sync->writes |= writes;
    } else {
        leave(sync);
    }
    pthread_mutex_unlock(&sync->lock);
    pthread_mutex_unlock(&sync->turn);

    return status;
}

cox_status cox__sync_end(struct cox__sync *sync)
{
    pthread_mutex_lock(&sync->lock);
    const cox_status status = leave(sync);
    pthread_mutex_unlock(&sync->lock);

    return status;
}

/* ---- a frame's ---- */

/* End the use of the first `count` buffers. Returns the first error. */
static cox_status end_first(cox_buffer *const *buffers, uint32_t count)
{
    cox_status status = COX_OK;

    for (uint32_t b = 0; b < count; b++) {
        cox_status of_buffer = COX_OK;
        if (buffers[b] && buffers[b]->sync)
            of_buffer = cox__sync_end(buffers[b]->sync);
        if (status == COX_OK)
            status = of_buffer;
    }

    return status;
}

cox_status cox__sync_begin_frame(const struct cox_session *session, cox_buffer *const *buffers,
                                 bool fetch)
{
    const struct cox__pipeline *pipeline = &session->pipeline;

    for (uint32_t b = 0; b < pipeline->binding_count; b++) {
        const cox_buffer *buffer = buffers[b];
        if (!buffer || !buffer->sync)
            continue;

        const bool writes = fetch || pipeline->bindings[b].access != COX__READ;
        cox_status status = COX_E_INVALID;
        if (writes && buffer->read_only)
            cox__log(&session->runtime->log, COX_LOG_ERROR,
                     "buffer %u (%s) is written, but its descriptor is only for reading", b,
                     pipeline->bindings[b].name);
        else
            status = cox__sync_begin(buffer->sync, writes);

        if (status) {
            end_first(buffers, b);
            return status;
        }
    }

    return COX_OK;
}

cox_status cox__sync_end_frame(const struct cox_session *session, cox_buffer *const *buffers)
{
    return end_first(buffers, session->pipeline.binding_count);
}
