/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <string.h>

/* --- The allocator ---------------------------------------------------------------------------- */

struct cox_memory {
    GstMemory memory;
    cox_buffer *buffer; /* a part of another memory has that one's */
};

/* Freed buffers are kept for the next allocation. Pools discard a buffer that GStreamer 1.22 still
 * reads through another GstBuffer, as with each frame that a decoder of gst-libav keeps, and new
 * pages are expensive. */
enum { KEPT_MOST = 24 };

typedef struct {
    GstAllocator parent;
    struct shared_runtime *shared;
    GMutex lock;
    cox_buffer *kept[KEPT_MOST]; /* the oldest first */
    guint kept_count;
} GstCoxAllocator;
typedef GstAllocatorClass GstCoxAllocatorClass;

G_DEFINE_TYPE(GstCoxAllocator, gst_cox_allocator, GST_TYPE_ALLOCATOR)

/* Take out the kept buffer at `i`. With the lock held. */
static cox_buffer *take(GstCoxAllocator *self, guint i)
{
    cox_buffer *buffer = self->kept[i];
    memmove(self->kept + i, self->kept + i + 1, (--self->kept_count - i) * sizeof *self->kept);
    return buffer;
}

/* Take out a kept buffer of exactly this size, or NULL. */
static cox_buffer *take_of_size(GstCoxAllocator *self, gsize bytes)
{
    cox_buffer *buffer = NULL;

    g_mutex_lock(&self->lock);
    for (guint i = self->kept_count; i > 0 && !buffer; i--)
        if (cox_buffer_bytes(self->kept[i - 1]) == bytes)
            buffer = take(self, i - 1);
    g_mutex_unlock(&self->lock);
    return buffer;
}

static void keep(GstCoxAllocator *self, cox_buffer *buffer)
{
    cox_buffer *oldest = NULL;
    g_mutex_lock(&self->lock);
    if (self->kept_count == KEPT_MOST)
        oldest = take(self, 0);
    self->kept[self->kept_count++] = buffer;
    g_mutex_unlock(&self->lock);
    cox_buffer_destroy(&oldest);
}

static GstMemory *allocate(GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
    GstCoxAllocator *self = (GstCoxAllocator *)allocator;
    const gsize most = size + params->prefix + params->padding;
    cox_buffer *buffer = take_of_size(self, most);

    /* Pages are aligned to more than anything asks for. */
    if (!buffer && cox_buffer_create(shared_runtime_of(self->shared), most, &buffer) != COX_OK)
        return NULL;
    struct cox_memory *made = g_new0(struct cox_memory, 1);
    made->buffer = buffer;
    gst_memory_init(&made->memory, params->flags, allocator, NULL, most, params->align,
                    params->prefix, size);
    return &made->memory;
}

static void release(GstAllocator *allocator, GstMemory *memory)
{
    struct cox_memory *given = (struct cox_memory *)memory;
    if (!memory->parent)
        keep((GstCoxAllocator *)allocator, given->buffer);
    g_free(given);
}

static gpointer map(GstMemory *memory, gsize most, GstMapFlags flags)
{
    (void)most, (void)flags;
    return cox_buffer_data(((struct cox_memory *)memory)->buffer);
}

static void unmap(GstMemory *memory)
{
    /* Host memory stays mapped. */
}

static GstMemory *share(GstMemory *memory, gssize offset, gssize size)
{
    GstMemory *whole = memory->parent ? memory->parent : memory;
    struct cox_memory *part = g_new0(struct cox_memory, 1);

    part->buffer = ((struct cox_memory *)memory)->buffer;
    if (size < 0)
        size = (gssize)memory->size - offset;
    gst_memory_init(&part->memory,
                    GST_MINI_OBJECT_FLAGS(whole) | GST_MINI_OBJECT_FLAG_LOCK_READONLY,
                    memory->allocator, whole, memory->maxsize, memory->align,
                    memory->offset + (gsize)offset, (gsize)size);
    return &part->memory;
}

