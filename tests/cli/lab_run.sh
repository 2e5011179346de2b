#!/bin/sh
# cox-lab run: what it refuses, what it records, each disturbance that this machine allows, and that none of its
# processes outlives it. The limits for times apply to a quiet machine, so this test does not check them.
#   sh lab_run.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/lab.sh"
verb=run
last="(SELECT max(run) FROM run)"
. "$source/tests/support/setups.sh"

# --- What is refused -------------------------------------------------------------------------------------------------
prints "gpu-hog@A:B" "help" --help
denies 2 "session.db" "an argument too many" session.db
run 2 "unknown option" --fast
denies 2 "tonemap, video, work, blur or FILE.cl" "unknown kernel" --kernel sobel
denies 2 "'fastest'" "unknown policy" --policy adaptive,fastest
contains err "mean10"
run 2 "an empty policy" --policy adaptive,
denies 2 "given twice" "a policy twice" --policy ewma,ewma
denies 2 "never hands out rows" "without a pool where there is none" --policy ewma:no-pool
run 2 "an unknown way of a policy" --policy adaptive:fast
denies 2 "by a sweep" "the oracle as a policy" --policy oracle
run 2 "no frames" --frames 0
run 2 "frames that are no number" --frames 1e99
run 2 "too many in flight" --in-flight 17
run 2 "a size of nothing" --size 0x0
denies 2 "16384" "a huge size" --size 99999x99999
run 2 "a size without a height" --size 640
run 2 "an empty size in a list" --size 640x480,
denies 2 "more than 16" "too many sizes" --size "$(seq -s , 64 80 | sed 's/[0-9]*/&x64/g')"
run 2 "ratio of another kernel" --kernel tonemap --ratio 2
run 2 "ratio out of range" --kernel work --ratio 0
run 2 "a ratio out of range in a list" --kernel work --ratio 1,65
run 2 "no repeats" --repeats 0
denies 2 "repeats of at least 2" "an analysis of variance of one repeat" --anova --policy ewma,single
denies 2 "none of --reserve both, --csv" "an analysis of variance among rows" --anova --policy ewma,single --repeats 2 --csv
denies 2 "needs two policies, sizes" "an analysis of variance of one combination" --anova --policy ewma --repeats 2
denies 2 "at most 1000000" "too many frames in all" --repeats 1000 --frames 400000
denies 2 "auto, off, on or both" "a reserve that is none" --reserve maybe
run 2 "bindings of a kernel of this program" --bindings b.json
denies 1 "gone.cl: No such file" "a kernel that is not there" --kernel "$work/gone.cl"
denies 2 "hog, gpu-hog, quota, delay" "unknown disturbance" --disturb earthquake@1:2
run 2 "a disturbance without frames" --disturb hog
run 2 "a disturbance without an end" --disturb hog@5
denies 2 "ends before it starts" "one that ends before it starts" --disturb hog@9:5
run 2 "one that ends as it starts" --disturb hog@5:5
denies 2 "10 frames" "one that goes on after the run" --frames 10 --disturb hog@5:11
run 2 "a quota of nothing" --disturb quota=0@1:2
run 2 "a delay without a device" --disturb delay=100@1:2
run 2 "unknown objective" --objective comfort
denies 2 "throughput, latency or energy" "the objective's name of old" --objective time
run 2 "a deadline that is no number" --deadline soon
mkdir "$work/no-meter"
denies 2 "no RAPL package" "energy without a meter" --objective energy --powercap "$work/no-meter" -o "$work/energy.db"
denies 1 "no-such-device" "unknown device" --devices no-such-device -o "$work/refused.db"

echo "dear diary" >"$work/text.db"
denies 1 "text.db" "a file that is no database" -o "$work/text.db"
equal "$(cat "$work/text.db")" "dear diary"
run 1 "a folder that is not there" -o "$work/nowhere/s.db"
if [ "$sqlite" ]; then
    sqlite3 "$work/other.db" "PRAGMA application_id = 1129273420; PRAGMA user_version = 999; CREATE TABLE run(run)"
    denies 1 "version" "a database of another version" -o "$work/other.db"
    sqlite3 "$work/foreign.db" "CREATE TABLE notes(text)"
    run 1 "a database of another program" -o "$work/foreign.db"
