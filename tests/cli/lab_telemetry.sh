#!/bin/sh
# cox-lab telemetry, and what cox-lab run records of a laid-out /sys (support/sysfs.sh).   sh lab_telemetry.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=telemetry
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES POCL_AFFINITY
# shellcheck source=tests/support/setups.sh
. "$2/tests/support/setups.sh"
for tree in meteor-lake ryzen; do
    sh "$source/tests/support/sysfs.sh" $tree "$work/$tree" || exit 1
done
mkdir "$work/empty"

# --- The command -----------------------------------------------------------------------------------------------------
run 0 "help" --help
shows out 'Usage: cox-lab telemetry'
run 2 "an argument too many" now
shows err "'now'"
run 2 "unknown option" --watch
run 2 "a folder that is none" --sysfs "$work/none"
shows err "none': it is no folder"
run 0 "this machine, whatever it has"
run 0 "this machine, for programs" --json
shows out '"not_read": \['
run 0 "a laptop of Intel's" --sysfs "$work/meteor-lake"
shows out '^clock of the P cores +3250\.0 MHz +devices/system/cpu/cpu4/cpufreq/scaling_cur_freq and 5 more$'
shows out '^clock of the LP-E cores +700\.0 MHz'
shows out '^temperature: zone x86_pkg_temp +72\.0 °C'
shows out '^power of psys +- W'
shows out '^power from BAT0 +31\.2 W'
shows out '^governor of the E cores +powersave '
shows out '^25 sources; what is read each time takes [0-9.]+ us of processor time$'
lacks out 'not read'
run 0 "a laptop of AMD's" --sysfs "$work/ryzen"
shows out '^load of GPU card0 +87\.0 %'
shows out '^power from BAT1 +-25\.5 W'
run 0 "a machine that tells nothing" --sysfs "$work/empty"
shows out '^Nothing can be read here\.$'
shows out '^not read: power of the processor: .*modprobe intel_rapl_msr'
run 0 "a laptop, for programs" --sysfs "$work/meteor-lake" --json
shows out '\{"name": "clock of the E cores", "kind": "clock", "part": "E cores", "unit": "MHz", "origin": "[^"]*", "value": 2400\.0*\}'
shows out '"name": "platform profile", .*"value": "balanced"'
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out" && pass || fail "no JSON"
fi
"$lab" telemetry --sysfs "$work/ryzen" >/dev/full 2>"$work/err"
[ $? -eq 1 ] && pass || fail "it wrote to a full disk"

# --- A run -----------------------------------------------------------------------------------------------------------
verb=run
run 2 "no such period" --telemetry often
run 2 "too long a period" --telemetry 10001
run 2 "no such folder" --sysfs "$work/none"
able "cox-lab run on devices" pocl || { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ]; exit; }
export OCL_ICD_VENDORS="$work/pocl"
small="--devices cpu:1x1 --kernel tonemap --size 64x96 --rounds 2 --frames 12 -o $work/s.db"
# shellcheck disable=SC2086 # words of $small
{
    run 0 "with telemetry" --sysfs "$work/meteor-lake" --telemetry 1 $small
    shows out '^telemetry: every 1 ms: clock \(P cores, E cores, LP-E cores, GPU card1\), temperature \('
    shows out '^telemetry: [0-9]+ readings, [0-9]+ us of processor time each$'
    run 0 "without telemetry" --sysfs "$work/meteor-lake" --telemetry 0 $small
    lacks out 'telemetry'
    run 0 "of a machine that tells nothing" --sysfs "$work/empty" $small
    shows out '^telemetry: nothing can be read of this machine$'
    shows out '^not read: clocks|^not read: the cores'
    run 0 "as JSON" --sysfs "$work/meteor-lake" --telemetry 1 --json $small
    lacks out 'telemetry'
    run 0 "as CSV" --sysfs "$work/empty" --csv $small
    lacks out 'telemetry|not read'
    run 0 "on both sides" --sysfs "$work/meteor-lake" --telemetry 1 --reserve both $small
    shows out '^telemetry: every 1 ms: clock \('
}
verb=report
run 0 "a report" "$work/s.db" --run 1 -o "$work/one.html"
shows one.html '<title>Clock, temperature and power while adaptive ran</title>'
shows one.html '>clock of the P cores</th>'
run 0 "a report without telemetry" "$work/s.db" --run 2 -o "$work/two.html"
lacks two.html 'Clocks, temperatures'
if command -v sqlite3 >/dev/null; then
    what="the database"
    found=$(sqlite3 "$work/s.db" "SELECT group_concat(run || ':' || count, ' ')
        FROM (SELECT run, count(*) AS count FROM telemetry_source GROUP BY run)")
    [ "$found" = "1:25 4:25 6:25 7:25" ] && pass || fail "sources: $found"
    found=$(sqlite3 "$work/s.db" "SELECT count(*), sum(s.run IN (1, 4, 6, 7)) FROM telemetry_session JOIN session s USING (session)")
    [ "${found%|*}" = "${found#*|}" ] && [ "${found%|*}" -gt 0 ] && pass || fail "sessions with a start: $found"
    found=$(sqlite3 "$work/s.db" "SELECT DISTINCT value FROM telemetry JOIN telemetry_source USING (run, source)
        WHERE name = 'clock of the P cores'")
    [ "$found" = 3250.0 ] && pass || fail "clocks: $found"
fi
ended
