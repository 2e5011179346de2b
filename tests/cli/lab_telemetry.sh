#!/bin/sh
# cox-lab telemetry, and what cox-lab run records from a copy of a laptop's /sys (support/sysfs.sh).
#   sh lab_telemetry.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/lab.sh"
verb=telemetry
. "$source/tests/support/setups.sh"
for tree in meteor-lake ryzen; do
    sh "$source/tests/support/sysfs.sh" $tree "$work/$tree" || exit 1
done
mkdir "$work/empty"

# --- The command -----------------------------------------------------------------------------------------------------
prints 'Usage: cox-lab telemetry' "help" --help
denies 2 "'now'" "an argument too many" now
run 2 "unknown option" --watch
denies 2 "none': not a folder" "a folder that is none" --sysfs "$work/none"
run 0 "this machine, whatever it has"
prints '"not_read": \[' "this machine, for programs" --json
run 0 "a laptop of Intel's" --sysfs "$work/meteor-lake"
contains out '^clock of the P cores +3250\.0 MHz +devices/system/cpu/cpu4/cpufreq/scaling_cur_freq and 5 more$'
contains out '^clock of the LP-E cores +700\.0 MHz' '^temperature: zone x86_pkg_temp +72\.0 °C' '^power of psys +- W'
contains out '^power from BAT0 +31\.2 W' '^governor of the E cores +powersave '
contains out '^25 sources; one reading takes [0-9.]+ us of processor time$'
lacks out 'not available'
run 0 "a laptop of AMD's" --sysfs "$work/ryzen"
contains out '^load of GPU card0 +87\.0 %' '^power from BAT1 +-25\.5 W'
run 0 "a machine that tells nothing" --sysfs "$work/empty"
contains out '^This machine has no readings\.$' '^not available: power of the processor: .*modprobe intel_rapl_msr'
run 0 "a laptop, for programs" --sysfs "$work/meteor-lake" --json
contains out '\{"name": "clock of the E cores", "kind": "clock", "part": "E cores", "unit": "MHz", "origin": "[^"]*", "value": 2400\.0*\}'
contains out '"name": "platform profile", .*"value": "balanced"'
if [ "$python" ]; then
    check "no JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out"
fi
"$lab" telemetry --sysfs "$work/ryzen" >/dev/full 2>"$work/err"
check "it wrote to a full disk" [ $? -eq 1 ]

# --- A run -----------------------------------------------------------------------------------------------------------
verb=run
run 2 "no such period" --telemetry often
run 2 "too long a period" --telemetry 10001
run 2 "no such folder" --sysfs "$work/none"
able "cox-lab run on devices" pocl || skip "PoCL is missing"
export OCL_ICD_VENDORS="$work/pocl"
small="--devices cpu:1x1 --kernel tonemap --size 64x96 --rounds 2 --frames 12 -o $work/s.db"
{
    run 0 "with telemetry" --sysfs "$work/meteor-lake" --telemetry 1 $small
    contains out '^telemetry: every 1 ms: clock \(P cores, E cores, LP-E cores, GPU card1\), temperature \('
    contains out '^telemetry: [0-9]+ readings, [0-9]+ us of processor time each$'
    run 0 "without telemetry" --sysfs "$work/meteor-lake" --telemetry 0 $small
    lacks out 'telemetry'
    run 0 "of a machine that tells nothing" --sysfs "$work/empty" $small
    contains out '^telemetry: this machine has no readings$' '^not available: clocks|^not available: cores'
    run 0 "as JSON" --sysfs "$work/meteor-lake" --telemetry 1 --json $small
    lacks out 'telemetry'
    run 0 "as CSV" --sysfs "$work/empty" --csv $small
    lacks out 'telemetry|not available'
    prints '^telemetry: every 1 ms: clock \(' "on both sides" --sysfs "$work/meteor-lake" --telemetry 1 --reserve both $small
}
verb=report
run 0 "a report" "$work/s.db" --run 1 -o "$work/one.html"
contains "$work/one.html" '<title>Clock, temperature and power while adaptive ran</title>' '>clock of the P cores</th>'
run 0 "a report without telemetry" "$work/s.db" --run 2 -o "$work/two.html"
lacks "$work/two.html" 'Clocks, temperatures'
what="the database"
holds "SELECT group_concat(run || ':' || count, ' ') FROM (SELECT run, count(*) AS count FROM telemetry_source GROUP BY run)" \
    "1:25 4:25 6:25 7:25"
holds "SELECT count(*) > 0, count(*) - sum(s.run IN (1, 4, 6, 7)) FROM telemetry_session JOIN session s USING (session)" "1|0"
holds "SELECT DISTINCT value FROM telemetry JOIN telemetry_source USING (run, source) WHERE name = 'clock of the P cores'" 3250.0
finish
