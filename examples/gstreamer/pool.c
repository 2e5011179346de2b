/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

/* --- The allocator ------------------------------------------------------------------------------------------------ */

struct cox_memory {
    GstMemory memory;
    cox_buffer *buffer; /* of a part of another memory: that one's */
};

typedef struct {
    GstAllocator parent;
    struct shared_runtime *shared;
} GstCoxAllocator;
typedef GstAllocatorClass GstCoxAllocatorClass;

G_DEFINE_TYPE(GstCoxAllocator, gst_cox_allocator, GST_TYPE_ALLOCATOR)

static GstMemory *allocate(GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
    const gsize most = size + params->prefix + params->padding;
    cox_buffer *buffer = NULL;
    /* Pages are aligned to more than anything asks for. */
    if (cox_buffer_create(shared_runtime_of(((GstCoxAllocator *)allocator)->shared), most, &buffer) != COX_OK)
        return NULL;
    struct cox_memory *made = g_new0(struct cox_memory, 1);
    made->buffer = buffer;
    gst_memory_init(&made->memory, params->flags, allocator, NULL, most, params->align, params->prefix, size);
    return &made->memory;
}

static void release(GstAllocator *allocator, GstMemory *memory)
{
    (void)allocator;
    struct cox_memory *given = (struct cox_memory *)memory;
    if (!memory->parent)
        cox_buffer_destroy(&given->buffer);
    g_free(given);
}

static gpointer map(GstMemory *memory, gsize most, GstMapFlags flags)
{
    (void)most, (void)flags;
    return cox_buffer_data(((struct cox_memory *)memory)->buffer);
}

static void unmap(GstMemory *memory)
{
    /* The host's memory is there always. */
}

static GstMemory *share(GstMemory *memory, gssize offset, gssize size)
{
    GstMemory *whole = memory->parent ? memory->parent : memory;
    struct cox_memory *part = g_new0(struct cox_memory, 1);
    part->buffer = ((struct cox_memory *)memory)->buffer;
    if (size < 0)
        size = (gssize)memory->size - offset;
    gst_memory_init(&part->memory, GST_MINI_OBJECT_FLAGS(whole) | GST_MINI_OBJECT_FLAG_LOCK_READONLY, memory->allocator,
                    whole, memory->maxsize, memory->align, memory->offset + (gsize)offset, (gsize)size);
    return &part->memory;
}

static void finalize_allocator(GObject *object)
{
    shared_runtime_unref(((GstCoxAllocator *)object)->shared);
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
}

GstAllocator *gst_cox_allocator_new(struct shared_runtime *shared)
{
    GstCoxAllocator *self = g_object_new(gst_cox_allocator_get_type(), NULL);
    self->shared = shared_runtime_ref(shared);
    return gst_object_ref_sink(self);
}

cox_buffer *gst_cox_memory_buffer(const GstMemory *memory, const GstAllocator *allocator)
{
    return memory->allocator == allocator ? ((const struct cox_memory *)memory)->buffer : NULL;
}

/* --- The pool ----------------------------------------------------------------------------------------------------- */

typedef struct {
    GstBufferPool parent;
    GstAllocator *allocator;
    GstVideoInfo info; /* as configured, with the alignment's strides and offsets */
    gsize plane_bytes[GST_VIDEO_MAX_PLANES];
} GstCoxPool;
typedef GstBufferPoolClass GstCoxPoolClass;

G_DEFINE_TYPE(GstCoxPool, gst_cox_pool, GST_TYPE_BUFFER_POOL)

static const gchar **options(GstBufferPool *pool)
{
    (void)pool;
    static const gchar *names[] = {GST_BUFFER_POOL_OPTION_VIDEO_META, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT, NULL};
    return names;
}

/* Rows are as far apart as the devices like, and as the alignment says. */
static gboolean configure(GstBufferPool *pool, GstStructure *config)
{
    GstCoxPool *self = (GstCoxPool *)pool;
    GstVideoAlignment align;
    GstCaps *caps;
    guint size, least, most;
    gst_video_alignment_reset(&align);
    if (!gst_buffer_pool_config_get_params(config, &caps, &size, &least, &most) || !caps ||
        !gst_video_info_from_caps(&self->info, caps))
        return FALSE;
    const bool aligned = gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    if (aligned)
        gst_buffer_pool_config_get_video_alignment(config, &align);
    if (aligned || gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META)) {
        const cox_runtime *runtime = shared_runtime_of(((GstCoxAllocator *)self->allocator)->shared);
        for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&self->info); p++)
            align.stride_align[p] |= (guint)cox_runtime_pitch_bytes(runtime, 1) - 1;
    }
    if (!gst_video_info_align_full(&self->info, &align, self->plane_bytes))
        return FALSE;
    if (aligned)
        gst_buffer_pool_config_set_video_alignment(config, &align);
    gst_buffer_pool_config_set_params(config, caps, MAX(size, (guint)self->info.size), least, most);
    return GST_BUFFER_POOL_CLASS(gst_cox_pool_parent_class)->set_config(pool, config);
}

static GstFlowReturn make_buffer(GstBufferPool *pool, GstBuffer **out, GstBufferPoolAcquireParams *params)
{
    (void)params;
    GstCoxPool *self = (GstCoxPool *)pool;
    GstVideoInfo *info = &self->info;
    GstBuffer *buffer = gst_buffer_new();
    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(info); p++) {
        GstMemory *memory = gst_allocator_alloc(self->allocator, self->plane_bytes[p], NULL);
        if (!memory) {
            gst_buffer_unref(buffer);
            return GST_FLOW_ERROR;
        }
        gst_buffer_append_memory(buffer, memory);
    }
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(info),
                                   (guint)GST_VIDEO_INFO_WIDTH(info), (guint)GST_VIDEO_INFO_HEIGHT(info),
                                   GST_VIDEO_INFO_N_PLANES(info), info->offset, info->stride);
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