static void finalize_allocator(GObject *object)
{
    GstCoxAllocator *self = (GstCoxAllocator *)object;
    gst_cox_allocator_trim(&self->parent);
    g_mutex_clear(&self->lock);
    shared_runtime_unref(self->shared);
    G_OBJECT_CLASS(gst_cox_allocator_parent_class)->finalize(object);
}

static void gst_cox_allocator_class_init(GstCoxAllocatorClass *class)
{
    G_OBJECT_CLASS(class)->finalize = finalize_allocator;
    class->alloc = allocate;
    class->free = release;
}

static void gst_cox_allocator_init(GstCoxAllocator *self)
{
    GstAllocator *allocator = &self->parent;
    allocator->mem_type = "CoxswainMemory";
    allocator->mem_map = map;
    allocator->mem_unmap = unmap;
    allocator->mem_share = share;
    g_mutex_init(&self->lock);
}

GstAllocator *gst_cox_allocator_new(struct shared_runtime *shared)
{
    GstCoxAllocator *self = g_object_new(gst_cox_allocator_get_type(), NULL);
    self->shared = shared_runtime_ref(shared);
    return gst_object_ref_sink(self);
}

void gst_cox_allocator_trim(GstAllocator *allocator)
{
    GstCoxAllocator *self = (GstCoxAllocator *)allocator;
    g_mutex_lock(&self->lock);
    while (self->kept_count > 0)
        cox_buffer_destroy(&self->kept[--self->kept_count]);
    g_mutex_unlock(&self->lock);
}

cox_buffer *gst_cox_memory_buffer(const GstMemory *memory, const GstAllocator *allocator)
{
    if (memory->allocator != allocator)
        return NULL;
    return ((const struct cox_memory *)memory)->buffer;
}

/* --- The pool --------------------------------------------------------------------------------- */

typedef struct {
    GstBufferPool parent;
    GstAllocator *allocator;
    GstVideoInfo info; /* as configured, with the alignment's strides and offsets */
    gsize plane_bytes[GST_VIDEO_MAX_PLANES];
    GstAllocationParams params;
} GstCoxPool;
typedef GstBufferPoolClass GstCoxPoolClass;

G_DEFINE_TYPE(GstCoxPool, gst_cox_pool, GST_TYPE_BUFFER_POOL)

static const gchar **options(GstBufferPool *pool)
{
    (void)pool;
    static const gchar *names[] = {GST_BUFFER_POOL_OPTION_VIDEO_META,
                                   GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT, NULL};
    return names;
}

/* Divide a buffer of `size` bytes among the planes. A plane begins with the padding above its first
 * sample. gst_video_info_align_full reports shorter planes than its offsets leave room for. */
static void divide(GstCoxPool *self, const GstVideoAlignment *align, gsize size)
{
    const GstVideoInfo *info = &self->info;
    gsize end = size;

    for (guint p = GST_VIDEO_INFO_N_PLANES(info); p-- > 0;) {
        const guint above = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(info->finfo, p, align->padding_top);
        const guint left = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH(info->finfo, p, align->padding_left);
        const gsize lead = above * (gsize)GST_VIDEO_INFO_PLANE_STRIDE(info, p) +
                           left * (gsize)GST_VIDEO_FORMAT_INFO_PSTRIDE(info->finfo, p);
        gsize begin = 0;
        if (p > 0)
            begin = GST_VIDEO_INFO_PLANE_OFFSET(info, p) - lead;
        self->plane_bytes[p] = end - begin;
        end = begin;
    }
}

/* Pitches are what the alignment asks for, or else what the devices prefer. With both, rows
 * would be elsewhere than in the first frames of a gst-libav decoder, which would then not use
 * the pool. */
