#!/bin/sh
# cox-lab sim: what it lists, prints and refuses, and how it ends.
#   sh lab_sim.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
verb=sim

# --- list and help ---
prints "--scenario" "help" --help
run 0 "list" --list
for file in "$source"/examples/scenarios/*.json; do
    contains out "^  $(basename "$file" .json) "
done
for policy in adaptive ewma chunks hguided last-frame mean10 static single inter-frame qilin fpm kalman ucb oracle hindsight; do
    contains out "^  $policy\$"
done

# --- bad arguments ---
run 2 "an unknown option" --fast
denies 2 "unexpected argument 'constant-2'" "a word too many" constant-2
denies 2 "'fastest'" "an unknown policy" --policy fastest
run 2 "an empty name" --policy ewma,,single
run 2 "seeds that are none" --seeds 0
denies 2 "'5x'" "seeds that are no number" --seeds 5x
run 2 "too many seeds" --seeds 1001
run 2 "a negative seed" --first-seed -1
run 2 "no frames" --frames 0
run 2 "too many frames in flight" --in-flight 17
denies 2 "'ewma' is given twice" "a policy named twice" --policy ewma,single --policy ewma
denies 2 "unknown scenario 'no-such'" "an unknown scenario" --scenario step-2,no-such
denies 1 "No such file" "a scenario file that is not there" --scenario ./no-such.json

counts 0 out ""
mkfifo "$work/fifo.json"
for path in "$work/fifo.json" "$work/" /dev/zero; do
    denies 1 "not a regular file" "$path for a scenario" --scenario "$path"
done
echo '{"rows": 10, "devices": [{"name": "a", "row_us": 1}], "bars": {"ewwma": {"mean": 1}}}' >"$work/typo.json"
for form in --csv --json --check; do
    run 1 "the last of several scenarios is none" --scenario "step-2,$work/typo.json" --seeds 1 $form --record "$work/r.db"
    contains err 'typo.json: bars: unknown policy "ewwma"'
    counts 0 out ""
done
refute "a session database was made of nothing" [ -e "$work/r.db" ]

# --- one scenario, three formats ---
run 0 "a table" --scenario step-2 --policy last-frame,oracle --seeds 2
contains out "^step-2: " "^  last-frame  *[0-9]" "^  oracle  *[0-9.]*  *1.000"
contains out "^  95 % +mean +p99 +p99.5 +p99.9" "^  over last-frame +mean +95 % +least +median +most +p99 +95 % +least"
contains out "^  Uncertain: of 800 frames only 8 are above p99, 4 are above p99.5, 0 are above p99.9. 10 are needed: 1000 frames for p99,"
contains out "^  Too narrow: 95 % intervals of 2 seeds; use 10 or more."
run 0 "enough seeds" --scenario step-2 --policy last-frame,single --seeds 10 --frames 1000
lacks out "Too narrow"
counts 0 out "Uncertain"
run 0 "one seed has no interval" --scenario step-2 --policy last-frame,single --seeds 1
lacks out "95 %"
run 0 "CSV" --scenario step-2,death-2 --policy last-frame,hguided --seeds 2 --csv
counts 5 out ""
counts 1 out "^scenario,policy,seeds,first_seed,frames,mean_us,oracle_us,joules,mean,p99"
counts 1 out "^step-2,last-frame,2,1,400,[0-9.]*,[0-9.]*,,1\.0[0-9]*,"
commas=$(sed 's/[^,]//g' "$work/out" | sort -u | wc -l)
check "lines of different length" [ "$commas" -eq 1 ]
cp "$work/out" "$work/first.csv"
run 0 "CSV again" --scenario step-2,death-2 --policy last-frame,hguided --seeds 2 --csv
same "$work/out" "$work/first.csv"
run 0 "other seeds" --scenario step-2,death-2 --policy last-frame,hguided --seeds 2 --first-seed 3 --csv
refute "other seeds give the same result" cmp -s "$work/out" "$work/first.csv"

# --- analysis of variance ---
run 0 "an analysis of variance" --anova --scenario step-2,death-2 --policy last-frame,hguided,single --in-flight 1,2 --seeds 3
contains out '^analysis of variance of log\(time\), 3 seeds' '^  policy  *[0-9.]+ +2 +[0-9.]+ +< 0\.0001' \
    '^  policy x scenario x in flight .* 2 ' '^  seed .* 4 ' '^  residual .* 20$' '^  total .* 35$' '^  policy single  *1\.' '^  in flight 2 '
counts 0 out '^all .* scenarios'
run 0 "the same as CSV" --anova --scenario step-2 --policy last-frame,hguided --seeds 3 --csv
counts 5 out ""
contains out '^source,squares,df,f,p,eta2,partial_eta2$' '^policy,[0-9.]+,1\.0+,' '^seed,.*,2\.0+,' '^residual,' '^total,'
run 0 "the figures of the design" --scenario step-2 --policy last-frame,hguided --seeds 1 --first-seed 1 --csv
cp "$work/out" "$work/1.csv"
run 0 "the same with another seed" --scenario step-2 --policy last-frame,hguided --seeds 1 --first-seed 2 --csv
cp "$work/out" "$work/2.csv"
run 0 "its analysis" --anova --scenario step-2 --policy last-frame,hguided --seeds 2 --csv
# Two policies and two seeds: the squares of the policies are the square of half the sum of two differences.
squares=$(awk -F, 'FNR > 1 {sum += (FNR == 2 ? 1 : -1) * log($6)} END {printf "%.6f", sum * sum / 4}' "$work/1.csv" "$work/2.csv")
contains out "^policy,$squares,"
run 0 "the same as JSON" --anova --scenario step-2 --policy last-frame,hguided --seeds 2 --json
is_json "$work/out"
denies 2 "seeds of at least 2" "one seed" --anova --policy last-frame,hguided --seeds 1
denies 2 "two policies, scenarios or numbers" "one combination" --anova --policy hguided --scenario step-2
run 0 "JSON" --scenario step-2,energy-2 --policy last-frame,oracle --seeds 2 --json
counts 3 out '"policy": "last-frame"'
counts 2 out '"reconverged": null'
counts 2 out '"energy": null'
if [ "$python" ]; then
    check "its JSON is not what it should be" python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
assert data["seeds"] == 2 and len(data["scenarios"]) == 2
assert all(p["mean"] > 0.9 and p["refused"] == 0 for s in data["scenarios"] for p in s["policies"])
for s in data["scenarios"]:
    first, other = s["policies"]
    assert first["mean_over_first"] is None and first["p99_over_first_most"] is None
    assert all(p["mean_low"] <= p["mean"] <= p["mean_high"] and p["p99_low"] <= p["p99_5_high"] <= p["p99_9_high"]
               for p in s["policies"])
    ratio = other["mean"] / first["mean"]
    assert abs(other["mean_over_first"] - ratio) < 1e-5 and other["mean_over_first_low"] <= ratio <= other["mean_over_first_high"]
    assert other["mean_over_first_least"] <= other["mean_over_first_median"] <= other["mean_over_first_most"]' "$work/out"
fi
run 0 "several numbers of frames in flight" --scenario step-2 --policy ewma,last-frame --seeds 1 --in-flight 1,3 --csv
counts 2 out "^step-2,ewma,"
counts 2 out ",0,3,[0-9.]*,,*"
run 0 "a summary" --scenario step-2,laptop-2 --policy ewma,adaptive --seeds 1 --frames 50 --in-flight 1,2 --summary --jobs 2
counts 2 out "^all 2 scenarios, "
counts 2 out "^  ewma  *[0-9.]*  *[0-9]*  *[0-9]*\$"
counts 0 out "^step-2"
run 0 "a summary without a simple policy" --scenario step-2 --policy adaptive --seeds 1 --frames 50 --summary --csv
counts 1 out "^adaptive,1,1,[0-9.]*,,\$"
denies 2 "'2' is given twice" "frames in flight named twice" --in-flight 2,2
run 2 "no frames in flight" --in-flight 0
run 2 "no jobs" --jobs 0
run 0 "fewer frames, two in flight, nothing extra" --scenario outliers-2 --policy hguided --seeds 1 --frames 50 \
    --in-flight 2 --no-pool --no-shadow --csv
counts 1 out "^outliers-2,hguided,1,1,50,"

# --- the user's own scenario, with bars ---
cat >"$work/mine.json" <<'EOF'
{
    "text": "mine, with \"quotes\"",
    "rows": 100,
    "frames": 40,
    "devices": [{"name": "a", "row_us": 1}, {"name": "b", "row_us": 2}],
    "bars": {"single": {"mean": 1.6, "p99_of": "static"}, "ewma": {"mean": 0.5}}
}
EOF
run 0 "a file" --scenario "$work/mine.json" --policy single,static
contains out "^mine: mine, with \"quotes\"\$" "^  single .* 1.49"
denies 3 "mine: ewma: mean is 1.0.*, the bar is 0.5" "a bar that is missed" --scenario "$work/mine.json" --check
counts 0 err "single"
run 0 "a bar of a policy that does not run" --scenario "$work/mine.json" --policy single,static --check
counts 1 err "the bars for 'ewma' are not checked"
run 0 "the same twice" --scenario "$work/mine.json,$work/mine.json" --policy single,static --check
counts 1 err "are not checked"
run 0 "bars without --check" --scenario "$work/mine.json"
sed -i 's/"p99_of": "static"/"p99_of": "ewma"/' "$work/mine.json"
run 3 "a p99 above another's" --scenario "$work/mine.json" --policy single,ewma --check
contains err "mine: single: p99 is .*, that of ewma is"
run 0 "a p99 of a policy that does not run" --scenario "$work/mine.json" --policy single --check
counts 1 err "the bars for 'ewma' are not checked"
cp "$work/mine.json" own.json
run 0 "a file in the working folder" --scenario own.json --policy single
echo '{"rows": 10, "speed": 1}' >"$work/bad.json"
denies 1 "bad.json: the file: unknown key \"speed\"" "a file with an unknown key" --scenario "$work/bad.json"
printf '{"rows": 10,\n "frames": NaN}' >"$work/bad.json"
denies 1 "bad.json:2:" "a file with a NaN" --scenario "$work/bad.json"
if [ -e /dev/full ]; then
    "$lab" sim --scenario step-2 --policy single --seeds 1 >/dev/full 2>"$work/err"
    check "a full disk is not noticed" [ $? -eq 1 ]
fi

# --- passes: results are deterministic, and replays of recordings decide the same ---
cat >"$work/two.json" <<'END'
{"rows": 1080, "granule": 8, "frames": 60, "devices": [{"name": "a", "row_us": 9, "jitter": 0.03}, {"name": "b", "row_us": 4}],
 "passes": [{"name": "across"}, {"name": "down", "rows": 1920, "granule": 16, "before_us": 40, "moved_row_us": 0.5,
    "devices": [{"device": "a", "row_us": 2}, {"device": "b", "row_us": 6}]}]}
END
run 0 "two passes" --scenario "$work/two.json" --seeds 2 --policy adaptive,chunks,oracle --in-flight 2 --record "$work/p.db"
cp "$work/out" "$work/first"
run 0 "two passes again" --scenario "$work/two.json" --seeds 2 --policy adaptive,chunks,oracle --in-flight 2
sed -i '/recorded/d' "$work/first"
same "$work/first" "$work/out"
if [ "$sqlite" ]; then
    what="what a recorded run was measured with"
    setting() { sqlite3 "$work/p.db" "SELECT value FROM setting WHERE run = 1 AND name = '$1'"; }
    equal "$(setting program_sha256)" "$(sha256sum <"$lab" | cut -d ' ' -f 1)" "the program's hash"
    equal "$(setting scenario_sha256)" "$(sha256sum <"$work/two.json" | cut -d ' ' -f 1)" "the scenario's hash"
    library=$(ldd "$lab" | sed -n 's/.*libcoxswain[^ ]* => \([^ ]*\) .*/\1/p')
    [ -z "$library" ] || equal "$(setting library_sha256)" "$(sha256sum <"$library" | cut -d ' ' -f 1)" "the library's hash"
    check "the commit is '$(setting commit)'" eval 'setting commit | grep -qxE "[0-9a-f]{40}(-dirty)?|unknown"'
    check "the build is unknown" [ -n "$(setting build_type)$(setting compiler)" ]
    run 0 "a built-in scenario" --scenario step-2 --seeds 1 --policy single --record "$work/b.db"
    equal "$(sqlite3 "$work/b.db" "SELECT value FROM setting WHERE name = 'scenario_sha256'")" \
        "$(sha256sum <"$source/examples/scenarios/step-2.json" | cut -d ' ' -f 1)"
fi
verb=replay
prints ", adaptive: 120 splits, 0 grants: all the same" "decisions of recorded passes" --decisions "$work/p.db"
verb=sim
sed 's/"before_us": 40/"after_us": 40/' "$work/two.json" >"$work/after.json"
run 1 "a pass with a key that is not known" --scenario "$work/after.json"
contains err 'after.json: passes\[1\]: unknown key "after_us"'

finish
