/* Threads import parts of one DMA-BUF, run frames that read and write them, and destroy them. Each access is ended by
 * what was started, and no descriptor stays open. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"
#include "support/dmabuf_audit.h"

enum { THREADS = 4, FRAMES = 300, ROWS = 40, COLUMNS = 16, BYTES = ROWS * COLUMNS };

struct user {
    struct rig *rig;
    cox_session *session;
    struct dmabuf *dmabuf; /* the input first, then an output for each thread, a page each */
    uint32_t number;
    atomic_uint *released;
};

static void note_released(void *released)
{
    atomic_fetch_add((atomic_uint *)released, 1);
}

static cox_buffer *import(struct user *user, uint32_t page)
{
    cox_buffer *buffer = NULL;
    CHECK(cox_buffer_import_dmabuf(rig_runtime(user->rig), user->dmabuf->fd, page * DMABUF_PAGE, BYTES, note_released,
                                   user->released, &buffer) == COX_OK);
    return buffer;
}

static void *use_parts(void *data)
{
    struct user *user = data;
    const unsigned char *in = (unsigned char *)user->dmabuf->own;
    const unsigned char *out = in + (user->number + 1) * DMABUF_PAGE;
    for (uint32_t f = 0; f < FRAMES; f++) {
        const struct rig_params params = {.add = f, .columns = COLUMNS};
        cox_buffer *buffers[] = {import(user, 0), import(user, user->number + 1)};
        const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = 2, .params = &params};
        CHECK(cox__session_run(user->session, &frame) == COX_OK);
        for (uint32_t i = 0; i < BYTES; i++)
            CHECK(out[i] == (unsigned char)(in[i] * 3 + i / COLUMNS * 7 + f));
        cox_buffer_destroy(&buffers[0]);
        cox_buffer_destroy(&buffers[1]);
    }
    return NULL;
}

/* Open descriptors of the DMA-BUF. */
static uint32_t descriptors_of(const struct dmabuf *dmabuf)
{
    struct stat about;
    uint32_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fstat(fd, &about) == 0 && about.st_ino == dmabuf->inode;
    return count;
}

int main(void)
{
    check_limit("threads that use parts of one DMA-BUF");
    struct dmabuf *dmabuf = dmabuf_new((THREADS + 1) * DMABUF_PAGE, false);
    CHECK(dmabuf);
    for (uint32_t i = 0; i < BYTES; i++)
        dmabuf->own[i] = (char)(i * 37);

    struct rig *rig = rig_new(&(const struct fake_params){
        .device_count = 2, .real_time = true, .devices = {{.fixed_ns = 20e3, .ns_per_row = 500}, {.ns_per_row = 1e3}}});
    struct user users[THREADS];
    atomic_uint released = 0;
    cox_session *session = race_map_session(rig, ROWS, COLUMNS,
                                            &(const struct cox__session_spec){.in_flight = THREADS});
    for (uint32_t t = 0; t < THREADS; t++)
        users[t] = (struct user){.rig = rig, .session = session, .dmabuf = dmabuf, .number = t, .released = &released};
    race_run(THREADS, use_parts, users, sizeof *users);

    cox_session_destroy(&session);
    race_end("rig", 0, &rig);
    CHECK(atomic_load(&released) == 2 * THREADS * FRAMES);
    CHECK(descriptors_of(dmabuf) == 1);
    race_right("DMA-BUF", 0, dmabufs_wrong());
    CHECK(dmabuf->starts >= 1 && dmabuf->ends >= 1);
    dmabufs_end();
    return 0;
}