static gboolean configure(GstBufferPool *pool, GstStructure *config)
{
    GstCoxPool *self = (GstCoxPool *)pool;
    GstVideoAlignment align;
    GstCaps *caps;
    guint size, least, most;

    gst_video_alignment_reset(&align);
    gst_buffer_pool_config_get_allocator(config, NULL, &self->params);
    self->params.flags = 0; /* memory that was used before is not zero */
    if (!gst_buffer_pool_config_get_params(config, &caps, &size, &least, &most) || !caps ||
        !gst_video_info_from_caps(&self->info, caps))
        return FALSE;
    const bool aligned = gst_buffer_pool_config_has_option(config,
                                                           GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);

    if (aligned)
        gst_buffer_pool_config_get_video_alignment(config, &align);
    if (!aligned && gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META)) {
        const cox_runtime *runtime =
            shared_runtime_of(((GstCoxAllocator *)self->allocator)->shared);
        for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&self->info); p++)
            align.stride_align[p] |= (guint)cox_runtime_pitch_bytes(runtime, 1) - 1;
    }
    if (!gst_video_info_align(&self->info, &align))
        return FALSE;
    if (aligned)
        gst_buffer_pool_config_set_video_alignment(config, &align);

    /* Pools do not keep a buffer that is shorter than configured. */
    size = MAX(size, (guint)self->info.size);
    divide(self, &align, size);
    gst_buffer_pool_config_set_params(config, caps, size, least, most);
    return GST_BUFFER_POOL_CLASS(gst_cox_pool_parent_class)->set_config(pool, config);
}

/* Map a plane with a lock for reading, even if the map is for writing. Decoders keep their frames
 * mapped for writing while they read them. GStreamer copies memory that is locked for writing when
 * it needs a second GstBuffer for it. With avdec_h265, for example, that is one copy per decoded
 * frame. A frame that has left a decoder is not written to again. */
static gboolean map_plane(GstVideoMeta *meta, guint plane, GstMapInfo *info, gpointer *data,
                          gint *stride, GstMapFlags flags)
{
    GstBuffer *buffer = meta->buffer;
    guint first, count;
    gsize skip;
    if (!gst_buffer_find_memory(buffer, meta->offset[plane], 1, &first, &count, &skip))
        return FALSE;
    if ((flags & GST_MAP_WRITE) && gst_buffer_is_writable(buffer) &&
        gst_buffer_is_memory_range_writable(buffer, first, (gint)count))
        flags = (flags & ~(guint)GST_MAP_WRITE) | GST_MAP_READ;

    if (!gst_buffer_map_range(buffer, first, (gint)count, info, flags))
        return FALSE;
    *data = info->data + skip;
    *stride = meta->stride[plane];
    return TRUE;
}

static GstFlowReturn make_buffer(GstBufferPool *pool, GstBuffer **out,
                                 GstBufferPoolAcquireParams *params)
{
    (void)params;
    GstCoxPool *self = (GstCoxPool *)pool;
    GstVideoInfo *info = &self->info;
    GstBuffer *buffer = gst_buffer_new();

    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(info); p++) {
        GstMemory *memory = gst_allocator_alloc(self->allocator, self->plane_bytes[p],
                                                &self->params);
        if (!memory) {
            gst_buffer_unref(buffer);
            return GST_FLOW_ERROR;
        }
        gst_buffer_append_memory(buffer, memory);
    }
    GstVideoMeta *meta = gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE,
                                                        GST_VIDEO_INFO_FORMAT(info),
                                                        (guint)GST_VIDEO_INFO_WIDTH(info),
                                                        (guint)GST_VIDEO_INFO_HEIGHT(info),
                                                        GST_VIDEO_INFO_N_PLANES(info), info->offset,
                                                        info->stride);

    meta->map = map_plane;
    *out = buffer;
    return GST_FLOW_OK;
}

static void finalize_pool(GObject *object)
{
    gst_object_unref(((GstCoxPool *)object)->allocator);
    G_OBJECT_CLASS(gst_cox_pool_parent_class)->finalize(object);
}

static void gst_cox_pool_class_init(GstCoxPoolClass *class)
{
    G_OBJECT_CLASS(class)->finalize = finalize_pool;
    class->get_options = options;
    class->set_config = configure;
    class->alloc_buffer = make_buffer;
}

static void gst_cox_pool_init(GstCoxPool *self)
{
    gst_video_info_init(&self->info);
}

GstBufferPool *gst_cox_pool_new(GstAllocator *allocator)
{
    GstCoxPool *self = g_object_new(gst_cox_pool_get_type(), NULL);
    self->allocator = gst_object_ref(allocator);
    return gst_object_ref_sink(self);
}