fi

# --- A run on one device, then on two ---------------------------------------------------------------------------------
able "cox-lab run on devices" pocl || skip "PoCL is missing"
export OCL_ICD_VENDORS="$work/pocl"
small="--size 64x96 --rounds 2 --frames 12 -o $work/s.db"

run 0 "one device" --devices cpu:1x1 --kernel tonemap $small
contains out "device 0 alone" "oracle .* rows 96 of 96" "phase 0: frames 0 to 11, undisturbed" "energy: not measured" "run 1"
contains out "0.00 GB of frames in memory"
kernels=$(cd "$source/kernels" && LC_ALL=C find . -name '*.cl' -o -name '*.clh' | LC_ALL=C sort | sed 's,^\./,,' | xargs sha256sum |
    sha256sum | cut -d ' ' -f 1)
holds "SELECT value FROM setting WHERE name = 'kernel_sha256'" "$kernels"
holds "SELECT value FROM setting WHERE name = 'program_sha256'" "$(sha256sum <"$lab" | cut -d ' ' -f 1)"
holds "SELECT finished, kernel, columns, rows, frames, in_flight FROM run" "1|tonemap|64|96|12|1"
holds "SELECT count(*) FROM frame JOIN session USING(session) WHERE kind = 'policy'" 12
holds "SELECT count(*) FROM reference WHERE ns > 0 AND frames > 0" 2
holds "SELECT (SELECT count(*) FROM band) - count(*), min(n.noticed_ns >= b.end_ns) FROM notice n JOIN band b USING (session, frame, band)" "0|1"
holds "PRAGMA integrity_check" ok
equal "$(cat "$work/err")" "" "progress where there is no terminal"

mkdir -p "$work/meter/intel-rapl:0"
echo package-0 >"$work/meter/intel-rapl:0/name"
echo 262143328850 >"$work/meter/intel-rapl:0/max_energy_range_uj"
echo 1000000 >"$work/meter/intel-rapl:0/energy_uj"
run 0 "energy with a meter" --devices cpu:1x1 $small --objective energy --deadline 100 --powercap "$work/meter"
contains out "energy: RAPL: package-0"
holds "SELECT objective, deadline_ns, meter FROM run WHERE run = 2" "energy|100000000|RAPL: package-0"
holds "SELECT count(*) > 0, min(joules) >= 0 FROM frame JOIN session USING(session)
    WHERE run = 2 AND kind = 'policy' AND joules IS NOT NULL" "1|1"

able "cox-lab run on two devices" cores || skip "there are no two cores"
two="--devices cpu:2x1 $small"
sharpen=$source/examples/programs/lab/data/sharpen.cl

run 0 "two devices, three policies, a hog" $two --kernel video --policy adaptive,last-frame,single --disturb hog=0@4:8
contains out "phase 1: frames 4 to 7, hog=0" "disturbance: hog=0@4:8, real, on CPU 0" "last-frame: T/T_oracle"
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
# The table, the database's summary and the report have the same figures for the same frames.
awk '/^phase [0-9]/ { phase = $2 + 0 }
    $1 ~ /^(adaptive|last-frame|single)$/ && NF > 10 && !/ to / { print phase, $1, $2, $3, $4, $6, $7, $8, $9, $10 }' "$work/out" |
    sort >"$work/table"
