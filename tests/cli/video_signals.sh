#!/bin/sh
# How cox-tonemap ends a film: signals, pipes that close early, impossible outputs. Also what limited its speed, and
# the progress line of a film without an end.
#   sh video_signals.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need_device
make_clips
clip=$work/clip.y4m
pipe=$work/pipe

has_bytes() { [ "$(bytes "$1")" -ge "$2" ]; } # FILE NUMBER

# --- What limited the speed ---

# The slowest part is a program that writes to a pipe. It writes all frames, and then stays twice as long as it has run
# so far. So it is the slowest part on any machine.
what='a slow program before the pipe'
new_pipe "$work/hold"
new_pipe "$pipe"
cat "$clip" "$work/hold" >"$pipe" &
owned $!
: >a.nv12
began=$(date +%s)
start "$tonemap" "$pipe" -o a.nv12
wait_until 600 'all frames' has_bytes a.nv12 $((12 * frame8))
sleep $((2 * ($(date +%s) - began + 1)))
: <>"$work/hold" # opened for reading and writing, so that this cannot block if the program has ended
ends $pid 120
equal $status 0 'status'
contains out '^waited .*: bound by cat, which writes to the pipe$'
clean

# --- The progress line ---

if script -qec true /dev/null >/dev/null 2>&1; then
    what='a live line on a terminal'
    endless "$pipe"
    TERM=xterm start script -qec "'$tonemap' '$pipe' -o null: --devices cpu:1x1" /dev/null
    wait_until 120 'the live line' appears "$work/out" '^[0-9]+ frames  [0-9.]+ frames/s'
    stop $pid $feeder
    refute 'progress of what has no end' appears "$work/out" '^[0-9]* frames .*\[[> ]'
else
    leave_out 'the live line' 'script (bsdutils) is not installed'
fi

# --- Interruption ---

# interrupt SIGNAL STATUS FRAMES WHAT: interrupt the program when it has written this many frames.
interrupt() {
    what=$4
    : >a.y4m
    start "$tonemap" "$pipe" -o a.y4m
    wait_until 120 "$3 frames" has_bytes a.y4m $(($3 * (frame8 + 6)))
    kill -"$1" $pid
    ends $pid 120
    equal $status "$2" 'status'
    whole a.y4m $frame8
    contains err "^cox-tonemap: interrupted after $frames frames\$"
    contains out "^result +$frames frames"
    stop $feeder
    clean
}
endless "$pipe"
interrupt INT 130 4 'interrupted at work'
endless "$pipe"
interrupt TERM 143 4 'terminated at work'
hold "$pipe"
interrupt INT 130 12 'interrupted while it waits for a pipe'

# Both signals are sent while the program is stopped, so that it gets them together even on a busy machine.
what='two signals at once are one'
endless "$pipe"
start "$tonemap" "$pipe" -o a.y4m
wait_until 120 'a handler for SIGTERM' catches_term $pid
kill -STOP $pid
kill -TERM $pid
kill -HUP $pid
kill -CONT $pid
ends $pid 120
case $status in
143 | 129) pass ;;
*) fail "status $status" ;;
esac
contains err '^cox-tonemap: interrupted'
stop $feeder
clean

# An output that nobody reads. After the first signal the program still waits for it, after the second it does not.
what='interrupted twice'
mkfifo out.y4m
sleep 3600 <>out.y4m &
owned $!
holder=$!
new_pipe "$pipe"
{
    printf 'YUV4MPEG2 W1024 H1024 F25:1 C420p10\nFRAME\n'
    head -c 3145728 /dev/zero
    exec sleep 3600
} >"$pipe" &
owned $!
feeder=$!
start "$tonemap" "$pipe" -o out.y4m
# The bytes after the header belong to the frame, which is larger than any pipe. So from here on the program waits.
timeout 120 head -c 200 out.y4m >/dev/null
kill -TERM $pid
sleep 0.5
refute 'the frames under way are lost' gone $pid
again() { # a signal half a second after the first one counts as the second
    kill -TERM "$pid" 2>/dev/null
    sleep 1
    gone "$pid"
}
wait_until 60 'an end at the second signal' again
ends $pid 1
equal $status 143 'status'
lacks err 'interrupted after'
stop $holder $feeder
clean

# --- Pipes that close early, impossible outputs ---

what='the reader of the output is gone'
endless "$pipe"
{
    "$tonemap" "$pipe" -o - 2>"$work/err"
    echo $? >"$work/status"
} | head -c 20000 >/dev/null
equal "$(cat "$work/status")" 1 'status'
contains err '^cox-tonemap: standard stream: cannot be written, .*: Broken pipe'
stop $feeder

refuses 1 'no/such/a.y4m: cannot be written: No such file' 'a missing folder' "$clip" -o no/such/a.y4m
refuses 1 'input and output are the same file' 'the folder of the input' "$clip" -o "$work" --to y4m
refuses 1 '/dev/full: cannot be written, .*: No space left' 'a full device' "$clip" -o /dev/full --to y4m
refuses 1 'statistics.*cannot be written|s.json: cannot be written' 'statistics that have no place' "$clip" -o null: --stats no/such/s.json
refuses 2 "x.avi: unknown kind of output; use .mkv, .mp4, .y4m, .nv12, .p010, .png" 'an unknown kind of output' "$clip" -o x.avi

cp "$clip" in.y4m
denies 1 'in.y4m: input and output are the same file; give the output another name' 'the input as output' in.y4m -o ./in.y4m
same "$clip" in.y4m
run 1 'the input as statistics' in.y4m -o null: --stats in.y4m
same "$clip" in.y4m
# shellcheck disable=SC2094 # is to be refused
denies 1 'input and output are the same file' 'the input as output, through standard input' - -o in.y4m <in.y4m
what='the input as output, through standard output'
# shellcheck disable=SC2094
"$tonemap" in.y4m -o - >>in.y4m 2>"$work/err"
equal $? 1 'status'
contains err 'input and output are the same file'
same "$clip" in.y4m
clean

expect_status 1 'standard output is closed' closed 1 "$tonemap" "$clip" -o -
contains err 'standard stream: cannot be written'
expect_status 1 'standard input is closed' closed 0 "$tonemap" - -o a.y4m
nothing_left
expect_status 1 'a limit on file sizes' limited 40 "$tonemap" "$clip" -o a.y4m
contains err '^cox-tonemap: a.y4m: cannot be written, .*: File too large'
whole a.y4m $frame8
finish
