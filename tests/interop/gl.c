/* Tests of coxswain/gl.h in contexts without a window: OpenGL and OpenGL ES, with persistent mappings and without.
 * Frames in textures and buffer objects have the bits of frames in ordinary memory. Errors leave everything as it was,
 * and no GL object remains.
 *
 *   interop_gl [--devices SEL] [--expect N] [--verbose]
 *
 * It prints the times of a texture for each context. With the layer layer_gl in OPENCL_LAYERS, whose devices have
 * cl_khr_gl_sharing, the contexts are shared with OpenCL. The exit status is 77 without EGL for this, or
 * without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "interop.h"
#include "gl_context.h"

#include <CL/cl_gl.h>

/* ---- a context with a runtime ---- */

struct rig {
    enum kind kind;
    EGLContext context;
    cl_context shared; /* NULL = no cl_khr_gl_sharing */
    cox_runtime *runtime;
    struct loader loader;
    cox_gl *gl;
};

static cox_status create_gl(struct rig *rig, cox_gl **out)
{
    last_lines[0] = 0;
    return cox_gl_create(rig->runtime, &(const struct cox_gl_params){.get_function = load, .user = &rig->loader}, out);
}

/* An OpenCL context of the first platform with devices, made with the GL context. NULL = the device cannot share. */
static cl_context share(EGLContext context)
{
    cl_platform_id platforms[16];
    cl_uint count = 0, devices = 0;
    cl_device_id device;
    char extensions[8192];
    CHECK(!clGetPlatformIDs(16, platforms, &count));
    for (cl_uint p = 0; p < count && !devices; p++) {
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, &devices) || !devices)
            continue;
        CHECK(!clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL));
        if (!strstr(extensions, "cl_khr_gl_sharing"))
            return NULL;

        const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                    (cl_context_properties)platforms[p],
                                                    CL_GL_CONTEXT_KHR,
                                                    (cl_context_properties)context,
                                                    CL_EGL_DISPLAY_KHR,
                                                    (cl_context_properties)display,
                                                    0};
        cl_int code;
        cl_context shared = clCreateContext(properties, 1, &device, NULL, NULL, &code);
        CHECK(!code);
        return shared;
    }
    return NULL;
}

static void open_rig(struct rig *rig, enum kind kind)
{
    *rig = (struct rig){.kind = kind, .context = new_context(kind), .loader = {.kind = kind}};
    rig->shared = is_es(kind) ? NULL : share(rig->context);
    const cl_context given[] = {rig->shared, NULL};
    CHECK(!cox_runtime_create(&(const struct cox_runtime_params){.devices = selection,
                                                                 .reserve = COX_RESERVE_OFF,
                                                                 .log = on_log,
                                                                 .log_level = COX_LOG_INFO,
                                                                 .contexts = rig->shared ? given : NULL},
                              &rig->runtime));
    set_old_version(kind);
    CHECK(!create_gl(rig, &rig->gl) && rig->gl);

    const char *way = kind == DESKTOP || kind == ES ? "buffer objects stay mapped"
                                                    : "buffer objects are mapped while the host has them";
    CHECK(strstr(last_lines, rig->shared ? "OpenCL copies by cl_khr_gl_sharing" : way));
}

static void close_rig(struct rig *rig)
{
    cox_gl_destroy(&rig->gl);
    CHECK(!rig->gl);
    CHECK(!alive.buffers && !alive.framebuffers && !alive.syncs && !alive.maps);
    CHECK(gl.GetError() == GL_NO_ERROR);
    cox_runtime_destroy(&rig->runtime);
    CHECK(!rig->runtime);
    if (rig->shared) {
        CHECK_SOON(context_references(rig->shared) == 1);
        clReleaseContext(rig->shared);
    }
    make_current(EGL_NO_CONTEXT);
    CHECK(eglDestroyContext(display, rig->context));
}

/* ---- pixels ---- */

struct format {
    const char *name;
    GLenum internal, format, type;
    uint32_t sample_bytes, samples;
};

static const struct format formats[] = {
    {"R8", GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1, 1},         {"R16", GL_R16, GL_RED, GL_UNSIGNED_SHORT, 2, 1},
    {"RG8", GL_RG8, GL_RG, GL_UNSIGNED_BYTE, 1, 2},        {"RG16", GL_RG16, GL_RG, GL_UNSIGNED_SHORT, 2, 2},
    {"RGBA8", GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 1, 4},  {"RGBA16", GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, 2, 4},
    {"RGBA16F", GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, 2, 4}, {"R32F", GL_R32F, GL_RED, GL_FLOAT, 4, 1},
    {"RGBA32F", GL_RGBA32F, GL_RGBA, GL_FLOAT, 4, 4},
};

enum { FORMATS = sizeof formats / sizeof *formats, RGBA8 = 4 };

/* Rows of a picture, without gaps. */
struct picture {
    const struct format *format;
    uint32_t columns, rows;
    size_t row_bytes, bytes;
    unsigned char *pixels;
};

/* Random samples. Those of floating point lie in [0.5, 1), so that no driver changes their bits. */
static struct picture new_picture(const struct format *format, uint32_t columns, uint32_t rows, uint32_t seed)
{
    struct picture made = {.format = format, .columns = columns, .rows = rows};
    made.row_bytes = (size_t)columns * format->samples * format->sample_bytes;
    made.bytes = made.row_bytes * rows;
    made.pixels = malloc(made.bytes);
    CHECK(made.pixels);

    for (size_t i = 0; i < made.bytes / format->sample_bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t sample = seed >> 8;
        if (format->type == GL_FLOAT)
            sample = 0x3f000000 | (sample & 0x7fffff);
        else if (format->type == GL_HALF_FLOAT)
            sample = 0x3800 | (sample & 0x3ff);
        memcpy(made.pixels + i * format->sample_bytes, &sample, format->sample_bytes);
    }
    return made;
}