if [ "$sqlite" ]; then
    what="the summary of what was printed"
    sqlite3 "$work/s.db" "SELECT printf('%d %s %.3f %.3f %.3f %.3f %.3f %.3f %.3f %.3f', phase, policy, mean_ms, p50_ms, p99_ms,
        p50_over_oracle, mean_over_oracle, p50_over_solo, mean_over_solo, efficiency) FROM summary WHERE run = 3" |
        sort >"$work/summary"
    equal "$(wc -l <"$work/table")" 9 "lines of the table"
    check "it is another" diff "$work/table" "$work/summary"
    what="the report of what was printed"
    awk '/^phase [0-9]/ { phase = $2 + 0 }
        $1 ~ /^(adaptive|last-frame|single)$/ && NF > 10 && !/ to / { sub(/\*$/, "", $12); print $7, $6, $9, $8, $11, $12 }' "$work/out" |
        sort >"$work/table"
    "$lab" report "$work/s.db" --run 3 -o "$work/s.html" >"$work/out" 2>"$work/err"
    sed -n '/<table class="headline/,/<\/table>/p' "$work/s.html" | grep '<td' | grep -v 'all frames' |
        sed -e 's|</t[dh]>|;|g' -e 's|<[^>]*>||g' | awk -F';' '{ print $7, $8, $9, $10, $12, $14 }' | sort >"$work/page"
    equal "$(wc -l <"$work/table")" 9 "lines of the table"
    check "it is another" diff "$work/table" "$work/page"
    counts "$busy" "$work/s.html" 'class="busy"'
    contains "$work/s.html" 'the oracle'
    lacks "$work/s.html" 'No oracle was measured'
fi

# columns FILE: what is known of each policy's certainty in phase 0, by the keys
columns() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["kind"] == "policy" && $at["phase"] == "0" {
            line = $at["policy"]
            n = split("p50_us p99_us p99_9_us mean_us_low mean_us_high p50_us_low p50_us_high p99_us_low p99_us_high p99_9_us_low " \
                      "p99_9_us_high mean_over_first mean_over_first_low mean_over_first_high p99_over_first p99_over_first_low " \
                      "p99_over_first_high", keys, " ")
            for (i = 1; i <= n; i++)
                line = line " " (keys[i] in at ? $at[keys[i]] : "no " keys[i])
            print line }' "$1"
}
run 0 "policies in the same rounds" $two --policy single,static,ewma --frames 36 --csv
columns "$work/out" >"$work/printed"
equal "$(wc -l <"$work/printed")" 3 "policies"
check "an interval without its figure" awk 'NF != (NR == 1 ? 12 : 18) || NR > 1 && !($14 <= $13 && $13 <= $15) { bad = 1 } END { exit bad }' \
    "$work/printed"
"$lab" report "$work/s.db" --run "$(sqlite3 "$work/s.db" "SELECT $last" 2>/dev/null || echo 4)" --csv >"$work/reported.csv" 2>"$work/err"
columns "$work/reported.csv" >"$work/reported"
what="certainty in the report"
same "$work/printed" "$work/reported"
run 0 "the same as a table" $two --policy single,static --frames 36
contains out "^  95 % intervals +mean ms +p50 ms +p99 ms +p99.9 ms +T/single" "^  over single +mean +95 % +p99 +95 %"
contains out "^  static +[0-9.]+ +[0-9.]+ to [0-9.]+ +[0-9.]+ +[0-9.]+ to [0-9.]+ +5 rounds"
contains out "^  Uncertain: of 36 frames only 0 are above p99, 0 are above p99.9. 10 are needed: 1000 frames for p99, 10000 for p99.9.$"
contains out "^  Too narrow: 95 % intervals of 5 blocks; use 10 or more.$"
export POCL_AFFINITY=1
run 0 "a hog where the device computes" $two --kernel work --ratio 2 --policy ewma --disturb hog@4:8
contains out "on CPU [0-9]*, used by the first CPU device"
unset POCL_AFFINITY
run 0 "with rows on demand and without" $two --policy chunks,chunks:no-pool
holds "SELECT policy, sum(pool_rows) > 0 FROM frame JOIN session USING(session)
    WHERE run = $last AND kind = 'policy' GROUP BY policy" "chunks|1
