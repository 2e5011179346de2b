/* A session warns if a binding is only read but its kernel takes a pointer to non-const data. This works with
 * kernels from source and from the cache, which stores what the driver reported about the source.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "real.h"
#include "support/folder.h"
#include <coxswain/tonemap.h>
#include <coxswain/video.h>
#include <dirent.h>
#include <stdlib.h>

static void teardown(void)
{
    close_all();
    remove_folder();
}

TestSuite(writable, .init = make_folder, .fini = teardown, .timeout = 600);

static const char good[] =
    "kernel void other(global int *x) { x[0] = 1; }\n"
    "kernel void add(global const uchar *in, constant uchar *table, global uchar *out, global uint *sums) {\n"
    "    out[get_global_id(1)] = in[get_global_id(1)] + table[0];\n"
    "    sums[0] = 1;\n"
    "}\n";

static const char bad[] =
    "kernel void other(global int *x) { x[0] = 1; }\n"
    "kernel void add(global uchar *restrict in, global uchar *const table, global uchar *out, global uint *sums) {\n"
    "    out[get_global_id(1)] = in[get_global_id(1)] + table[0];\n"
    "    sums[0] = 1;\n"
    "}\n";

static const char bad_lines[] =
    "kernel add, argument 0 (in): buffer 0 (rows) is only read, so declare the pointer const; a write would "
    "change what other devices read\n"
    "kernel add, argument 1 (table): buffer 1 (values) is only read, so declare the pointer const; a write would "
    "change what other devices read\n";

static void keep_first(void *into, const void *partial, size_t bytes, void *user)
{
    (void)user;
    memcpy(into, partial, bytes);
}

static void create_session(const char *source)
{
    const struct cox__binding bindings[] = {
        {.name = "rows", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 4096},
        {.name = "values", .row_access = COX__WHOLE, .access = COX__READ, .bytes = 64},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 4096},
        {.name = "sums", .row_access = COX__REDUCE, .access = COX__WRITE, .bytes = 4, .merge = keep_first},
    };
    const struct cox__variant variant = {.source = source};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_BUFFER(2), COX__ARG_BUFFER(3)};
    const struct cox__stage stage = {
        .kernel = "add", .variant_count = 1, .variants = &variant, .arg_count = 4, .args = args};
    cox_session *session;
    logged[0] = '\0';
    cr_assert_eq(cox__session_create(runtime,
                                     &(const struct cox__session_spec){.rows = 64,
                                                                       .binding_count = 4,
                                                                       .bindings = bindings,
                                                                       .stage_count = 1,
                                                                       .stages = &stage},
                                     &session),
                 COX_OK, "%s", logged);
    cox_session_destroy(&session);
}

/* The number of compiled kernels in the cache. */
static int cached(void)
{
    DIR *listed = opendir(folder);
    cr_assert_not_null(listed);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(listed));) {
        const size_t length = strlen(entry->d_name);
        count += length > 4 && strcmp(entry->d_name + length - 4, ".bin") == 0;
    }
    closedir(listed);
    return count;
}

/* What a session with these kernels logs in its own runtime. */
static const char *log_of(const char *devices, const char *source, const char *cache_dir)
{
    open_runtime_at(devices, cache_dir, COX_LOG_WARN);
    create_session(source);
    cox_runtime_destroy(&runtime);
    return logged;
}

Test(writable, pointers_that_are_not_to_const_are_named_once_for_all_devices)
{
    cr_assert_str_eq(log_of("cpu:2x1", bad, NULL), bad_lines);
}

Test(writable, kernels_from_the_cache_are_warned_of_too)
{
    cr_assert_str_eq(log_of("cpu", bad, folder), bad_lines);
    const int entries = cached();
    cr_assert_gt(entries, 0);
    cr_assert_str_eq(log_of("cpu", bad, folder), bad_lines);
    cr_assert_eq(cached(), entries);
}

Test(writable, sub_devices_take_their_kernels_from_the_cache)
{
    for (int entries = 0, turn = 0; turn < 2; turn++) {
        open_runtime_at("cpu:2x1", folder, COX_LOG_INFO);
        create_session(good);
        cox_runtime_destroy(&runtime);
        cr_assert_null(strstr(logged, "cached binary"), "%s", logged);
        cr_assert_gt(cached(), 0);
        cr_assert(turn == 0 || cached() == entries);
        entries = cached();
    }
}

Test(writable, nothing_is_said_of_pointers_to_const_and_constant_memory)
{
    cr_assert_str_empty(log_of("cpu:2x1", good, NULL));
    cr_assert_str_empty(log_of("cpu", good, folder));
    cr_assert_str_empty(log_of("cpu", good, folder));
}

static void silent(cox_status described, const struct cox__session_spec *params)
{
    cox_session *session;
    cr_assert_eq(described, COX_OK);
    cr_assert_eq(cox__session_create(runtime, params, &session), COX_OK, "%s", logged);
    cox_session_destroy(&session);
    cr_assert_str_empty(logged);
}

Test(writable, nothing_is_said_of_the_librarys_own_kernels)
{
    static const struct cox_tonemap_shape photo = {
        .width = 64, .height = 64, .in_pitch_bytes = 4096, .out_pitch_bytes = 4096};
    static const struct cox_video_shape film = {.width = 64,
                                                .height = 64,
                                                .in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
                                                .out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1},
                                                .in_pitch_bytes = {4096, 4096, 4096},
                                                .out_pitch_bytes = {4096, 4096, 4096}};
    static struct cox__pipeline_storage room;
    static struct cox__pipeline_storage storage;
    struct cox__session_spec params = {0};
    open_runtime_at("cpu", NULL, COX_LOG_WARN);
    logged[0] = '\0';
    silent(cox__tonemap_mapping(&photo, &room, &params), &params);
    silent(cox__tonemap_analysis_spec(&photo, &room, &params), &params);
    silent(cox__video_mapping(&film, false, &storage, &params), &params);
    silent(cox__video_mapping(&film, true, &storage, &params), &params);
    silent(cox__video_analysis(&film, &storage, &params), &params);
}
