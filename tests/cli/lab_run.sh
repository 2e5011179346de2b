#!/bin/sh
# cox-lab run: what it refuses, what it records, each disturbance that this machine allows, and that no process of its own
# outlives it. Its bars on time are for a quiet machine, not for a test.   sh lab_run.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=run
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES POCL_AFFINITY
# Where a single vendor file is named instead of a folder, no other platform is wanted.
only=
if [ -f "${OCL_ICD_VENDORS:-}" ]; then
    only=$OCL_ICD_VENDORS
    unset OCL_ICD_VENDORS
fi
# shellcheck source=tests/support/setups.sh
. "$2/tests/support/setups.sh"

# holds QUERY RESULT: what the database says
holds() {
    command -v sqlite3 >/dev/null || return 0
    found=$(sqlite3 "$work/s.db" "$1" 2>&1)
    if [ "$found" = "$2" ]; then pass; else fail "$1: '$found' instead of '$2'"; fi
}

# --- What is refused -------------------------------------------------------------------------------------------------
run 0 "help" --help
shows out "gpu-hog@A:B"
run 2 "an argument too many" session.db
shows err "session.db"
run 2 "unknown option" --fast
run 2 "unknown kernel" --kernel sobel
shows err "tonemap, video and work"
run 2 "unknown policy" --policy adaptive,fastest
shows err "'fastest'"
shows err "mean10"
run 2 "an empty policy" --policy adaptive,
run 2 "a policy twice" --policy ewma,ewma
shows err "named twice"
run 2 "without a pool where there is none" --policy ewma:no-pool
shows err "hands out no rows"
run 2 "an unknown way of a policy" --policy adaptive:fast
run 2 "the oracle as a policy" --policy oracle
shows err "found by sweeping"
run 2 "no frames" --frames 0
run 2 "frames that are no number" --frames 1e99
run 2 "too many in flight" --in-flight 17
run 2 "a size of nothing" --size 0x0
run 2 "a huge size" --size 99999x99999
shows err "16384"
run 2 "a size without a height" --size 640
run 2 "ratio of another kernel" --kernel tonemap --ratio 2
run 2 "ratio out of range" --kernel work --ratio 0
run 2 "unknown disturbance" --disturb earthquake@1:2
shows err "hog, gpu-hog, quota and delay"
run 2 "a disturbance without frames" --disturb hog
run 2 "a disturbance without an end" --disturb hog@5
run 2 "one that ends before it starts" --disturb hog@9:5
shows err "end before it starts"
run 2 "one that ends as it starts" --disturb hog@5:5
run 2 "one that goes on after the run" --frames 10 --disturb hog@5:11
shows err "10 frames"
run 2 "a quota of nothing" --disturb quota=0@1:2
run 2 "a delay without a device" --disturb delay=100@1:2
run 2 "unknown objective" --objective comfort
run 2 "a deadline without the objective" --deadline 5
run 2 "a deadline that is no number" --objective energy --deadline soon
mkdir "$work/no-meter"
run 2 "energy without a meter" --objective energy --powercap "$work/no-meter" -o "$work/energy.db"
shows err "no RAPL package"
run 1 "unknown device" --devices no-such-device -o "$work/refused.db"
shows err "no-such-device"

echo "dear diary" >"$work/text.db"
run 1 "a file that is no database" -o "$work/text.db"
shows err "text.db"
if [ "$(cat "$work/text.db")" = "dear diary" ]; then pass; else fail "the file was changed"; fi
run 1 "a folder that is not there" -o "$work/nowhere/s.db"
if command -v sqlite3 >/dev/null; then
    sqlite3 "$work/other.db" "PRAGMA application_id = 1129273420; PRAGMA user_version = 999; CREATE TABLE run(run)"
    run 1 "a database of another version" -o "$work/other.db"
    shows err "version"
    sqlite3 "$work/foreign.db" "CREATE TABLE notes(text)"
    run 1 "a database of another program" -o "$work/foreign.db"
fi

# --- A run on one device, then on two ----------------------------------------------------------------------------------
able "cox-lab run on devices" pocl || { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ]; exit; }
export OCL_ICD_VENDORS="$work/pocl"
small="--size 64x96 --rounds 2 --frames 12 -o $work/s.db"

# shellcheck disable=SC2086 # words of $small
run 0 "one device" --devices cpu:1x1 --kernel tonemap $small
shows out "device 0 alone"
shows out "oracle .* rows 96 of 96"
shows out "phase 0: frames 0 to 11, undisturbed"
shows out "energy: not measured"
shows out "run 1"
shows out "0.00 GB of frames in memory"
holds "SELECT finished, kernel, columns, rows, frames, in_flight FROM run" "1|tonemap|64|96|12|1"
holds "SELECT count(*) FROM frame JOIN session USING(session) WHERE kind = 'policy'" 12
holds "SELECT count(*) FROM reference WHERE ns > 0 AND frames > 0" 2
holds "PRAGMA integrity_check" ok
lines=$(wc -l <"$work/err")
if [ "$lines" -eq 0 ]; then pass; else fail "progress where there is no terminal"; fi