chunks:no-pool|0"
run 0 "frames in flight" $two --in-flight 3 --policy ewma
holds "SELECT in_flight FROM run WHERE run = $last" 3
run 0 "a deadline that no frame keeps" $two --in-flight 3 --policy ewma --objective latency --deadline 0.001
contains out "latency +mean ms +p50 ms +p99 ms +p99.9 ms +over 0.001 ms" "^ +ewma .* 100.00 %"
holds "SELECT objective, deadline_ns FROM run WHERE run = $last" "latency|1000"
holds "SELECT over_deadline FROM summary WHERE run = $last" "1.0"
holds "SELECT min(latency_ns >= wall_ns) FROM frame JOIN session USING(session) WHERE run = $last" 1
prints ",over_deadline," "a deadline that each frame keeps, as rows" $two --policy ewma --deadline 1000000 --csv
prints "artificial" "an artificial delay" $two --kernel "$sharpen" --policy single --disturb delay=1,30000@4:8
holds "SELECT kind, real FROM disturbance WHERE run = $last" "delay|0"
# 30 ms more for frames of less than one. Noise and load cannot change the median of all frames by that much.
holds "SELECT a.ns > b.ns + 10e6, c.ns < a.ns / 2 FROM reference a, reference b, reference c
    WHERE a.run = $last AND b.run = a.run AND c.run = a.run AND a.kind = 'solo' AND b.kind = 'solo'
    AND c.kind = 'solo' AND a.device = 1 AND b.device = 1 AND c.device = 0 AND a.phase = 1 AND b.phase = 0 AND c.phase = 1" \
    "1|1"
denies 1 "cannot delay device 5" "a delay of a device that is not there" $two --kernel "$sharpen" --disturb delay=5,100@4:8
run 1 "delays of two devices" $two --disturb delay=0,100@4:8 --disturb delay=1,100@4:8
denies 1 "CPU 1023" "a hog on a CPU that is not there" $two --disturb hog=1023@4:8
contains err "fallback-delay"
run 1 "a hog on such a CPU, before anything is made" $two -o "$work/early.db" --disturb hog=1023@4:8
check "a database was made" [ ! -e "$work/early.db" ]
run 0 "the fallback" $two --kernel "$sharpen" --policy ewma --disturb hog=1023@4:8 --fallback-delay 500
contains err "delaying device 0"
holds "SELECT kind, real, note LIKE 'artificial%CPU 1023%' FROM disturbance WHERE run = $last" "hog|0|1"
denies 1 "no GPU is in use" "a GPU hog without a GPU" $two --disturb gpu-hog@4:8
"$lab" run $two --policy ewma --disturb quota=50@4:8 >"$work/out" 2>"$work/err"
status=$?
what="a quota"
if [ "$status" -eq 0 ]; then
    pass
    contains out "quota=50@4:8, real, by /"
    group=$(sed -n 's/.*real, by \(.*\)/\1/p' "$work/out")
    check "its group was left behind: $group" [ ! -e "$group" ]
elif grep -q "cannot create a control group with a quota here" "$work/err"; then
    leave_out "a quota" "no control group can be made here"
else
    fail "status $status"
fi
"$lab" run $two --policy ewma --check --frames 8 >"$work/out" 2>"$work/err"
status=$?
what="the bars"
case $status in
0) lacks out MISSED ;;
3) contains out MISSED ;;
*) fail "status $status" ;;
esac

# --- A device that is missing: the others would do its rows -------------------------------------------------------------
layer=${COX_TEST_LAYER_DIR:-$bin/../tests/layers}/layer_fault.so
if [ -f "$layer" ]; then
    db=$work/missing.db
    missing="--devices cpu:2x1 --rounds 1 --frames 8 --size 64x32 --kernel work -o $db"
    export OPENCL_LAYERS="$layer"
    export COX_FAULT_PLAN="plan: clCreateKernel at=4 error=CL_OUT_OF_HOST_MEMORY"
    denies 1 "device [01] .* cannot take part" "a device that cannot run the kernel" $missing
    export COX_FAULT_PLAN="plan: clEnqueueNDRangeKernel at=100 error=CL_OUT_OF_RESOURCES"
    denies 1 "device [01] .* failed during the run" "a device that fails" $missing
    contains out "device 0 alone"
    holds "SELECT finished FROM run WHERE run = (SELECT max(run) FROM run)" 0
    unset OPENCL_LAYERS COX_FAULT_PLAN
