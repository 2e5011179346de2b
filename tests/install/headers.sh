#!/bin/sh
# Each public header, and the initialisers, compile alone as C11 and as C++17 without a warning. The compilers are that
# of the build, and GCC and Clang if they are installed.
#   headers.sh CC SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/harness.sh"
include=$source/include
warnings="-pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Werror"
# found COMPILER...: the installed ones, each once.
found() {
    for compiler in "$@"; do
        command -v "$compiler" || true
    done | sort -u
}
c_compilers=$(found "$1" gcc clang)
cxx_compilers=$(found ${CXX:-c++} g++ clang++)
[ "$cxx_compilers" ] || leave_out "C++" "no compiler is installed"

# compiled WHAT STANDARD...: compile alone.c as C11, and as C++ of these standards, with each compiler.
compiled() {
    about=$1
    shift
    for cc in $c_compilers; do
        expect_status 0 "$about as C11, with $cc" "$cc" -std=c11 $warnings -Wstrict-prototypes -fsyntax-only $more -I "$include" alone.c
        equal "$(cat "$work/err")" '' 'warnings'
    done
    cp alone.c alone.cpp
    for standard; do
        for cxx in $cxx_compilers; do
            expect_status 0 "$about as C++$standard, with $cxx" "$cxx" -std=c++$standard $warnings -fsyntax-only $more -I "$include" alone.cpp
        done
    done
}
for header in "$include"/coxswain/*.h; do
    name=coxswain/$(basename "$header")
    more=
    if [ "$name" = coxswain/libav.h ]; then
        pkg-config --exists 'libavcodec >= 59.37' || { leave_out "$name" "FFmpeg's headers are not installed"; continue; }
        more=$(pkg-config --cflags libavcodec libavutil)
    fi
    echo "#include <$name>" >alone.c
    compiled "$name" 17
done
more=
cat >alone.c <<'END'
#include <coxswain/coxswain.h>
struct constants { int first; float second; };
extern const struct cox_field fields[3];
const struct cox_field fields[3] = {COX_FIELD(struct constants, first), COX_FIELD(struct constants, second), {0, 0, 0}};
#ifndef __cplusplus /* literals of arrays are C's */
extern const struct cox_pass *list(void);
extern void use(const struct cox_pass *list, const void *const *data);
extern void call(const void *in, void *out);
void call(const void *in, void *out)
{
    use(COX_LIST(struct cox_pass, {.kernel = "f"}, {.kernel = "g", .fused = true}), COX_ARGS(in, out));
}
#endif
END
compiled "the initialisers" 17 20
finish
