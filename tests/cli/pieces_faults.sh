#!/bin/sh
# The steps of a film in pieces, killed at random moments and short of room: a file is whole or not there, what is left behind
# does not grow, and another start gives the bytes that an undisturbed one gives.
#
#   [COX_KILLS=20] [COX_SEED=1] sh pieces_faults.sh BIN_DIR SOURCE_DIR
#
# COX_KILLS: how often each step with devices is killed; those without are killed three times as often.
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
kills=${COX_KILLS:-20}
seed=${COX_SEED:-1}
skip() {
    echo "skipped, because $1"
    exit 77
}
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"
work=$(mktemp -d) || exit 1
trap 'umount "$work/full" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
. "$(dirname "$0")/../support/tonemap.sh"
command -v ffmpeg >/dev/null || skip "ffmpeg is missing"

# --- What undisturbed steps give ---

film="$work/film.y4m"
light='0.55+0.4*mod(N*29,97)/97'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=16,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb=512:cr=512" \
    -frames:v 360 -strict -1 -f yuv4mpegpipe "$film" </dev/null 2>"$work/err" || skip "this ffmpeg cannot make the film"
run 0 'one run over the whole' "$film" -o ../whole.y4m -q --lookahead 1
grep -q 'no OpenCL' "$work/err" && skip "this machine has no OpenCL device"
right="$work/right"
mkdir "$right"
cd "$right" || exit 1
for part in 1 2; do
    "$tonemap" analyse "$film" --share $part/2 -o $part.part -q --lookahead 1 || fail "analyse $part"
done
"$tonemap" steer 1.part 2.part -o film.scene -q || fail 'steer'
sed 's/^scene 0$/scene 0 peak 700/' film.scene >changed.scene
for part in 1 2; do
    "$tonemap" map "$film" --scene film.scene --share $part/2 -o $part.y4m -q || fail "map $part"
done
cp "$work/whole.y4m" joined.y4m
encoded=yes
"$tonemap" "$film" --scene film.scene -o joined.mkv -q --encoder ffv1 2>"$work/err" || encoded=
if [ -n "$encoded" ]; then
    for part in 1 2; do
        "$tonemap" map "$film" --scene film.scene --share $part/2 -o $part.mkv -q --encoder ffv1 || fail "map $part.mkv"
    done
else
    echo "encoded pieces were not tried: $(cat "$work/err")"
fi
cd "$work" || exit 1

frames_of() { ffmpeg -v error -i "$1" -f framemd5 - </dev/null 2>&1; }
# same FILE RIGHT: the same bytes; of containers, whose makers draw random numbers for them, the same frames at the same times.
same() {
    case $1 in
    *.mkv) [ "$(frames_of "$1")" = "$(frames_of "$2")" ] ;;
    *) cmp -s "$1" "$2" ;;
    esac
}

# --- Killed ---

now_ms() { date +%s%3N; }
# undisturbed ARGS...: sets `took` to the step's duration in ms, the shortest of three.
undisturbed() {
    took=100000
    for _ in 1 2 3; do
        clean
        began=$(now_ms)
        (cd "$work/d" && "$tonemap" "$@" -q) 2>"$work/err" || fail "undisturbed: $*"
        this=$(($(now_ms) - began))
        [ $this -ge $took ] || took=$this
    done
    clean
}

# killed TIMES BEFORE OUTPUT ARGS...: the step, killed at so many moments of its duration; BEFORE, or '', is the file that stands in
# the output's place and that the step is to replace.
killed() {
    times=$1
    before=$2
    output=$3
    shift 3
    [ -z "$before" ] || set -- "$@" --overwrite
    what_of="$1 to $output${before:+ over $before}"
    undisturbed "$@" -o "$output"
    struck=0
    most=0
    seed=$((seed + 1))
    for delay in $(LC_ALL=C awk -v n="$times" -v ms="$took" -v seed=$seed \
        'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "%.4f ", (rand() * ms + 1) / 1000 }'); do
        [ -z "$before" ] || cp "$right/$before" "$work/d/$output"
        (
            (cd "$work/d" && exec timeout -s KILL "$delay" "$tonemap" "$@" -o "$output" -q) >"$work/out" 2>"$work/err" </dev/null
            exit $?
        ) 2>/dev/null # where the shell says 'Killed'
        [ $? -ne 137 ] || struck=$((struck + 1))
        if [ -e "$work/d/$output" ]; then
            same "$work/d/$output" "$right/$output" || { [ -n "$before" ] && same "$work/d/$output" "$right/$before"; } ||
                fail "$what_of, killed after $delay s: half a file"
        elif [ -n "$before" ]; then
            fail "$what_of, killed after $delay s: the file of before is gone"
        fi
        rm -f "$work/d/$output"
        left=$(find "$work/d" -mindepth 1 | wc -l)
        [ "$left" -le $most ] || most=$left
    done
    if [ $struck -ge $((times / 8)) ]; then pass; else fail "$what_of: $struck of $times were killed"; fi
    if [ $most -le 1 ]; then pass; else fail "$what_of: $most files are left"; fi
    run 0 "$what_of: another start" "$@" -o "$output"
    if same "$work/d/$output" "$right/$output"; then pass; else fail "$what_of: another start gives another file"; fi
    equal "$(ls -A "$work/d")" "$output" "$what_of: another start leaves"
    run 0 "$what_of: a third start" "$@" -o "$output" ${before:+--overwrite}
    echo "killed: $what_of, $struck of $times within $took ms"
    clean
}