fi

# --- Lists, repeats, with and without a reserved core -------------------------------------------------------------------
db=$work/more.db
more="--devices cpu:2x1 --rounds 1 --frames 16 --policy ewma -o $db"
prints "kernel: work, 48 x 96, .* 2 times as many on device 1" "sizes and ratios" $more --kernel work --size 32x64,48x96 --ratio 1,2
holds "SELECT group_concat(columns || 'x' || rows || '/' || value, ' ') FROM run JOIN setting USING (run) WHERE name = 'ratio'" \
    "32x64/1 32x64/2 48x96/1 48x96/2"
holds "SELECT count(*), min(finished), (SELECT count(*) FROM frame JOIN session USING (session) WHERE kind = 'policy') FROM run" \
    "4|1|64"
rm "$db"
run 0 "the fallback in each run" $more --kernel "$sharpen" --size 32x64,48x96 --disturb hog=1023@8:16 --fallback-delay 500
holds "SELECT run, kind, real, note LIKE 'artificial%CPU 1023%' FROM disturbance" "1|hog|0|1
2|hog|0|1"
rm "$db"
run 0 "repeats" $more --kernel "$sharpen" --size 64x96 --repeats 3 --disturb delay=0,100@8:16
contains out "95 % intervals" "^  ewma +[0-9.]+ to [0-9.]+ +[0-9.]+ to" "16 frames of each policy in each of 3 repeats"
holds "SELECT group_concat(repeat || ':' || n, ' ') FROM (SELECT repeat, count(*) AS n FROM frame JOIN session USING (session)
    WHERE kind = 'policy' GROUP BY repeat)" "0:16 1:16 2:16"
holds "SELECT count(*), count(DISTINCT phase) FROM reference WHERE ns > 0" "6|2"
rm "$db"
run 0 "an analysis of variance" $more --policy ewma,last-frame --kernel work --size 32x64 --repeats 2 --disturb delay=0,100@8:16 --anova
contains out "^analysis of variance of log\(time\), 2 repeats" "^  policy x phase .* 1 " "^  repeat .* 1 " "^  residual .* 3$" \
    "^  policy last-frame +[0-9.]+$"
if [ "$sqlite" ]; then
    # Two policies, four pairs: the square of the sum of their differences, over eight.
    squares=$(sqlite3 -separator ' ' "$db" "SELECT policy, repeat, phase, avg(period_ns) FROM frame JOIN session USING (session)
        WHERE kind = 'policy' AND policy IN ('ewma', 'last-frame') AND status = 0 GROUP BY policy, repeat, phase" |
        awk '{sum += ($1 == "ewma" ? 1 : -1) * log($4)} END {printf "%.5f", sum * sum / 8}')
    contains out "^  policy  +$squares "
fi
rm "$db"
prints "reserved core: none: switched off" "without a reserved core" $more --size 64x96 --reserve off
holds "SELECT value FROM setting WHERE name = 'reserve'" off
rm "$db"
run 0 "with and without a reserved core" $more --kernel work --size 32x64 --reserve both --repeats 2 --disturb hog=0@8:16
contains out "^reserved core: off" "^reserved core: on" "^  phase 1 ewma +[0-9.]+ +[0-9.]+ to [0-9.]+"
holds "SELECT group_concat(value, ' ') FROM setting WHERE name = 'reserve'" "off on"
holds "SELECT count(DISTINCT value) FROM setting WHERE name = 'work'" 1
holds "SELECT run, min(finished), count(*) FROM run JOIN session USING (run) JOIN frame USING (session) WHERE kind = 'policy'
    GROUP BY run" "1|1|32
