#!/bin/sh
# Each public header compiles alone, as C11 and as C++17, without a warning, and so do the initialisers and literals, as C++20
# too; with the compiler of the build and with GCC and Clang, as far as they are installed.   headers.sh CC SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
include=$2/include
warnings="-pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Werror"
# found COMPILER...: those that are installed, each once.
found()
{
    for compiler in "$@"; do
        command -v "$compiler" || true
    done | sort -u
}
c_compilers=$(found "$1" gcc clang)
cxx_compilers=$(found ${CXX:-c++} g++ clang++)
[ "$cxx_compilers" ] || echo "C++17: skipped, because no C++ compiler is installed"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
count=0
# compile_c WHAT, compile_cxx WHAT STANDARD: $dir/alone.c, .cpp with each compiler.
compile_c()
{
    for cc in $c_compilers; do
        # shellcheck disable=SC2086
        "$cc" -std=c11 $warnings -Wstrict-prototypes -fsyntax-only $more -I "$include" "$dir/alone.c" ||
            { echo "$1 as C11, with $cc: not without a warning"; status=1; }
    done
}
compile_cxx()
{
    for cxx in $cxx_compilers; do
        # shellcheck disable=SC2086
        "$cxx" -std=c++$2 $warnings -fsyntax-only $more -I "$include" "$dir/alone.cpp" ||
            { echo "$1 as C++$2, with $cxx: not without a warning"; status=1; }
    done
}
for header in "$include"/coxswain/*.h; do
    name=coxswain/$(basename "$header")
    more=
    if [ "$name" = coxswain/libav.h ]; then
        pkg-config --exists 'libavcodec >= 59.37' || { echo "$name: skipped, because FFmpeg's headers are not installed"; continue; }
        more=$(pkg-config --cflags libavcodec libavutil)
    fi
    echo "#include <$name>" >"$dir/alone.c"
    cp "$dir/alone.c" "$dir/alone.cpp"
    compile_c "$name"
    compile_cxx "$name" 17
    count=$((count + 1))
done
more=
cat >"$dir/alone.c" <<'END'
#include <coxswain/coxswain.h>
struct cox_frame frame = COX_SIZED(struct cox_frame);
cox_status run(cox_session *session);
cox_status run(cox_session *session)
{
    struct cox_video_shape shape = COX_SIZED(struct cox_video_shape);
    frame.nowait = shape.struct_size != sizeof shape;
    return cox_session_run(session, &frame);
}
END
cat >>"$dir/alone.c" <<'END'
cox_status create(cox_runtime *runtime, cox_session **session);
cox_status create(cox_runtime *runtime, cox_session **session)
{
    return cox_session_create(runtime, COX_SESSION_PARAMS(.policy_options = COX_POLICY_OPTIONS(.device = 1)), session);
}
const struct cox_frame *none(void);
const struct cox_frame *none(void)
{
    return frame.nowait ? &frame : (cox_session_run(NULL, COX_FRAME()) ? NULL : &frame);
}
struct params { int first; float second; };
extern const struct cox_arg args[9];
const struct cox_arg args[9] = {COX_ARG_BUFFER(0), COX_ARG_PARAMS(struct params), COX_ARG_FIELD(struct params, second),
    COX_ARG_FIRST_ROW, COX_ARG_ROWS, COX_ARG_FRAME_ROWS, COX_ARG_ORIGIN(0), COX_ARG_LOCAL(64), COX_ARG_COLUMNS};
END
cp "$dir/alone.c" "$dir/alone.cpp"
compile_c "the initialisers and literals"
for standard in 17 20; do
    compile_cxx "the initialisers and literals" $standard
done
# A literal hides no warning of what is written in it.
sed 's/\.device = 1/.device = (int)frame.buffer_count < sizeof(int)/' "$dir/alone.c" >"$dir/warned.cpp"
for cxx in $cxx_compilers; do
    "$cxx" -std=c++17 -Wall -Wextra -Werror -Wno-sign-compare -fsyntax-only -I "$include" "$dir/warned.cpp" || status=1
    ! "$cxx" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$include" "$dir/warned.cpp" 2>/dev/null ||
        { echo "a comparison of signed and unsigned is not warned of in a literal, with $cxx"; status=1; }
done
[ "$count" -gt 0 ] || { echo "no header found in $include/coxswain"; exit 1; }
echo "$count headers; $(echo $c_compilers $cxx_compilers)"
exit $status