static GLuint new_texture(const struct picture *picture)
{
    GLuint name;
    gl.GenTextures(1, &name);
    gl.BindTexture(GL_TEXTURE_2D, name);
    gl.TexStorage2D(GL_TEXTURE_2D, 1, picture->format->internal, (GLsizei)picture->columns, (GLsizei)picture->rows);
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
    gl.TexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, (GLsizei)picture->columns, (GLsizei)picture->rows, picture->format->format,
                     picture->format->type, picture->pixels);
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 4);
    gl.BindTexture(GL_TEXTURE_2D, 0);
    CHECK(gl.GetError() == GL_NO_ERROR);
    return name;
}

/* Read the texture into client memory, and compare it. */
static void check_texture(GLuint name, const struct picture *expected)
{
    GLuint framebuffer;
    unsigned char *pixels = calloc(1, expected->bytes);
    CHECK(pixels);
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
    gl.FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, name, 0);
    gl.PixelStorei(GL_PACK_ALIGNMENT, 1);
    gl.ReadPixels(0, 0, (GLsizei)expected->columns, (GLsizei)expected->rows, expected->format->format,
                  expected->format->type, pixels);
    gl.PixelStorei(GL_PACK_ALIGNMENT, 4);
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
    gl.DeleteFramebuffers(1, &framebuffer);
    CHECK(gl.GetError() == GL_NO_ERROR);
    CHECK(memcmp(pixels, expected->pixels, expected->bytes) == 0);
    free(pixels);
}

/* ---- a session: the lowest bit of each sample is flipped ---- */

static cox_session *new_session(cox_runtime *runtime, const struct picture *picture, size_t pitch_bytes,
                                uint32_t in_flight)
{
    static const char source[] =
        "kernel void flip(global const uchar *in, int in_pitch, global uchar *out, int out_pitch,\n"
        "                 int columns, int rows)\n"
        "{\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    if (x < columns && y < rows)\n"
        "        out[y * out_pitch + x] = in[y * in_pitch + x] ^ (uchar)(x % BYTES == 0);\n"
        "}\n";
    static const char *const options[] = {[1] = "-DBYTES=1", [2] = "-DBYTES=2", [4] = "-DBYTES=4"};
    const struct cox_pass passes[] = {{.source = source, .options = options[picture->format->sample_bytes]}, {0}};
    const struct cox_buffer_layout buffers[] = {
        {.name = "in", .pitch_bytes = pitch_bytes, .row_bytes = picture->row_bytes},
        {.name = "out", .pitch_bytes = pitch_bytes, .row_bytes = picture->row_bytes},
        {0}};
    cox_session *session;
    CHECK(!cox_session_create(runtime,
                              &(const struct cox_session_params){.columns = (uint32_t)picture->row_bytes,
                                                                 .rows = picture->rows,
                                                                 .passes = passes,
                                                                 .buffers = buffers,
                                                                 .in_flight = in_flight},
                              &session));
    return session;
}

/* Turn the picture into what the session makes of it in ordinary memory. */
static void flip(cox_runtime *runtime, cox_session *session, struct picture *picture, size_t pitch_bytes)
{
    cox_buffer *in, *out;
    CHECK(!cox_buffer_create(runtime, pitch_bytes * picture->rows, &in));
    CHECK(!cox_buffer_create(runtime, pitch_bytes * picture->rows, &out));
    for (uint32_t r = 0; r < picture->rows; r++)
        memcpy((char *)cox_buffer_data(in) + r * pitch_bytes, picture->pixels + r * picture->row_bytes,
               picture->row_bytes);
    CHECK(!cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(in, out)}));
    for (uint32_t r = 0; r < picture->rows; r++) {
        const unsigned char *row = (const unsigned char *)cox_buffer_data(out) + r * pitch_bytes;
        CHECK(row[0] == (picture->pixels[r * picture->row_bytes] ^ 1));
        memcpy(picture->pixels + r * picture->row_bytes, row, picture->row_bytes);
    }
    cox_buffer_destroy(&in);
    cox_buffer_destroy(&out);
}

/* ---- textures ---- */

static cox_gl_buffer *new_buffer(cox_gl *on, size_t bytes)
{
    cox_gl_buffer *buffer;
    CHECK(!cox_gl_buffer_create(on, &(const struct cox_gl_buffer_params){.bytes = bytes}, &buffer));
    return buffer;
}

static cox_buffer *acquire(cox_gl_buffer *buffer)
{
    cox_buffer *memory;
    CHECK(!cox_gl_buffer_acquire(buffer, UINT64_MAX, &memory) && memory);
    return memory;
}

static void release(cox_gl_buffer *buffer)
{
    CHECK(!cox_gl_buffer_release(buffer));
}

static struct cox_gl_texture texture_of(const struct picture *picture, GLuint name, size_t offset, size_t pitch_bytes)
{
    return (struct cox_gl_texture){.texture = name,
                                   .format = picture->format->internal,
                                   .columns = picture->columns,
                                   .rows = picture->rows,
                                   .offset = offset,
                                   .pitch_bytes = pitch_bytes};
}

enum { GAP = 0xEE };

/* Whether the context can read the format. The session's frame then has the texture's bits, and the other texture the
 * session's. */