2|1|32"
holds "PRAGMA integrity_check" ok
check "the database is not one file" [ ! -e "$db-wal" ]
"$lab" report "$db" -o "$work/both.html" >"$work/out" 2>"$work/err"
contains "$work/both.html" "Reserved core</dt><dd>none: switched off"
rm "$db"
run 1 "two sides on a device that is not there" --devices no-such-device --reserve both -o "$db"

# --- The user's own kernel --------------------------------------------------------------------------------------------
run 0 "the example" $more --kernel "$sharpen" --policy adaptive,chunks --size 640x360
holds "SELECT value FROM setting WHERE name = 'kernel_sha256'" "$(sha256sum <"$sharpen" | cut -d ' ' -f 1)"
contains out "^kernel: sharpen.cl, 640 x 360" "^chunks: outputs equal those of device 0 alone, bit for bit, after 2 of 2 blocks"
holds "SELECT kernel, (SELECT count(*) FROM setting WHERE name IN ('source', 'bindings') AND length(value) > 400) FROM run" \
    "sharpen.cl|2"
run 0 "with a delay and frames in flight" $more --kernel "$sharpen" --size 64x96 --in-flight 3 \
    --disturb delay=1,100@8:16
contains out "after 2 of 2 blocks"
run 0 "kernels without mistakes" $more --kernel "$sharpen" --size 320x180 --check-kernels
cp "$source"/examples/programs/lab/data/sharpen.* "$work"
sed 's/"halo_rows": 2/"halo_rows": 1/' "$source/examples/programs/lab/data/sharpen.json" >"$work/sharpen.json"
run 1 "a halo that is too small" $more --kernel "$work/sharpen.cl" --size 320x180 --check-kernels
contains err "check: pass 0 [(]sharpen[)] reads row .* of buffer in, but the band may only read rows .*[(]halo_rows is 1[)]"
# own BODY: a kernel with the parameters uchar out, first_row, rows, columns
own() {
    echo "kernel void k(global uchar *out, int first_row, int rows, int columns, int out_pitch)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        $1
}" >"$work/k.cl"
}
echo '{"kernel": "k", "columns": 64, "rows": 96, "buffers": [{"name": "out", "access": "write", "element_bytes": 1}]}' >"$work/k.json"
own 'out[y * out_pitch + x] = first_row + y;'
run 0 "a right one" $more --kernel "$work/k.cl" --policy chunks
own 'out[y * out_pitch + x] = rows;'
run 1 "one whose result depends on the band" $more --kernel "$work/k.cl" --policy chunks
contains err 'chunks, frame [0-9]+: "out" differs in [0-9]+ of 96 rows, first in row [0-9]+, byte 0 from the output of device 0 alone'
contains out "^chunks: outputs equal those of device 0 alone, bit for bit, after 0 of 2 blocks"
holds "SELECT finished FROM run WHERE run = $last" 1
own 'if (first_row == 0 || y > 0) out[y * out_pitch + x] = first_row + y;'
denies 1 "differs in" "one that leaves a row out" $more --kernel "$work/k.cl" --policy chunks
own 'out[y * out_pitch + x] = fist;'
denies 1 "fist" "one that does not compile" $more --kernel "$work/k.cl"
sed 's/"write"/"read-write"/; s/}]}/}], "arguments": [{"name": "out", "in_place": true}]}/' "$work/k.json" >"$work/in-place.json"
own 'out[y * out_pitch + x] += 1;'
prints "after 2 of 2 blocks" "one in place" $more --kernel "$work/k.cl" --bindings "$work/in-place.json"
run 1 "in place with frames in flight" $more --kernel "$work/k.cl" --bindings "$work/in-place.json" --in-flight 2
contains err "--in-flight must be 1"
sed 's/"name": "out"/"name": "outside"/' "$work/k.json" >"$work/other.json"
denies 1 "kernel k takes 'out', which is not in \`buffers\`" "a buffer of another name" $more --kernel "$work/k.cl" --bindings "$work/other.json"
echo '{"kernel": "k", "rows": 96}' >"$work/bad.json"
denies 1 "bad.json: columns: missing" "bindings that are none" $more --kernel "$work/k.cl" --bindings "$work/bad.json"

