#!/bin/sh
# Each public header compiles alone, as C11 and as C++17, without a warning, and so do the initialisers and literals, as C++20
# too.   headers.sh CC SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cc=$1
include=$2/include
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "C++17: skipped, because no C++ compiler is installed"; cxx=; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
count=0
for header in "$include"/coxswain/*.h; do
    name=coxswain/$(basename "$header")
    echo "#include <$name>" >"$dir/alone.c"
    cp "$dir/alone.c" "$dir/alone.cpp"
    "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" "$dir/alone.c" ||
        { echo "$name does not compile alone as C11"; status=1; }
    [ -z "$cxx" ] || "$cxx" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" "$dir/alone.cpp" ||
        { echo "$name does not compile alone as C++17"; status=1; }
    count=$((count + 1))
done
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
"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" "$dir/alone.c" ||
    { echo "the initialisers and literals do not compile as C11"; status=1; }
for standard in 17 20; do
    [ -z "$cxx" ] || "$cxx" -std=c++$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" "$dir/alone.cpp" ||
        { echo "the initialisers and literals do not compile as C++$standard"; status=1; }
done
# A literal hides no warning of what is written in it.
sed 's/\.device = 1/.device = (int)frame.buffer_count < sizeof(int)/' "$dir/alone.c" >"$dir/warned.cpp"
if [ -n "$cxx" ]; then
    "$cxx" -std=c++17 -Wall -Wextra -Werror -Wno-sign-compare -fsyntax-only -I "$include" "$dir/warned.cpp" || status=1
    ! "$cxx" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$include" "$dir/warned.cpp" 2>/dev/null ||
        { echo "a comparison of signed and unsigned is not warned of in a literal"; status=1; }
fi
[ "$count" -gt 0 ] || { echo "no header found in $include/coxswain"; exit 1; }
echo "$count headers"
exit $status