static bool a_texture_goes_through_a_frame(struct rig *rig, const struct format *format, uint32_t columns,
                                           uint32_t rows, bool aligned)
{
    struct picture picture = new_picture(format, columns, rows, columns * rows);
    const GLuint source = new_texture(&picture), result = new_texture(&picture);
    size_t pitch = picture.row_bytes;
    if (aligned)
        pitch = cox_runtime_pitch_bytes(rig->runtime, pitch);

    cox_gl_buffer *in = new_buffer(rig->gl, pitch * rows), *out = new_buffer(rig->gl, pitch * rows);
    memset(cox_buffer_data(acquire(in)), GAP, pitch * rows);
    release(in);

    struct cox_gl_texture from = texture_of(&picture, source, 0, aligned ? pitch : 0);
    const struct cox_gl_texture to = texture_of(&picture, result, 0, pitch);
    const cox_status status = cox_gl_buffer_read(in, &from);
    if (status == COX_OK) {
        cox_session *session = new_session(rig->runtime, &picture, pitch, 1);
        cox_buffer *in_memory = acquire(in), *out_memory = acquire(out);
        CHECK(cox_buffer_bytes(in_memory) == pitch * rows);
        for (uint32_t r = 0; r < rows; r++) {
            const unsigned char *row = (const unsigned char *)cox_buffer_data(in_memory) + r * pitch;
            CHECK(memcmp(row, picture.pixels + r * picture.row_bytes, picture.row_bytes) == 0);
            for (size_t i = picture.row_bytes; i < pitch; i++)
                CHECK(row[i] == GAP);
        }
        CHECK(!cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(in_memory, out_memory)}));
        release(in);
        release(out);
        CHECK(!cox_gl_buffer_write(out, &to));
        check_texture(source, &picture);
        flip(rig->runtime, session, &picture, pitch);
        check_texture(result, &picture);
        cox_session_destroy(&session);
    } else {
        CHECK(status == COX_E_UNSUPPORTED && last_lines[0]);
    }

    cox_gl_buffer_destroy(&in);
    cox_gl_buffer_destroy(&out);
    gl.DeleteTextures(1, &source);
    gl.DeleteTextures(1, &result);
    free(picture.pixels);
    return status == COX_OK;
}

static void textures_go_through_frames(struct rig *rig)
{
    int passed = 0;
    for (int f = 0; f < FORMATS; f++) {
        const bool able = a_texture_goes_through_a_frame(rig, &formats[f], 37, 23, false);
        CHECK(a_texture_goes_through_a_frame(rig, &formats[f], 37, 23, true) == able);
        CHECK(a_texture_goes_through_a_frame(rig, &formats[f], 64, 41, true) == able);
        CHECK(able || is_es(rig->kind) || rig->shared);
        if (!able)
            printf("  %s, %s: skipped, because the context cannot read it\n", kind_names[rig->kind], formats[f].name);
        passed += able;
    }
    CHECK(passed > 0);
}

/* Two planes in one buffer: a frame that a stream takes as windows. */
static void planes_share_a_buffer(struct rig *rig)
{
    struct picture luma = new_picture(&formats[0], 40, 6, 1), chroma = new_picture(&formats[2], 20, 3, 2);
    const GLuint first = new_texture(&luma), second = new_texture(&chroma);
    const struct cox_gl_texture one = texture_of(&luma, first, 0, 64), two = texture_of(&chroma, second, 64 * 6, 64);
    cox_gl_buffer *buffer = new_buffer(rig->gl, 64 * 9);
    if (cox_gl_buffer_read(buffer, &one) == COX_OK) {
        CHECK(!cox_gl_buffer_read(buffer, &two));
        const unsigned char *bytes = cox_buffer_data(acquire(buffer));
        for (int r = 0; r < 9; r++)
            CHECK(memcmp(bytes + 64 * r, r < 6 ? luma.pixels + 40 * r : chroma.pixels + 40 * (r - 6), 40) == 0);
        release(buffer);
    } else {
        CHECK(is_es(rig->kind));
    }
    cox_gl_buffer_destroy(&buffer);
    gl.DeleteTextures(1, &first);
    gl.DeleteTextures(1, &second);
    free(luma.pixels);
    free(chroma.pixels);
}

/* Several frames under way, each with its own buffers and textures. */
static void frames_overlap(struct rig *rig)
{
    enum { RING = 4, FRAMES = 13 };
    cox_gl_buffer *in[RING], *out[RING];
    GLuint results[RING];
    struct picture pictures[RING];
    struct picture shape = new_picture(&formats[RGBA8], 50, 30, 0);
    cox_session *session = new_session(rig->runtime, &shape, shape.row_bytes, RING);
    for (int r = 0; r < RING; r++) {
        in[r] = new_buffer(rig->gl, shape.bytes);
        out[r] = new_buffer(rig->gl, shape.bytes);
        results[r] = new_texture(&shape);
    }

    for (int f = 0; f < FRAMES + RING; f++) {
        const int r = f % RING;
        if (f >= RING) {
            release(in[r]);
            release(out[r]); /* waits for the frame */
            const struct cox_gl_texture to = texture_of(&shape, results[r], 0, 0);
            CHECK(!cox_gl_buffer_write(out[r], &to));
            for (size_t i = 0; i < shape.bytes; i++)
                pictures[r].pixels[i] ^= 1;
            check_texture(results[r], &pictures[r]);
            free(pictures[r].pixels);
        }
        if (f >= FRAMES)
            continue; /* the last frames only end */
        pictures[r] = new_picture(shape.format, shape.columns, shape.rows, (uint32_t)f);
        const GLuint source = new_texture(&pictures[r]);
        const struct cox_gl_texture from = texture_of(&shape, source, 0, 0);
        CHECK(!cox_gl_buffer_read(in[r], &from));
        gl.DeleteTextures(1, &source); /* OpenGL keeps it until the copy has ended */
        CHECK(!cox_session_submit(session,
                                  &(const struct cox_frame){.buffers = COX_BUFFERS(acquire(in[r]), acquire(out[r]))},
                                  NULL, NULL));
    }

    CHECK(!cox_session_wait(session));
    cox_session_destroy(&session);
    for (int r = 0; r < RING; r++) {
        cox_gl_buffer_destroy(&in[r]);
        cox_gl_buffer_destroy(&out[r]);
        gl.DeleteTextures(1, &results[r]);
    }
    free(shape.pixels);
}

/* ---- buffer objects ---- */

enum { WORDS = 5000, OBJECT_OFFSET = 256, OBJECT_BYTES = OBJECT_OFFSET + 4 * WORDS };