# Passes: those of this program, the user's own, one pass whose bands overlap, and transposed passes.
prints "^kernel: blur, 64 x 96, 2 passes; " "two passes" $more --kernel blur --policy adaptive,chunks --size 64x96 --in-flight 2
holds "SELECT group_concat(name || rows || stages, ' ') FROM pass WHERE run = $last" "rows961 columns961"
holds "SELECT count(*), sum(passes), sum(ordered) FROM (SELECT count(*) AS passes, min(pass = 0 OR start_ns >= before) AS ordered
    FROM (SELECT *, lag(end_ns) OVER (PARTITION BY session, frame ORDER BY pass) AS before FROM frame_pass)
    JOIN session USING (session) WHERE kind = 'policy' AND run = $last GROUP BY session, frame)" "32|64|32"
holds "SELECT count(*), min(rows), max(rows) FROM (SELECT sum(rows) AS rows FROM band JOIN session USING (session)
    WHERE kind = 'policy' AND status = 0 AND run = $last GROUP BY session, frame, pass)" "64|96|96"
holds "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM call JOIN session USING (session)
    WHERE call.kind = 'split' AND policy = 'chunks' AND run = $last GROUP BY pass)" "16,16"
run 1 "a delay of the library's own kernels" $more --kernel blur --disturb delay=0,100@4:8
contains err "blur: an artificial delay is only possible with the kernel work or a kernel of your own"
soften=$source/examples/programs/lab/data/soften.cl
run 0 "passes of one's own" $more --kernel "$soften" --policy adaptive,chunks,last-frame --size 64x96 --in-flight 3
contains out "^kernel: soften.cl, 64 x 96, 2 passes; "
contains out "^chunks: outputs equal those of device 0 alone, bit for bit, after 1 of 1 blocks"
prints "after 2 of 2 blocks" "passes with a delay in each" $more --kernel "$soften" --size 64x192 --disturb delay=1,100@8:16
cat >"$work/overlap.json" <<'END'
{"columns": 64, "rows": 96, "buffers": [
    {"name": "in", "access": "read", "element_bytes": 1, "fill": "noise", "seed": 7},
    {"name": "middle", "element_bytes": 2, "scratch": true},
    {"name": "out", "access": "write", "element_bytes": 1}],
 "passes": [{"kernel": "across"}, {"kernel": "down", "fused": true, "arguments": [{"name": "middle", "halo_rows": 2}]}]}
END
run 0 "fused passes, in which bands overlap" $more --kernel "$soften" --bindings "$work/overlap.json" --policy chunks
contains out "after 2 of 2 blocks"
holds "SELECT group_concat(stages) FROM pass WHERE run = $last" 2
cat >"$work/turn.cl" <<'END'
kernel void there(global const uchar *in, global uchar *turned, int first_row, int columns, int rows, int in_pitch, int turned_pitch)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        turned[y * turned_pitch + x] = in[x * in_pitch + first_row + y];
}
kernel void back(global const uchar *turned, global uchar *out, int first_row, int columns, int rows, int turned_pitch, int out_pitch)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * out_pitch + x] = turned[x * turned_pitch + first_row + y];
}
END
cat >"$work/turn.json" <<'END'
{"columns": 64, "rows": 96, "buffers": [
    {"name": "in", "access": "read", "element_bytes": 1, "fill": "noise"},
    {"name": "turned", "element_bytes": 1, "scratch": true, "transposed": true},
    {"name": "out", "access": "write", "element_bytes": 1}],
 "passes": [
    {"name": "there", "kernel": "there", "transposed": true, "arguments": [{"name": "in", "whole": true}]},
    {"name": "back", "kernel": "back", "arguments": [{"name": "turned", "whole": true}]}]}
