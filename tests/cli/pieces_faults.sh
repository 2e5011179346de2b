#!/bin/sh
# The steps of a film in pieces, killed at random moments and with too little disk space. A file is complete or does
# not exist, the number of leftover files does not grow, and another start gives the same bytes as an undisturbed one.
#
#   [COX_KILLS=6] [COX_SEED=1] sh pieces_faults.sh BIN_DIR SOURCE_DIR
#
# COX_KILLS: how often each step that uses devices is killed. Other steps are killed three times as often.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
kills=${COX_KILLS:-6}
seed=${COX_SEED:-1}
need ffmpeg
need_device

# --- Results of undisturbed steps ---

film="$work/film.y4m"
light='0.75+0.2*sin(N/9)'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=16,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb=512:cr=512" \
    -frames:v 360 -strict -1 -f yuv4mpegpipe "$film" 2>"$work/err" || skip "this ffmpeg cannot make the film"
right="$work/right"
mkdir "$right"
cd "$right" || exit 1
run 0 'one run over the whole' "$film" -o joined.y4m -q --lookahead 1
for part in 1 2; do run 0 "analyse $part" analyse "$film" --share $part/2 -o $part.part -q --lookahead 1; done
run 0 'steer' steer 1.part 2.part -o film.scene -q
sed 's/^scene 0$/scene 0 peak 700/' film.scene >changed.scene
for part in 1 2; do run 0 "map $part" map "$film" --scene film.scene --share $part/2 -o $part.y4m -q; done
encoded=
if "$tonemap" "$film" --scene film.scene -o joined.mkv -q --encoder ffv1 2>"$work/err"; then
    encoded=yes
    for part in 1 2; do run 0 "map $part.mkv" map "$film" --scene film.scene --share $part/2 -o $part.mkv -q --encoder ffv1; done
else
    leave_out 'encoded pieces' "$(cat "$work/err")"
fi
clean

# is FILE RIGHT: the same bytes. Containers hold random numbers, so for them the same frames at the same times.
frames_of() { ffmpeg -v error -i "$1" -f framemd5 - 2>&1; }
is() {
    case $1 in
    *.mkv) [ "$(frames_of "$1")" = "$(frames_of "$2")" ] ;;
    *) cmp -s "$1" "$2" ;;
    esac
}

# --- Killed ---

# kill_after SECONDS COMMAND...: without a message from the shell.
kill_after() { (timeout -s KILL "$@" && exit 0; exit $?) 2>/dev/null; }

# killed TIMES BEFORE OUTPUT ARGS...: run the step and kill it at TIMES different moments. BEFORE is an existing file
# that the step is to replace, or ''. A kill that came too late does not count, and the next one comes sooner.
killed() {
    times=$1
    before=$2
    output=$3
    shift 3
    [ -z "$before" ] || set -- "$@" --overwrite
    what="$1 to $output${before:+ over $before}"
    set -- "$tonemap" "$@" -o "$output"
    began=$(date +%s%N)
    check 'undisturbed' "$@" -q
    took_us=$((($(date +%s%N) - began) / 1000))
    clean
    most=0
    seed=$((seed + 1))
    # shellcheck disable=SC2013
    for part in $(awk -v n="$times" -v seed=$seed 'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "%.4f ", rand() }'); do
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            [ -z "$before" ] || cp "$right/$before" "$output"
            delay=$(awk -v part="$part" -v us=$took_us 'BEGIN { printf "%.6f", (part * us + 10) / 1e6 }')
            status=0
            kill_after "$delay" "$@" -q >"$work/out" 2>"$work/err" || status=$?
            if [ -e "$output" ]; then
                is "$output" "$right/$output" || { [ -n "$before" ] && is "$output" "$right/$before"; } || fail "after $delay s: half a file"
            elif [ -n "$before" ]; then
                fail "after $delay s: the file of before is gone"
            fi
            rm -f "$output"
            left=$(find . -mindepth 1 | wc -l)
            [ "$left" -le "$most" ] || most=$left
            [ $status -ne 137 ] || break
            took_us=$((took_us * 3 / 4))
        done
        equal $status 137 'the kill, in twenty tries'
    done
    check "$most files are left" [ "$most" -le 1 ]
    expect_status 0 "$what: another start" "$@"
    check 'it gives another file' is "$output" "$right/$output"
    equal "$(ls -A)" "$output" 'files'
    expect_status 0 "$what: a third start" "$@"
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

# --- No disk space ---

disk=
mkdir "$work/full"
if mount -t tmpfs -o size=4k tmpfs "$work/full" 2>"$work/err"; then
    disk=yes
    at_exit "umount '$work/full'"
else
    leave_out 'a full disk' "none can be mounted: $(cat "$work/err")"
fi
# tried REASON OUTPUT ARGS...: check the message and the files of a step that had no disk space.
tried() {
    equal "$(wc -l <"$work/err")" 1 'lines'
    contains err "^cox-tonemap: $2: cannot be written.*: $1\$"
    equal "$(ls -A)" '' 'files'
}
# finishes OUTPUT ARGS...: with enough space the step succeeds.
finishes() {
    output=$1
    shift
    run 0 "$what: another start" "$@" -o "$output" -q
    check 'it gives another file' is "$output" "$right/$output"
    rm -f "$output"
}
# short_of_room OUTPUT ARGS...: run the step on a full disk, and with a file size limit of 4 KB.
short_of_room() {
    output=$1
    shift
    expect_status 1 "a limit: $1 to $output" limited 8 "$tonemap" "$@" -o "$output" -q
    tried 'File too large' "$output"
    finishes "$output" "$@"
    [ -n "$disk" ] || return
    cd "$work/full" || exit 1
    run 1 "a full disk: $1 to $output" "$@" -o "$output" -q
    tried 'No space left on device' "$output"
    check 'the disk cannot be made larger' mount -o remount,size=64m "$work/full"
    finishes "$output" "$@"
    check 'the disk cannot be made smaller' mount -o remount,size=4k "$work/full"
    clean
}
short_of_room 1.part analyse "$film" --share 1/2 --lookahead 1
short_of_room film.scene steer "$right/1.part" "$right/2.part"
short_of_room 1.y4m map "$film" --scene "$right/film.scene" --share 1/2
short_of_room joined.y4m join "$right/1.y4m" "$right/2.y4m"
if [ -n "$encoded" ]; then
    short_of_room 1.mkv map "$film" --scene "$right/film.scene" --share 1/2 --encoder ffv1
    short_of_room joined.mkv join "$right/1.mkv" "$right/2.mkv"
fi
finish