/* The application's buffer object with words from `seed` on. */
static GLuint new_object(GLbitfield storage, uint32_t seed)
{
    static uint32_t words[OBJECT_BYTES / 4];
    GLuint name;
    for (uint32_t i = 0; i < OBJECT_BYTES / 4; i++)
        words[i] = seed + i;
    gl.GenBuffers(1, &name);
    gl.BindBuffer(GL_ARRAY_BUFFER, name);
    if (storage)
        gl.BufferStorage(GL_ARRAY_BUFFER, OBJECT_BYTES, words, storage);
    else
        gl.BufferData(GL_ARRAY_BUFFER, OBJECT_BYTES, words, GL_DYNAMIC_COPY);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    CHECK(gl.GetError() == GL_NO_ERROR);
    return name;
}

/* The object's words are `seed` + their number; behind OBJECT_OFFSET with the lowest bit of each byte flipped. */
static void check_object(GLuint name, uint32_t seed, bool flipped)
{
    gl.BindBuffer(GL_ARRAY_BUFFER, name);
    const uint32_t *words = gl.MapBufferRange(GL_ARRAY_BUFFER, 0, OBJECT_BYTES, GL_MAP_READ_BIT);
    CHECK(words);
    for (uint32_t i = 0; i < OBJECT_BYTES / 4; i++)
        CHECK(words[i] == ((seed + i) ^ (flipped && i >= OBJECT_OFFSET / 4 ? 0x01010101u : 0)));
    gl.UnmapBuffer(GL_ARRAY_BUFFER);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
}

static cox_gl_buffer *use_object(cox_gl *on, GLuint name, enum cox_gl_access access)
{
    cox_gl_buffer *buffer;
    CHECK(!cox_gl_buffer_create(on,
                                &(const struct cox_gl_buffer_params){
                                    .object = name, .offset = OBJECT_OFFSET, .access = access},
                                &buffer));
    return buffer;
}

/* Set the first bytes of the object to words from `seed` on. */
static void set_words(GLuint name, uint32_t seed, size_t bytes)
{
    uint32_t words[OBJECT_BYTES / 4];
    for (uint32_t i = 0; i < bytes / 4; i++)
        words[i] = seed + i;
    gl.BindBuffer(GL_ARRAY_BUFFER, name);
    gl.BufferSubData(GL_ARRAY_BUFFER, 0, (GLsizeiptr)bytes, words);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    CHECK(gl.GetError() == GL_NO_ERROR);
}

static void objects_go_through_frames(struct rig *rig, GLbitfield storage)
{
    const struct picture shape = {.format = &formats[0], .columns = 400, .rows = 4 * WORDS / 400, .row_bytes = 400};
    const bool kept = storage && !rig->shared && (rig->kind == DESKTOP || rig->kind == ES);
    const GLuint from = new_object(storage, 7), to = new_object(storage, 9);
    cox_session *session = new_session(rig->runtime, &shape, 400, 1);
    cox_gl_buffer *in = use_object(rig->gl, from, COX_GL_READ), *out = use_object(rig->gl, to, COX_GL_WRITE);
    void *first = NULL;
    for (uint32_t f = 0; f < 4; f++) {
        set_words(from, 1000 * f, OBJECT_BYTES);
        cox_buffer *in_memory = acquire(in), *out_memory = acquire(out);
        CHECK(cox_buffer_bytes(in_memory) == 4 * WORDS && cox_buffer_bytes(out_memory) == 4 * WORDS);
        CHECK(!kept || !first || cox_buffer_data(in_memory) == first); /* the mapping is kept */
        first = cox_buffer_data(in_memory);
        CHECK(!cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(in_memory, out_memory)}));
        release(in);
        release(out);
        set_words(to, 1000 * f, OBJECT_OFFSET); /* the frame left these bytes alone */
        if (!kept)
            check_object(to, 1000 * f, true);
    }

    cox_gl_buffer_destroy(&in);
    cox_gl_buffer_destroy(&out);
    check_object(from, 3000, false);
    check_object(to, 3000, true);
    cox_session_destroy(&session);
    gl.DeleteBuffers(1, &from);
    gl.DeleteBuffers(1, &to);
}

/* A frame changes an object in place. */
static void an_object_is_read_and_written(struct rig *rig)
{
    const GLuint name = new_object(0, 30);
    cox_gl_buffer *buffer = use_object(rig->gl, name, COX_GL_READ_WRITE);
    unsigned char *bytes = cox_buffer_data(acquire(buffer));
    for (size_t i = 0; i < 4 * WORDS; i++)
        bytes[i] ^= 1;
    release(buffer);
    check_object(name, 30, true);
    cox_gl_buffer_destroy(&buffer);
    check_object(name, 30, true);
    gl.DeleteBuffers(1, &name);
}

/* The texture is copied by OpenGL into the application's object, behind its offset. */
static void a_texture_goes_into_an_object(struct rig *rig)
{
    struct picture picture = new_picture(&formats[RGBA8], 20, 10, 3);
    const GLuint name = new_object(0, 0), texture = new_texture(&picture);
    const struct cox_gl_texture from = texture_of(&picture, texture, 64, 0);
    cox_gl_buffer *buffer = use_object(rig->gl, name, COX_GL_READ_WRITE);
    CHECK(!cox_gl_buffer_read(buffer, &from));
    CHECK(memcmp((char *)cox_buffer_data(acquire(buffer)) + 64, picture.pixels, picture.bytes) == 0);
    cox_gl_buffer_destroy(&buffer); /* while the host has it */
    gl.DeleteBuffers(1, &name);
    gl.DeleteTextures(1, &texture);
    free(picture.pixels);
}

/* ---- turns ---- */

