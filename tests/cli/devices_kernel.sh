#!/bin/sh
# cox-devices --compile FILE.cl: an application finds the kernel in the cache, or in the file that was written.
#   sh devices_kernel.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
devices=$bin/cox-devices
lib=$bin/../lib
program() { "$devices" "$@"; }
kept() { find "$XDG_CACHE_HOME/coxswain" -name '*.bin' | wc -l; }
need "${CC:-cc}"
need_device
sanitizer=
if nm -D "$lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi

# --- The texts ---
mkdir -p headers/sub
cat >scale.cl <<'END'
#include "scale.h"
#include "sub/add.h"
uint change(uint v);
kernel void scale(global const uint *in, global uint *out, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * columns + x] = change(in[y * columns + x] * SCALE + add());
}
END
echo '#define SCALE 3u' >headers/scale.h
printf 'uint add(void) { return 7; }' >headers/sub/add.h
echo 'not used' >headers/other
: >headers/empty.h
echo 'uint change(uint v) { return v ^ BITS; }' >change.cl

# --- The application: with the texts, or with the code and a declaration ---
cat >app.c <<'END'
#include <coxswain/coxswain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { W = 64, H = 64 };

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text)
        exit(3);
    *bytes = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    puts(line);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* app CACHE [CODE] */
int main(int argc, char **argv)
{
    static unsigned in[W * H], out[W * H];
    size_t bytes = 0, ignored;
    const struct cox_source headers[] = {{"sub/add.h", read_file("headers/sub/add.h", &ignored)},
                                         {"scale.h", read_file("headers/scale.h", &ignored)},
                                         {NULL, NULL}};
    const struct cox_source libraries[] = {{"a library", read_file("change.cl", &ignored)}, {NULL, NULL}};
    struct cox_pass passes[] = {{.source = read_file("scale.cl", &ignored), .options = "-DBITS=1"}, {0}};
    struct cox_session_params params = {
        .columns = W, .rows = H, .passes = passes, .headers = headers, .libraries = libraries, .no_profile = true};
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    if (argc > 2) {
        passes[0] = (struct cox_pass){
            .source = "kernel void scale(global const uint *in, global uint *out, int columns, int rows);",
            .code = read_file(argv[2], &bytes)};
        passes[0].code_bytes = bytes;
        params.headers = params.libraries = NULL;
    }

    cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu",
                                                                              .cache_dir = argv[1],
                                                                              .log_level = COX_LOG_INFO,
                                                                              .log = on_log},
                                           &runtime);
    const double began = now();
    for (unsigned i = 0; i < W * H; i++)
        in[i] = i * 2654435761u;
    if (!status)
        status = cox_session_create(runtime, &params, &session);
    const double created = now();
    if (!status)
        status = cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in, out)});
    printf("create %.3f s, first frame %.3f s\n", created - began, now() - created);
    for (unsigned i = 0; !status && i < W * H; i++)
        if (out[i] != ((in[i] * 3 + 7) ^ 1))
            status = COX_E_MISMATCH;
    puts(cox_status_text(status));
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
END
# shellcheck disable=SC2086 # no option is no argument
expect_status 0 'compiling app.c' "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $sanitizer -I"$source/include" app.c \
    -o app -L"$lib" -lcoxswain -Wl,-rpath,"$lib"

# --- The cache ---
run 0 'a kernel' --compile --devices cpu --options -DBITS=1 --headers headers --library change.cl --output code scale.cl
contains out '^scale.cl: compiled in [0-9.]+ s$'
kept=$(kept)
check "$kept files" [ "$kept" -ge 1 ]
expect_status 0 'the application' ./app "$XDG_CACHE_HOME/coxswain"
contains out '^success$'
equal "$(kept)" "$kept" 'the application compiled something else'

# --- The file ---
mkdir none
expect_status 0 'an application with code' ./app none code
contains out '^success$'
lacks out 'left out'
printf x | dd of=code bs=1 seek=5000 conv=notrunc 2>/dev/null
expect_status 1 'damaged code' ./app none code
contains out 'the compiled code is damaged'

# A file of before stays until the new one is whole. A link stays, and what a killed process left is reused.
echo before >kept
denies 1 'scale.h' 'a source that does not compile' --compile --devices cpu --output kept scale.cl
equal "$(cat kept)" before 'the file of before'
ln -s kept link
echo garbage >kept.tmp
run 0 'a link as output' --compile --devices cpu --options -DBITS=1 --headers headers --library change.cl --output link scale.cl
check 'the link is gone' [ -L link ]
check 'a temporary file is left' [ ! -e kept.tmp ]
expect_status 0 'an application with code from a link' ./app none kept
ln -s /dev/null kept.tmp
denies 1 'cannot write kept' 'a link in place of the temporary file' --compile --devices cpu --options -DBITS=1 \
    --headers headers --library change.cl --output kept scale.cl

# --- Errors ---
denies 1 'scale.h' 'a header is missing' --compile --devices cpu scale.cl
denies 1 'the sources do not link' 'a library is missing' --compile --devices cpu --headers headers scale.cl
denies 1 '^cox-devices: none.cl: No such file or directory$' 'no file' --compile none.cl
denies 1 '^cox-devices: nowhere: No such file or directory$' 'no folder' --compile --headers nowhere scale.cl
denies 1 'nowhere/code: No such file or directory' 'no place for the output' --compile --devices cpu \
    --options -DBITS=1 --headers headers --library change.cl --output nowhere/code scale.cl
denies 2 "unexpected argument 'change.cl'" 'two files' --compile scale.cl change.cl
denies 2 "unexpected argument 'scale.cl'" 'no --compile' scale.cl
for option in options headers library output; do
    denies 2 "^cox-devices: --$option needs --compile and a FILE.cl$" "--$option" --compile --$option x
done
printf 'a\000b' >zero.cl
denies 1 'zero.cl: this is not a text' 'a byte of 0' --compile zero.cl
finish
