#!/bin/sh
# The harness for tests of cox-tonemap: scripts with the arguments BIN_DIR SOURCE_DIR source this instead of harness.sh.
# $tonemap is the program.
#
# Checks:
#   refuses STATUS PATTERN WHAT ARGS...   it fails with this status and one line on standard error, and leaves no file
#   hashes EXPECTED WHAT ARGS...          the frames have this hash;  hash_of: the hash that --hash printed last
#   is_png FILE WIDTH HEIGHT DEPTH        the file is such a PNG;  number FILE OFFSET BYTES: a big-endian number in it
#   last_line PATTERN                     the last line on standard output matches
#   whole FILE FRAME_BYTES [FRAMES]       the y4m file ends with a whole frame; sets $frames
#   alike FILE FILE LEAST                 the PSNR of each plane is at least LEAST dB, or any for -; sets $psnr
#
# For wait_until:
#   appears FILE PATTERN                  a line that ends in CR or LF matches
#   catches_term PID                      the program catches SIGTERM
#   writes PID                            the program has a file in $work/d open, even one without a name
#
# Runs under a condition:
#   limited BLOCKS COMMAND...             with a limit on file sizes, in units of 512 bytes
#   closed FD COMMAND...                  with that standard stream closed
#
# Inputs, in $work:
#   make_picture                          small.pfm, 64 x 48, grey, with one pixel of 20 times SDR white
#   make_clips                            clip.y4m and clip.yuv, 12 frames of 64 x 48; odd.y4m and odd.yuv, 3 frames of
#                                         37 x 21; frame, the first frame of clip.y4m
#   endless FIFO                          make the pipe and write a film to it without end, until no process reads it
#   hold FIFO                             make the pipe and write the clip to it, then leave it open
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS
tonemap=$bin/cox-tonemap
data=$source/examples/data
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"

# Skips if this build has no libavformat, which its error message says.
need_libavformat() {
    printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420p10\n' >"$work/none.y4m"
    ! "$tonemap" "$work/none.y4m" -o "$work/none.mkv" 2>&1 | grep -q 'built without libavformat' ||
        skip "this build has no libavformat"
}

bytes() { wc -c <"$1" | tr -d ' '; }
hash_of() { sed -n 's/^hash  *\([0-9a-f]\{16\}\)  [a-z]*$/\1/p' "$work/out"; }
nothing_left() { equal "$(ls -A "$work/d")" '' 'left behind'; }

program() { "$tonemap" "$@"; }

refuses() {
    h_pattern=$2
    h_status=$1
    shift 2
    denies "$h_status" "^cox-tonemap: .*($h_pattern)" "$@"
    equal "$(wc -l <"$work/err")" 1 'lines of the error'
    nothing_left
    clean
}

hashes() {
    h_hash=$1
    shift
    run 0 "$@" --hash
    equal "$(hash_of)" "$h_hash" hash
}

last_line() {
    tail -n 1 "$work/out" >"$work/last"
    contains "$work/last" "$1"
}

alike() {
    ffmpeg -nostdin -hide_banner -i "$1" -i "$2" -lavfi psnr -f null - 2>"$work/psnr"
    psnr=$(sed -n 's/.*PSNR \(y:[^ ]* u:[^ ]* v:[^ ]*\) .*/\1/p' "$work/psnr")
    h_worst=$(echo "$psnr" | tr ' ' '\n' | sed 's/.*://; s/inf/999/' | sort -n | head -n 1)
    check "no PSNR of $1 and $2" [ -n "$h_worst" ]
    [ "$3" = - ] || check "$1 and $2: $psnr, which is less than $3 dB" awk -v a="$h_worst" -v b="$3" 'BEGIN { exit !(a >= b) }'
}

limited() { (ulimit -f "$1" && shift && exec "$@"); }
closed() {
    h_stream=$1
    shift
    case $h_stream in
    0) "$@" <&- ;;
    1) "$@" >&- ;;
    2) "$@" 2>&- ;;
    esac
}