mkdir -p "$work/meter/intel-rapl:0"
echo package-0 >"$work/meter/intel-rapl:0/name"
echo 262143328850 >"$work/meter/intel-rapl:0/max_energy_range_uj"
echo 1000000 >"$work/meter/intel-rapl:0/energy_uj"
# shellcheck disable=SC2086
run 0 "energy with a meter" --devices cpu:1x1 $small --objective energy --deadline 100 \
    --powercap "$work/meter"
shows out "energy: RAPL: package-0"
holds "SELECT objective, deadline_ns, meter FROM run WHERE run = 2" "energy|100000000|RAPL: package-0"
holds "SELECT count(*) > 0, min(joules) >= 0 FROM frame JOIN session USING(session)
    WHERE run = 2 AND kind = 'policy' AND joules IS NOT NULL" "1|1"

if ! able "cox-lab run on two devices" cores; then
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi
two="--devices cpu:2x1 $small"

# shellcheck disable=SC2086
run 0 "two devices, three policies, a hog" $two --kernel video --policy adaptive,last-frame,single --disturb hog=0@4:8
shows out "phase 1: frames 4 to 7, hog=0"
shows out "disturbance: hog=0@4:8, real, on CPU 0"
shows out "last-frame: T/T_oracle"
holds "SELECT count(*) FROM phase WHERE run = 3" 3
holds "SELECT kind, text, first_frame, end_frame, real FROM disturbance WHERE run = 3" "hog|hog=0@4:8|4|8|1"
holds "SELECT policy, count(*), sum(phase = 1) FROM frame JOIN session USING(session)
    WHERE run = 3 AND kind = 'policy' GROUP BY policy" "adaptive|12|4
last-frame|12|4
single|12|4"
holds "SELECT count(*) FROM frame JOIN session USING(session)
    WHERE run = 3 AND frame.rows <> (SELECT sum(band.rows) FROM band
        WHERE band.session = frame.session AND band.frame = frame.frame AND band.status = 0)" 0
holds "SELECT kind, count(*) FROM reference WHERE run = 3 GROUP BY kind" "oracle|3
solo|6"
holds "SELECT count(*) FROM summary WHERE run = 3 AND p50_over_oracle > 0" 9
holds "SELECT count(*), min(mean_ns) > 0, min(p90_ns) > 0 FROM reference WHERE run = 3" "9|1|1"
holds "SELECT foreign_load >= 0, busy = (foreign_load > 0.25) FROM run WHERE run = 3" "1|1"
if grep -q "The machine was BUSY" "$work/out"; then busy=1; else busy=0; fi
holds "SELECT busy FROM run WHERE run = 3" "$busy"
# The table, the database's summary and the report say the same of the same frames.
awk '/^phase [0-9]/ { phase = $2 + 0 }
    $1 ~ /^(adaptive|last-frame|single)$/ && NF > 10 { print phase, $1, $2, $3, $4, $5, $6, $7, $8, $9 }' "$work/out" |
    sort >"$work/table"
if command -v sqlite3 >/dev/null; then
    what="the summary of what was printed"
    sqlite3 "$work/s.db" "SELECT printf('%d %s %.3f %.3f %.3f %.3f %.3f %.3f %.3f %.3f', phase, policy, mean_ms, p50_ms, p99_ms,
        p50_over_oracle, mean_over_oracle, p50_over_solo, mean_over_solo, efficiency) FROM summary WHERE run = 3" |
        sort >"$work/summary"
    if [ "$(wc -l <"$work/table")" -eq 9 ] && cmp -s "$work/table" "$work/summary"; then pass; else
        fail "$(diff "$work/table" "$work/summary" | head -n 4)"
    fi
    what="the report of what was printed"
    awk '/^phase [0-9]/ { phase = $2 + 0 }
        $1 ~ /^(adaptive|last-frame|single)$/ && NF > 10 { sub(/\*$/, "", $11); print $6, $5, $8, $7, $10, $11 }' "$work/out" |
        sort >"$work/table"
    "$lab" report "$work/s.db" --run 3 -o "$work/s.html" >"$work/out" 2>"$work/err"
    sed -n '/<table class="headline/,/<\/table>/p' "$work/s.html" | grep '<td' | grep -v 'all frames' |
        sed -e 's|</t[dh]>|;|g' -e 's|<[^>]*>||g' | awk -F';' '{ print $6, $7, $8, $9, $11, $13 }' | sort >"$work/page"
    if [ "$(wc -l <"$work/table")" -eq 9 ] && cmp -s "$work/table" "$work/page"; then pass; else
        fail "$(diff "$work/table" "$work/page" | head -n 4)"
    fi
    if [ "$busy" -eq "$(grep -c 'class="busy"' "$work/s.html")" ]; then pass; else fail "busy: $busy"; fi
    if grep -q 'the oracle' "$work/s.html" && ! grep -q 'No oracle was measured' "$work/s.html"; then pass; else
        fail "the page names no oracle"
    fi