/* The host gets the buffer when OpenGL's commands are complete, not before. */
static void the_host_waits_for_gl(struct rig *rig)
{
    struct picture picture = new_picture(&formats[RGBA8], 30, 20, 3);
    const GLuint texture = new_texture(&picture), name = new_object(0, 1);
    const struct cox_gl_texture from = texture_of(&picture, texture, 0, 0);
    cox_gl_buffer *made = new_buffer(rig->gl, picture.bytes), *used = use_object(rig->gl, name, COX_GL_READ);
    cox_gl_buffer *const buffers[] = {made, used};
    const int before = finishes;
    CHECK(!cox_gl_buffer_read(made, &from));
    CHECK(rig->shared ? finishes > before && !alive.syncs : finishes == before && alive.syncs == 1);

    for (int b = rig->shared ? 1 : 0; b < 2; b++) {
        cox_buffer *memory;
        failing.waits = 2;
        CHECK(cox_gl_buffer_acquire(buffers[b], 0, &memory) == COX_E_BUSY && !memory);
        CHECK(cox_gl_buffer_acquire(buffers[b], 1000, &memory) == COX_E_BUSY && !memory && alive.syncs == 1);
        CHECK(!cox_gl_buffer_acquire(buffers[b], UINT64_MAX, &memory) && !alive.syncs);
        release(buffers[b]);
    }

    /* It also waits until OpenGL has read the buffer. */
    if (!rig->shared) {
        cox_buffer *memory;
        CHECK(!cox_gl_buffer_write(made, &from) && alive.syncs == 1);
        failing.waits = 1;
        CHECK(cox_gl_buffer_acquire(made, 0, &memory) == COX_E_BUSY);
        CHECK(memcmp(cox_buffer_data(acquire(made)), picture.pixels, picture.bytes) == 0);
    }
    cox_gl_buffer_destroy(&made);
    cox_gl_buffer_destroy(&used);
    gl.DeleteBuffers(1, &name);
    gl.DeleteTextures(1, &texture);
    free(picture.pixels);
}

/* The callback of a frame that tries to give the buffer back. */
struct try_release {
    cox_gl_buffer *buffer;
    cox_status status;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct try_release *try = user;
    (void)frame;
    CHECK(!status);
    try->status = cox_gl_buffer_release(try->buffer);
}

static void turns_are_kept(struct rig *rig)
{
    struct picture picture = new_picture(&formats[RGBA8], 16, 16, 3);
    const GLuint texture = new_texture(&picture);
    const struct cox_gl_texture plane = texture_of(&picture, texture, 0, 0);
    cox_gl_buffer *in = new_buffer(rig->gl, picture.bytes), *out = new_buffer(rig->gl, picture.bytes);
    cox_session *session = new_session(rig->runtime, &picture, picture.row_bytes, 2);
    cox_buffer *memory;

    CHECK(cox_gl_buffer_release(in) == COX_E_INVALID && strstr(last_lines, "release: OpenGL has the buffer"));
    cox_buffer *in_memory = acquire(in), *out_memory = acquire(out);
    last_lines[0] = 0;
    CHECK(cox_gl_buffer_acquire(in, 0, &memory) == COX_E_INVALID && !memory);
    CHECK(strstr(last_lines, "acquire: the host has the buffer"));
    CHECK(cox_gl_buffer_read(in, &plane) == COX_E_INVALID && cox_gl_buffer_write(in, &plane) == COX_E_INVALID);

    /* Scheduler threads have no context. */
    struct try_release try = {.buffer = in};
    CHECK(!cox_session_submit(session, &(const struct cox_frame){.buffers = COX_BUFFERS(in_memory, out_memory)},
                              on_done, &try));
    CHECK(!cox_session_wait(session) && try.status == COX_E_INVALID);

    /* release waits for all frames with the buffer. */
    for (int f = 0; f < 6; f++)
        CHECK(!cox_session_submit(session, &(const struct cox_frame){.buffers = COX_BUFFERS(in_memory, out_memory)},
                                  NULL, NULL));
    release(out);
    struct cox_session_info info;
    cox_session_info(session, &info);
    CHECK(info.frames_done == 7);
    release(in);
    cox_session_destroy(&session);
    cox_gl_buffer_destroy(&in);
    cox_gl_buffer_destroy(&out);
    gl.DeleteTextures(1, &texture);
    free(picture.pixels);
}

/* ---- state and errors ---- */