END
run 0 "a transposed pass" $more --kernel "$work/turn.cl" --policy adaptive,chunks
contains out "^adaptive: outputs equal those of device 0 alone, bit for bit, after 2 of 2 blocks"
holds "SELECT group_concat(name || rows, ' ') FROM pass WHERE run = $last" "there64 back96"
sed 's/{"name": "there".*$//; s/{"name": "in", "access".*$//' "$work/turn.json" >"$work/unwritten.json"
run 1 "scratch that is read before it is written" $more --kernel "$work/turn.cl" --bindings "$work/unwritten.json"
contains err "scratch is read before any pass has written it"
db=$work/s.db

# --- A GPU hog -------------------------------------------------------------------------------------------------------
if [ -n "$only" ]; then
    leave_out "a GPU hog" "only $only is to be used"
elif able "cox-lab run with a GPU hog" rusticl; then
    OCL_ICD_VENDORS="$work/both"
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    prints "gpu-hog@4:8, real, on " "a GPU hog" $small --devices cpu,gpu --kernel tonemap --policy ewma --disturb gpu-hog@4:8
    unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    OCL_ICD_VENDORS="$work/pocl"
fi

# --- Interruption -----------------------------------------------------------------------------------------------------
if [ -z "$sqlite" ]; then
    leave_out "what an interrupted run leaves" "sqlite3 is missing"
    finish
fi

# The child processes of a process that is alive; orphans get another parent.
children() { grep -l "^PPid:[^0-9]*$1\$" /proc/[0-9]*/status 2>/dev/null | cut -d / -f 3; }
hogs() { # PID: frames are recorded, and there is a hog
    hog=$(children "$1")
    [ -n "$hog" ] && [ "$(sqlite3 "$db" "SELECT count(*) FROM frame WHERE phase = 1")" -gt 0 ]
}
no_process() { [ ! -e "/proc/$1" ]; }

# under_way WHAT: start a long run in the background, and wait until it records frames under a hog. $pid is its
# process, $hog the hog's.
under_way() {
    what=$1
    rm -f "$db"*
    start "$lab" run --devices cpu:2x1 --size 640x360 --frames 100000 --policy ewma --disturb hog=0@8:100000 -o "$db"
    wait_until 300 "frames under a hog" hogs "$pid"
}

# ended_by STATUS: the run ends with this status, its hog ends too, and the database is valid.
ended_by() {
    ends "$pid" 120
    equal "$status" "$1" "status"
    wait_until 120 "the end of the hog" no_process "$hog"
    holds "PRAGMA integrity_check" ok
}

under_way "interrupted"
"$lab" sim --scenario step-2 --seeds 1 --record "$db" >"$work/second" 2>&1
equal $? 1 "the status of a second recorder"
contains "$work/second" "another process is recording to it"
kill -INT "$pid"
ended_by 130
contains err "interrupted" "recorded frames are in"
holds "SELECT finished FROM run" 0
holds "SELECT count(*) > 8 FROM frame JOIN session USING(session) WHERE kind = 'policy'" 1
holds "SELECT count(*) FROM run" 1
holds "SELECT foreign_load >= 0 FROM run" 1

# Before the first frame nothing is recorded, and the message says so.
what="interrupted at once"
rm -f "$db"*
start "$lab" run --devices cpu:2x1 --kernel work --disturb delay=0,900000@4:8 --frames 9 -o "$db"
wait_until 120 "a database" [ -s "$db" ]
kill -INT "$pid"
ends "$pid" 120
equal "$status" 130 "status"
if [ "$(sqlite3 "$db" "SELECT count(*) FROM run")" -eq 0 ]; then
    contains err "nothing was recorded"
else
    contains err "recorded frames are in"
fi

under_way "interrupted twice"
kill -INT "$pid"
kill -INT "$pid"
ended_by 130

under_way "terminated"
kill -TERM "$pid"
ended_by 130

under_way "killed"
kill -KILL "$pid"
ended_by 137
holds "SELECT count(*) > 0 FROM frame WHERE phase = 1" 1
holds "SELECT finished FROM run" 0
run 0 "added to what a killed run left" --devices cpu:1x1 $small
holds "SELECT count(*), sum(finished) FROM run" "2|1"
finish