number() {
    # shellcheck disable=SC2046
    set -- $(od -An -tu1 -j "$2" -N "$3" "$1")
    value=0
    for byte; do value=$((value * 256 + byte)); done
    echo "$value"
}

is_png() {
    equal "$(od -An -tx1 -N 8 "$1" | tr -d ' \n')" 89504e470d0a1a0a "the first bytes of $1"
    equal "$(number "$1" 16 4) x $(number "$1" 20 4)" "$2 x $3" "the size of $1"
    equal "$(number "$1" 24 1)" "$4" "the depth of $1"
    equal "$(tail -c 8 "$1" | od -An -tx1 | tr -d ' \n')" 49454e44ae426082 "the end of $1"
}

appears() { tr '\r' '\n' <"$1" | grep -Eq -- "$2"; }
writes() { find "/proc/$1/fd" -lname "$work/d/*" | grep -q .; }
catches_term() { catches "$1" 15; }

# --- Clips -----------------------------------------------------------------------------------------------------------
frame8=4608 # bytes of a frame of 64 x 48, 4:2:0, 8 bits
frame10=9216

# samples WIDTH HEIGHT FRAME: 4:2:0, 10 bits; brighter from frame 6 on.
samples() {
    # shellcheck disable=SC2059
    printf "$(awk -v w="$1" -v h="$2" -v n="$3" '
        function put(v) { printf "\\%03o\\%03o", v % 256, int(v / 256) }
        BEGIN {
            for (y = 0; y < h; y++)
                for (x = 0; x < w; x++)
                    put(n < 6 ? 64 + (x * 13 + y * 7 + n * 29) % 437 : 300 + (x * 5 + y * 3 + n * 11) % 600)
            for (c = 0; c < 2; c++)
                for (y = 0; y < int((h + 1) / 2); y++)
                    for (x = 0; x < int((w + 1) / 2); x++)
                        put(512 + (c ? x - y : y - x) * 3 + n % 5)
        }')"
}

# clip WIDTH HEIGHT FRAMES NAME: the film in $work/NAME.y4m and .yuv.
clip() {
    printf 'YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420p10\n' "$1" "$2" >"$work/$4.y4m"
    n=0
    while [ $n -lt "$3" ]; do
        samples "$1" "$2" $n >"$work/samples"
        cat "$work/samples" >>"$work/$4.yuv"
        { echo FRAME && cat "$work/samples"; } >>"$work/$4.y4m"
        n=$((n + 1))
    done
}

make_picture() {
    {
        printf 'Pf\n64 48\n-1.0\n'
        awk 'BEGIN { for (i = 0; i < 3071; i++) printf "%s", "\\000\\000\\200\\076" }' >"$work/grey"
        # shellcheck disable=SC2059
        printf "$(cat "$work/grey")"
        printf '\000\000\240\101'
    } >"$work/small.pfm"
}

make_clips() {
    clip 64 48 12 clip
    clip 37 21 3 odd
    { echo FRAME && head -c $frame10 "$work/clip.yuv"; } >"$work/frame"
}

whole() {
    h_rest=$(($(bytes "$1") - $(head -n 1 "$1" | wc -c)))
    frames=$((h_rest / ($2 + 6)))
    equal $((h_rest % ($2 + 6))) 0 "bytes behind the last whole frame of $1"
    [ $# -lt 3 ] || equal $frames "$3" "frames of $1"
}

# A new pipe each time: a reader of the old one may still be alive.
new_pipe() {
    rm -f "$1"
    mkfifo "$1"
}

endless() {
    new_pipe "$1"
    {
        head -n 1 "$work/clip.y4m"
        while cat "$work/frame" "$work/frame" "$work/frame" "$work/frame"; do :; done
    } >"$1" 2>/dev/null &
    feeder=$!
    owned $feeder
}

hold() {
    new_pipe "$1"
    {
        cat "$work/clip.y4m"
        exec sleep 3600
    } >"$1" &
    feeder=$!
    owned $feeder
}