often=$((kills * 3))
killed "$kills" '' 1.part analyse "$film" --share 1/2 --lookahead 1
killed $often '' film.scene steer "$right/1.part" "$right/2.part"
killed $often changed.scene film.scene steer "$right/1.part" "$right/2.part"
killed "$kills" '' 1.y4m map "$film" --scene "$right/film.scene" --share 1/2
killed $often 1.y4m joined.y4m join "$right/2.y4m" "$right/1.y4m"
if [ -n "$encoded" ]; then
    killed "$kills" '' 1.mkv map "$film" --scene "$right/film.scene" --share 1/2 --encoder ffv1
    killed $often 1.mkv joined.mkv join "$right/2.mkv" "$right/1.mkv"
fi

# --- No room ---

# tried KIND REASON PLACE OUTPUT ARGS...: what is to be seen of a step that had no room.
tried() {
    what_of="$1: $5 to $4"
    equal "$status" 1 "$what_of: status"
    equal "$(cat "$work/err" | wc -l)" 1 "$what_of: lines"
    has err "^cox-tonemap: $4: cannot be written.*: $2\$" "$what_of"
    equal "$(ls -A "$3")" '' "$what_of: is left"
}
# finishes KIND PLACE OUTPUT ARGS...: with room it goes well.
finishes() {
    what_of="$1: $4 to $3"
    place=$2
    output=$3
    shift 3
    (cd "$place" && "$tonemap" "$@" -o "$output" -q) 2>"$work/err" </dev/null || fail "$what_of: another start"
    if same "$place/$output" "$right/$output"; then pass; else fail "$what_of: another start gives another file"; fi
    rm -f "$place/$output"
}
# short_of_room OUTPUT ARGS...: on a full disk, and where a file may have 4 KB.
short_of_room() {
    output=$1
    shift
    (cd "$work/d" && ulimit -f 8 && exec "$tonemap" "$@" -o "$output" -q) >"$work/out" 2>"$work/err" </dev/null
    status=$?
    tried 'a limit' 'File too large' "$work/d" "$output" "$@"
    finishes 'a limit' "$work/d" "$output" "$@"
    [ -n "$disk" ] || return
    (cd "$work/full" && exec "$tonemap" "$@" -o "$output" -q) >"$work/out" 2>"$work/err" </dev/null
    status=$?
    tried 'a full disk' 'No space left on device' "$work/full" "$output" "$@"
    mount -o remount,size=64m "$work/full" || fail 'the disk cannot be made larger'
    finishes 'a full disk' "$work/full" "$output" "$@"
    mount -o remount,size=4k "$work/full" || fail 'the disk cannot be made smaller'
}
mkdir "$work/full"
disk=yes
mount -t tmpfs -o size=4k tmpfs "$work/full" 2>"$work/err" || {
    disk=
    echo "a full disk was not tried, because none can be mounted: $(cat "$work/err")"
}
short_of_room 1.part analyse "$film" --share 1/2 --lookahead 1
short_of_room film.scene steer "$right/1.part" "$right/2.part"
short_of_room 1.y4m map "$film" --scene "$right/film.scene" --share 1/2
short_of_room joined.y4m join "$right/1.y4m" "$right/2.y4m"
if [ -n "$encoded" ]; then
    short_of_room 1.mkv map "$film" --scene "$right/film.scene" --share 1/2 --encoder ffv1
    short_of_room joined.mkv join "$right/1.mkv" "$right/2.mkv"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