static void the_state_of_gl_is_restored(struct rig *rig)
{
    static const GLenum parameters[] = {GL_PACK_ALIGNMENT,   GL_PACK_ROW_LENGTH,   GL_PACK_SKIP_ROWS,
                                        GL_PACK_SKIP_PIXELS, GL_UNPACK_ALIGNMENT,  GL_UNPACK_ROW_LENGTH,
                                        GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS};
    static const GLint values[] = {8, 100, 3, 5, 2, 90, 4, 6}, defaults[] = {4, 0, 0, 0, 4, 0, 0, 0};
    static const GLenum targets[] = {GL_PIXEL_PACK_BUFFER, GL_PIXEL_UNPACK_BUFFER, GL_COPY_WRITE_BUFFER};
    static const GLenum bindings[] = {GL_PIXEL_PACK_BUFFER_BINDING, GL_PIXEL_UNPACK_BUFFER_BINDING,
                                      GL_COPY_WRITE_BUFFER};
    struct picture picture = new_picture(&formats[RGBA8], 33, 21, 8);
    const GLuint source = new_texture(&picture), result = new_texture(&picture), other = new_texture(&picture);
    const struct cox_gl_texture from = texture_of(&picture, source, 0, 0), to = texture_of(&picture, result, 0, 0);
    GLuint objects[3], framebuffer;
    GLint value;

    gl.GenBuffers(3, objects);
    for (int i = 0; i < 3; i++)
        gl.BindBuffer(targets[i], objects[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gl.PixelStorei(parameters[i], values[i]);
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
    gl.BindTexture(GL_TEXTURE_2D, other);

    cox_gl_buffer *buffer = new_buffer(rig->gl, picture.bytes);
    CHECK(!cox_gl_buffer_read(buffer, &from));
    CHECK(memcmp(cox_buffer_data(acquire(buffer)), picture.pixels, picture.bytes) == 0);
    release(buffer);
    CHECK(!cox_gl_buffer_write(buffer, &to));
    cox_gl_buffer_destroy(&buffer);

    for (int i = 0; i < 3; i++) {
        gl.GetIntegerv(bindings[i], &value);
        CHECK((GLuint)value == objects[i]);
        gl.BindBuffer(targets[i], 0);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        gl.GetIntegerv(parameters[i], &value);
        CHECK(value == values[i]);
        gl.PixelStorei(parameters[i], defaults[i]);
    }
    gl.GetIntegerv(GL_READ_FRAMEBUFFER_BINDING, &value);
    CHECK((GLuint)value == framebuffer);
    gl.GetIntegerv(GL_TEXTURE_BINDING_2D, &value);
    CHECK((GLuint)value == other);

    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
    gl.BindTexture(GL_TEXTURE_2D, 0);
    gl.DeleteFramebuffers(1, &framebuffer);
    gl.DeleteBuffers(3, objects);
    check_texture(result, &picture);
    gl.DeleteTextures(1, &source);
    gl.DeleteTextures(1, &result);
    gl.DeleteTextures(1, &other);
    free(picture.pixels);
}

/* The call returns this status, with a log line that has the text. */
#define REFUSED(status, text, call)      \
    do {                                 \
        last_lines[0] = 0;               \
        CHECK((call) == (status));       \
        CHECK(strstr(last_lines, text)); \
    } while (0)

static void wrong_textures_are_refused(struct rig *rig)
{
    struct picture picture = new_picture(&formats[RGBA8], 32, 32, 8);
    const GLuint name = new_texture(&picture);
    const struct cox_gl_texture right = texture_of(&picture, name, 0, 0);
    cox_gl_buffer *buffer = new_buffer(rig->gl, picture.bytes);
    GLuint deleted, cube;
    gl.GenTextures(1, &cube);
    gl.BindTexture(GL_TEXTURE_CUBE_MAP, cube);
    gl.BindTexture(GL_TEXTURE_CUBE_MAP, 0);
    deleted = new_texture(&picture);
    gl.DeleteTextures(1, &deleted);

    const struct {
        const char *text;
        struct cox_gl_texture texture;
    } cases[] = {
        {"there is no texture", {.texture = deleted, .format = GL_RGBA8, .columns = 32, .rows = 32}},
        {"there is no texture", {.texture = 0, .format = GL_RGBA8, .columns = 32, .rows = 32}},
        {"the format 0x0000 is not supported", {.texture = name, .format = 0, .columns = 32, .rows = 32}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 0, .rows = 32}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 0}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 33}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 32, .offset = 4}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 32, .pitch_bytes = 132}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 16, .pitch_bytes = 130}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 16, .pitch_bytes = 124}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 32, .rows = 16, .offset = 2}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = UINT32_MAX, .rows = UINT32_MAX}},
        {"do not fit", {.texture = name, .format = GL_RGBA8, .columns = 1, .rows = 1, .offset = SIZE_MAX - 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        REFUSED(COX_E_INVALID, cases[i].text, cox_gl_buffer_read(buffer, &cases[i].texture));
        REFUSED(COX_E_INVALID, cases[i].text, cox_gl_buffer_write(buffer, &cases[i].texture));
    }
    REFUSED(COX_E_INVALID, "is NULL", cox_gl_buffer_read(buffer, NULL));
    REFUSED(COX_E_INVALID, "no two-dimensional texture",
            cox_gl_buffer_read(buffer,
                               &(struct cox_gl_texture){.texture = cube, .format = GL_R8, .columns = 1, .rows = 1}));
    CHECK(cox_gl_buffer_write(NULL, &right) == COX_E_INVALID);
    if (rig->kind != ES_OLD) /* which cannot ask */
        REFUSED(COX_E_INVALID, "has 32 x 32 pixels; needed: 40 x 2",
                cox_gl_buffer_read(buffer, &(struct cox_gl_texture){
                                               .texture = name, .format = GL_RGBA8, .columns = 40, .rows = 2}));

    /* The buffer still works. */
    CHECK(!cox_gl_buffer_read(buffer, &right));
    CHECK(memcmp(cox_buffer_data(acquire(buffer)), picture.pixels, picture.bytes) == 0);
    cox_gl_buffer_destroy(&buffer);
    gl.DeleteTextures(1, &cube);
    gl.DeleteTextures(1, &name);
    free(picture.pixels);
}

static cox_status create_buffer(cox_gl *on, struct cox_gl_buffer_params params)
{
    cox_gl_buffer *buffer = (cox_gl_buffer *)&verbose;
    const cox_status status = cox_gl_buffer_create(on, &params, &buffer);
    CHECK(status && !buffer);
    return status;
}

static void wrong_objects_are_refused(struct rig *rig)
{
    GLuint name = new_object(0, 1);
    cox_gl_buffer *buffer;
    cox_buffer *memory;
    CHECK(create_buffer(NULL, (struct cox_gl_buffer_params){.bytes = 4}) == COX_E_INVALID);
    REFUSED(COX_E_INVALID, "is NULL", cox_gl_buffer_create(rig->gl, NULL, &buffer));
    REFUSED(COX_E_INVALID, "0 bytes", create_buffer(rig->gl, (struct cox_gl_buffer_params){0}));
    REFUSED(COX_E_INVALID, "at offset 4",
            create_buffer(rig->gl, (struct cox_gl_buffer_params){.bytes = 8, .offset = 4}));
    REFUSED(COX_E_INVALID, "access 3",
            create_buffer(rig->gl, (struct cox_gl_buffer_params){.bytes = 8, .access = (enum cox_gl_access)3}));
    REFUSED(COX_E_INVALID, "there is no buffer object",
            create_buffer(rig->gl, (struct cox_gl_buffer_params){.object = 12345}));
    REFUSED(COX_E_INVALID, "but the buffer object",
            create_buffer(rig->gl, (struct cox_gl_buffer_params){.object = name, .bytes = OBJECT_BYTES + 1}));
    REFUSED(COX_E_INVALID, "but the buffer object",
            create_buffer(rig->gl, (struct cox_gl_buffer_params){.object = name, .offset = OBJECT_BYTES}));

    if (!rig->shared) {
        gl.BindBuffer(GL_ARRAY_BUFFER, name);
        CHECK(gl.MapBufferRange(GL_ARRAY_BUFFER, 0, 4, GL_MAP_READ_BIT));
        REFUSED(COX_E_INVALID, "is mapped", create_buffer(rig->gl, (struct cox_gl_buffer_params){.object = name}));
        gl.UnmapBuffer(GL_ARRAY_BUFFER);
        gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    }
    if (!rig->shared && (rig->kind == DESKTOP || rig->kind == ES)) {
        const GLuint closed = new_object(GL_MAP_READ_BIT, 1);
        REFUSED(COX_E_UNSUPPORTED, "has the flags 0x1; needed: 0x3",
                create_buffer(rig->gl, (struct cox_gl_buffer_params){.object = closed}));
        gl.DeleteBuffers(1, &closed);
    }

    /* The object is deleted too early. */
    buffer = use_object(rig->gl, name, COX_GL_READ_WRITE);
    gl.DeleteBuffers(1, &name);
    REFUSED(COX_E_INVALID, "was deleted", cox_gl_buffer_acquire(buffer, UINT64_MAX, &memory));
    cox_gl_buffer_destroy(&buffer);
    CHECK(!buffer);
}

