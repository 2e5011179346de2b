#!/bin/sh
# The program in docs/guide/api.md compiles without a warning and does what the text says, with the policy in it too.
# sh api_md.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
lib=$1/../lib
source=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
fail() {
    echo "FAILED: $1"
    cat "$work/log"
    echo "$passed passed, 1 failed"
    exit 1
}

awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/guide/api.md" >"$work/api.c"
# A library with a sanitizer in it wants its programs to have it too.
sanitizer=
if nm -D "$lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi
sed -e 's/^static cox_session \*open_session/extern const struct cox_policy guided;\n&/' \
    -e 's/\.in_flight = 3/.custom_policy = \&guided, &/' "$work/api.c" >"$work/policy.c"
[ "$(grep -c 'guided;$\|&guided,' "$work/policy.c")" -eq 2 ] || fail "the session is not where it was"

for program in api policy; do
    # shellcheck disable=SC2086 # no option is no argument
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror $sanitizer -I"$source/include" "$work/$program.c" -o "$work/$program" \
        -L"$lib" -lcoxswain -lpthread -Wl,-rpath,"$lib" >"$work/log" 2>&1 || fail "$program.c does not compile"
    "$work/$program" >"$work/log" 2>&1
    status=$?
    if [ "$status" -ne 0 ] && grep -q 'no OpenCL' "$work/log"; then
        echo "skipped running it, because this machine has no OpenCL device"
        exit 77
    fi
    [ "$status" -eq 0 ] || fail "$program.c ends with status $status"
    grep -q '^9100000 dark pixels, as expected$' "$work/log" || fail "$program.c counts otherwise"
    grep -q 'guided' "$work/log" && fail "the policy's splits are refused"
    passed=$((passed + 1))
done
# The functions around an AVFrame, where FFmpeg's headers are.
if pkg-config --exists 'libavcodec >= 59.37' 2>/dev/null; then
    {
        awk '/^## / {on = $0 ~ /FFmpeg/} on && /^    / {print substr($0, 5)} on && /^$/' "$source/docs/guide/api.md"
        echo 'int use(cox_runtime **to, struct cox_av_map *map, AVCodecContext *decoder, AVFrame *frame, void (*show)(AVFrame *));'
        echo 'int use(cox_runtime **to, struct cox_av_map *map, AVCodecContext *decoder, AVFrame *frame, void (*show)(AVFrame *))'
        echo '{ return begin(to, map, decoder) + map_one(map, frame, frame, show); }'
    } >"$work/avframe.c"
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$source/include" $(pkg-config --cflags libavcodec libavutil) -c "$work/avframe.c" \
        -o "$work/avframe.o" >"$work/log" 2>&1 || fail "the functions around an AVFrame do not compile"
    passed=$((passed + 1))
fi
echo "$passed passed, 0 failed"