fi
POCL_AFFINITY=1
export POCL_AFFINITY
# shellcheck disable=SC2086
run 0 "a hog where the device computes" $two --kernel work --ratio 2 --policy ewma --disturb hog@4:8
shows out "on CPU [0-9]*, where the first CPU device computes"
unset POCL_AFFINITY
# shellcheck disable=SC2086
run 0 "with rows on demand and without" $two --policy chunks,chunks:no-pool
holds "SELECT policy, sum(pool_rows) > 0 FROM frame JOIN session USING(session)
    WHERE run = (SELECT max(run) FROM run) AND kind = 'policy' GROUP BY policy" "chunks|1
chunks:no-pool|0"
# shellcheck disable=SC2086
run 0 "frames in flight" $two --in-flight 3 --policy ewma
holds "SELECT in_flight FROM run ORDER BY run DESC LIMIT 1" 3
# shellcheck disable=SC2086
run 0 "an artificial delay" $two --kernel tonemap --policy single --disturb delay=1,30000@4:8
shows out "artificial"
holds "SELECT kind, real FROM disturbance ORDER BY run DESC LIMIT 1" "delay|0"
# 30 ms on frames of less than one: neither noise nor load makes as much in the median of all frames.
holds "SELECT a.ns > b.ns + 10e6, c.ns < a.ns / 2 FROM reference a, reference b, reference c
    WHERE a.run = (SELECT max(run) FROM run) AND b.run = a.run AND c.run = a.run AND a.kind = 'solo' AND b.kind = 'solo'
    AND c.kind = 'solo' AND a.device = 1 AND b.device = 1 AND c.device = 0 AND a.phase = 1 AND b.phase = 0 AND c.phase = 1" \
    "1|1"
# shellcheck disable=SC2086
run 1 "a delay of a device that is not there" $two --disturb delay=5,100@4:8
shows err "no device 5"
# shellcheck disable=SC2086
run 1 "delays of two devices" $two --disturb delay=0,100@4:8 --disturb delay=1,100@4:8
# shellcheck disable=SC2086
run 1 "a hog on a CPU that is not there" $two --disturb hog=1023@4:8
shows err "CPU 1023"
shows err "fallback-delay"
# shellcheck disable=SC2086
run 1 "a hog on such a CPU, before anything is made" $two -o "$work/early.db" --disturb hog=1023@4:8
if [ ! -e "$work/early.db" ]; then pass; else fail "a database was made"; fi
# shellcheck disable=SC2086
run 0 "the fallback" $two --policy ewma --disturb hog=1023@4:8 --fallback-delay 500
shows err "device 0 is delayed"
holds "SELECT kind, real, note LIKE 'artificial%CPU 1023%' FROM disturbance ORDER BY run DESC LIMIT 1" "hog|0|1"
# shellcheck disable=SC2086
run 1 "a GPU hog without a GPU" $two --disturb gpu-hog@4:8
shows err "no GPU takes part"
# shellcheck disable=SC2086
"$lab" run $two --policy ewma --disturb quota=50@4:8 >"$work/out" 2>"$work/err" </dev/null
status=$?
what="a quota"
if [ "$status" -eq 0 ]; then
    pass
    shows out "quota=50@4:8, real, by /"
    group=$(sed -n 's/.*real, by \(.*\)/\1/p' "$work/out")
    if [ ! -e "$group" ]; then pass; else fail "its group was left behind: $group"; fi
elif grep -q "no control group with a quota can be made here" "$work/err"; then
    echo "skipped, because no control group can be made here: the quota itself"
else
    fail "status $status"
fi
# shellcheck disable=SC2086
"$lab" run $two --policy ewma --check --frames 8 >"$work/out" 2>"$work/err" </dev/null
status=$?
what="the bars"
case $status in
0) if grep -q "MISSED" "$work/out"; then fail "status 0 with a bar missed"; else pass; fi ;;
3) shows out MISSED ;;
*) fail "status $status" ;;
esac

# --- A GPU hog -------------------------------------------------------------------------------------------------------
if [ -n "$only" ]; then
    echo "cox-lab run with a GPU hog: skipped, because only $only is to be used"