static void wrong_contexts_are_refused(struct rig *rig)
{
    cox_gl *made = (cox_gl *)&verbose;
    CHECK(cox_gl_create(NULL, &(const struct cox_gl_params){.get_function = load, .user = &rig->loader}, &made) ==
              COX_E_INVALID &&
          !made);
    REFUSED(COX_E_INVALID, "is NULL", cox_gl_create(rig->runtime, NULL, &made));
    REFUSED(COX_E_INVALID, "is NULL", cox_gl_create(rig->runtime, &(const struct cox_gl_params){0}, &made));

    rig->loader.missing = "glFenceSync";
    REFUSED(COX_E_UNSUPPORTED, "the loader finds no glFenceSync", create_gl(rig, &made));
    rig->loader = (struct loader){.kind = is_es(rig->kind) ? ES_OLD : DESKTOP_OLD};
    old_major = is_es(rig->kind) ? 2 : 3;
    old_minor = is_es(rig->kind) ? 0 : 1;
    REFUSED(COX_E_UNSUPPORTED, "needed: OpenGL 3.2 or OpenGL ES 3.0", create_gl(rig, &made));
    set_old_version(rig->kind);
    rig->loader = (struct loader){.kind = rig->kind};

    make_current(EGL_NO_CONTEXT);
    REFUSED(COX_E_INVALID, "no GL context is current", create_gl(rig, &made));
    rig->loader.no_query = true;
    REFUSED(COX_E_INVALID, "no GL context is current", create_gl(rig, &made));
    make_current(rig->context);
    CHECK(!made);

    /* Without a function that tells the current context, a missing context is found. */
    CHECK(!create_gl(rig, &made) && made);
    make_current(EGL_NO_CONTEXT);
    REFUSED(COX_E_INVALID, "is not current", create_buffer(made, (struct cox_gl_buffer_params){.bytes = 4}));
    make_current(rig->context);
    cox_gl_destroy(&made);
    CHECK(!made);
    rig->loader.no_query = false;
    cox_gl_destroy(NULL);
    cox_gl_destroy(&made);
}

static void *on_other_thread(void *user)
{
    cox_buffer *memory;
    REFUSED(COX_E_INVALID, "is not current in this thread", cox_gl_buffer_acquire(user, 0, &memory));
    return NULL;
}

static void calls_need_the_context(struct rig *rig)
{
    struct picture picture = new_picture(&formats[RGBA8], 8, 8, 8);
    const GLuint texture = new_texture(&picture);
    const struct cox_gl_texture plane = texture_of(&picture, texture, 0, 0);
    cox_gl_buffer *buffer = new_buffer(rig->gl, picture.bytes);
    cox_buffer *memory;
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, on_other_thread, buffer) && !pthread_join(thread, NULL));

    make_current(EGL_NO_CONTEXT);
    for (int i = 0; i < 2; i++) { /* without a context, and in another one */
        REFUSED(COX_E_INVALID, "is not current", cox_gl_buffer_read(buffer, &plane));
        REFUSED(COX_E_INVALID, "is not current", cox_gl_buffer_write(buffer, &plane));
        REFUSED(COX_E_INVALID, "is not current", cox_gl_buffer_acquire(buffer, 0, &memory));
        REFUSED(COX_E_INVALID, "is not current", create_buffer(rig->gl, (struct cox_gl_buffer_params){.bytes = 4}));
        if (i == 0)
            new_context(rig->kind);
    }
    EGLContext other = eglGetCurrentContext();
    make_current(rig->context);
    CHECK(eglDestroyContext(display, other));

    cox_gl *kept = rig->gl;
    last_lines[0] = 0;
    cox_gl_destroy(&kept);
    CHECK(kept == rig->gl && strstr(last_lines, "destroy its buffers (1) first"));
    CHECK(!cox_gl_buffer_read(buffer, &plane));
    CHECK(memcmp(cox_buffer_data(acquire(buffer)), picture.pixels, picture.bytes) == 0);
    cox_gl_buffer_destroy(&buffer);
    gl.DeleteTextures(1, &texture);
    free(picture.pixels);
}

/* Without the context, all that is not OpenGL's is released. */
static void the_context_may_be_gone(struct rig *rig)
{
    const int buffers = alive.buffers, framebuffers = alive.framebuffers, maps = alive.maps;
    cox_gl *lost;
    CHECK(!create_gl(rig, &lost));
    cox_gl_buffer *buffer = new_buffer(lost, 64);
    acquire(buffer);
    make_current(EGL_NO_CONTEXT);
    last_lines[0] = 0;
    cox_gl_buffer_destroy(&buffer);
    CHECK(!buffer && strstr(last_lines, "is not current"));
    cox_gl_destroy(&lost);
    CHECK(!lost);
    make_current(rig->context);
    CHECK(alive.framebuffers == framebuffers + 1);
    alive.buffers = buffers; /* they end with the context */
    alive.framebuffers = framebuffers;
    alive.maps = maps;
}