elif able "cox-lab run with a GPU hog" rusticl; then
    OCL_ICD_VENDORS="$work/both"
    RUSTICL_ENABLE=llvmpipe
    RUSTICL_DEVICE_TYPE=gpu
    export RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    # shellcheck disable=SC2086
    run 0 "a GPU hog" $small --kernel tonemap --policy ewma --disturb gpu-hog@4:8
    shows out "gpu-hog@4:8, real, on "
    unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    OCL_ICD_VENDORS="$work/pocl"
fi

# --- Interruption ------------------------------------------------------------------------------------------------------
# Processes that have a given one as parent; those of a dead one would have another.
children() {
    for stat in /proc/[0-9]*/stat; do
        [ -r "$stat" ] && sed -n 's/^\([0-9]*\) (.*) [A-Z] \([0-9]*\) .*/\1 \2/p' "$stat" 2>/dev/null
    done | awk -v parent="$1" '$2 == parent { print $1 }'
}

# start: a long run in the background, until it records frames under a hog; its process in $pid, the hog's in $hog
start() {
    rm -f "$work/s.db"*
    what=$1
    "$lab" run --devices cpu:2x1 --size 640x360 --frames 100000 --policy ewma --disturb hog=0@8:100000 -o "$work/s.db" \
        >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    tries=0
    while [ "$tries" -lt 1800 ]; do
        count=$(sqlite3 "$work/s.db" "SELECT count(*) FROM frame WHERE phase = 1" 2>/dev/null)
        [ "${count:-0}" -gt 0 ] && break
        sleep 0.1
        tries=$((tries + 1))
    done
    hog=$(children "$pid")
    if [ "${count:-0}" -gt 0 ] && [ -n "$hog" ]; then pass; else fail "it does not get as far as the hog"; fi
}

# gone PID: within two minutes
gone() {
    tries=0
    while [ -e "/proc/$1" ] && [ "$tries" -lt 1200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    if [ ! -e "/proc/$1" ]; then pass; else fail "process $1 is still there"; fi
}

if command -v sqlite3 >/dev/null; then
    # A shell without job control starts its background processes with SIGINT ignored; the program catches it all the same.
    start "interrupted"
    "$lab" sim --scenario step-2 --seeds 1 --record "$work/s.db" >"$work/second" 2>&1
    status=$?
    if [ "$status" -eq 1 ] && grep -q "another program is recording into it" "$work/second"; then pass; else
        fail "status $status of a second recorder: $(head -n 2 "$work/second")"
    fi
    kill -INT "$pid"
    wait "$pid"
    status=$?
    if [ "$status" -eq 130 ]; then pass; else fail "status $status instead of 130"; fi
    gone "$hog"
    shows err "interrupted"
    holds "SELECT finished FROM run" 0
    holds "PRAGMA integrity_check" ok
    holds "SELECT count(*) > 8 FROM frame JOIN session USING(session) WHERE kind = 'policy'" 1

    holds "SELECT count(*) FROM run" 1
    holds "SELECT foreign_load >= 0 FROM run" 1
    shows err "what was recorded is in"

    # Of the time until the first frame nothing is recorded, and the message says so.
    what="interrupted at once"
    rm -f "$work/s.db"*
    "$lab" run --devices cpu:2x1 --kernel work --disturb delay=0,900000@4:8 --frames 9 -o "$work/s.db" \
        >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    tries=0
    while [ ! -s "$work/s.db" ] && [ "$tries" -lt 6000 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    kill -INT "$pid"
    wait "$pid"
    status=$?
    if [ "$status" -eq 130 ]; then pass; else fail "status $status instead of 130"; fi
    if [ "$(sqlite3 "$work/s.db" "SELECT count(*) FROM run")" -eq 0 ]; then shows err "nothing was recorded"; else
        shows err "what was recorded is in"
    fi

    start "interrupted twice"
    kill -INT "$pid"
    kill -INT "$pid"
    wait "$pid"
    status=$?
    if [ "$status" -eq 130 ]; then pass; else fail "status $status instead of 130"; fi
    gone "$hog"
    holds "PRAGMA integrity_check" ok

    start "terminated"
    kill -TERM "$pid"
    wait "$pid"
    status=$?
    if [ "$status" -eq 130 ]; then pass; else fail "status $status instead of 130"; fi
    gone "$hog"

    start "killed"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    gone "$hog"
    holds "SELECT count(*) > 0 FROM frame WHERE phase = 1" 1
    holds "PRAGMA integrity_check" ok
    holds "SELECT finished FROM run" 0
    # shellcheck disable=SC2086
    run 0 "added to what a killed run left" --devices cpu:1x1 $small
    holds "SELECT count(*), sum(finished) FROM run" "2|1"
else
    echo "skipped, because sqlite3 is missing: what an interrupted run leaves"
fi

ended