/* A call of the driver fails. The buffer stays where it is, and the next try succeeds. */
static void drivers_may_fail(struct rig *rig)
{
    const GLuint name = new_object(0, 5);
    cox_gl_buffer *buffer = use_object(rig->gl, name, COX_GL_READ_WRITE);
    cox_buffer *memory;
    failing.wait = true;
    CHECK(cox_gl_buffer_acquire(buffer, UINT64_MAX, &memory) == COX_E_DEVICE_LOST && !memory);
    failing.wait = false;
    CHECK(!alive.syncs);

    if (!rig->shared) {
        failing.map = true;
        REFUSED(COX_E_DEVICE_MEMORY, "glMapBufferRange", cox_gl_buffer_acquire(buffer, UINT64_MAX, &memory));
        if (rig->kind == DESKTOP || rig->kind == ES) {
            const int buffers = alive.buffers;
            REFUSED(COX_E_DEVICE_MEMORY, "glMapBufferRange",
                    create_buffer(rig->gl, (struct cox_gl_buffer_params){.bytes = 64}));
            CHECK(alive.buffers == buffers);
        }
        failing.map = false;
        acquire(buffer);
        failing.unmap = true;
        REFUSED(COX_E_DEVICE_LOST, "lost the buffer object's contents", cox_gl_buffer_release(buffer));
        failing.unmap = false;
    }

    acquire(buffer);
    release(buffer);
    check_object(name, 5, false);
    cox_gl_buffer_destroy(&buffer);
    gl.DeleteBuffers(1, &name);
}

static void pending_errors_are_dropped(struct rig *rig)
{
    last_lines[0] = 0;
    gl.Enable(0x1234);
    gl.Enable(0x1234);
    cox_gl_buffer *buffer = new_buffer(rig->gl, 64);
    CHECK(strstr(last_lines, "cox_gl_buffer_create: drops the pending GL error 0x0500"));
    cox_gl_buffer_destroy(&buffer);
    cox_gl_buffer_destroy(&buffer);
    cox_gl_buffer_destroy(NULL);
}

/* ---- times ---- */

/* Print how long a texture takes to a frame's memory and back, and a copying frame between: the least of some. */
static void tell_times(struct rig *rig)
{
    enum { TIMES = 3 };
    struct picture picture = new_picture(&formats[RGBA8], 1920, 1080, 8);
    const GLuint source = new_texture(&picture), result = new_texture(&picture);
    const struct cox_gl_texture from = texture_of(&picture, source, 0, 0), to = texture_of(&picture, result, 0, 0);
    cox_gl_buffer *in = new_buffer(rig->gl, picture.bytes), *out = new_buffer(rig->gl, picture.bytes);
    cox_session *session = new_session(rig->runtime, &picture, picture.row_bytes, 1);
    double least[3] = {1e9, 1e9, 1e9}; /* to memory, the frame, to the texture */
    gl.Finish();
    for (int n = 0; n < TIMES; n++) {
        const double start = now_us();
        CHECK(!cox_gl_buffer_read(in, &from));
        cox_buffer *memory = acquire(in);
        const double read = now_us();
        cox_buffer *out_memory = acquire(out);
        CHECK(!cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(memory, out_memory)}));
        const double ran = now_us();
        release(in);
        release(out);
        CHECK(!cox_gl_buffer_write(out, &to));
        gl.Finish();
        const double times[] = {read - start, ran - read, now_us() - ran};
        for (int i = 0; i < 3; i++)
            if (times[i] < least[i])
                least[i] = times[i];
    }
    printf("%s, 8 MiB: texture to memory %.2f ms, frame %.2f ms, memory to texture %.2f ms\n", kind_names[rig->kind],
           least[0] / 1e3, least[1] / 1e3, least[2] / 1e3);
    cox_session_destroy(&session);
    cox_gl_buffer_destroy(&in);
    cox_gl_buffer_destroy(&out);
    gl.DeleteTextures(1, &source);
    gl.DeleteTextures(1, &result);
    free(picture.pixels);
}

/* ---- main ---- */

static void test(enum kind kind)
{
    const GLbitfield kept = GL_MAP_READ_BIT | GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT |
                            GL_DYNAMIC_STORAGE_BIT;
    struct rig rig;
    open_rig(&rig, kind);
    textures_go_through_frames(&rig);
    planes_share_a_buffer(&rig);
    frames_overlap(&rig);
    objects_go_through_frames(&rig, 0);
    objects_go_through_frames(&rig, kept & ~(GLbitfield)(GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT));
    if (kind == DESKTOP || kind == ES)
        objects_go_through_frames(&rig, kept);
    an_object_is_read_and_written(&rig);
    a_texture_goes_into_an_object(&rig);
    the_host_waits_for_gl(&rig);
    turns_are_kept(&rig);
    the_state_of_gl_is_restored(&rig);
    wrong_textures_are_refused(&rig);
    wrong_objects_are_refused(&rig);
    wrong_contexts_are_refused(&rig);
    calls_need_the_context(&rig);
    the_context_may_be_gone(&rig);
    drivers_may_fail(&rig);
    tell_times(&rig);
    pending_errors_are_dropped(&rig);
    printf("%s: passed%s\n", kind_names[kind], rig.shared ? ", with cl_khr_gl_sharing" : "");
    close_rig(&rig);
}

int main(int argc, char **argv)
{
    check_limit("interop_gl");
    cox_runtime *runtime = first_runtime(argc, argv);
    cox_runtime_destroy(&runtime);
    if (!open_display()) {
        fprintf(stderr, "skipped, because EGL needs a window system here\n");
        return 77;
    }

    for (enum kind kind = DESKTOP; kind < KINDS; kind++)
        test(kind);
    eglTerminate(display);
    return 0;
}
