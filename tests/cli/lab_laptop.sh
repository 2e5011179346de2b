#!/bin/sh
# cox-lab laptop: what it refuses, its parts on two cores, going on where it was interrupted, mains and battery, kinds of cores,
# energy; what is in its archive.   sh lab_laptop.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=laptop
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES POCL_AFFINITY
# shellcheck source=tests/support/setups.sh
. "$2/tests/support/setups.sh"

# --- What is refused -------------------------------------------------------------------------------------------------
run 0 "help" --help
shows out 'Usage: cox-lab laptop'
run 2 "an argument too many" now
run 2 "unknown option" --fast
run 2 "too short a time" --minutes 1
run 2 "too few frames" --frames 8
run 2 "a part that is none" --parts sizes,nothing
shows err "'nothing'"
run 2 "the first part by name" --parts probe
run 2 "a kernel of one's own" --kernel mine.cl
shows err 'tonemap, video, work or blur'
run 2 "a size of nothing" --size 0x0
run 1 "a folder that cannot be made" -o "$work/none/folder"
echo text >"$work/file"
run 1 "a folder that is a file" -o "$work/file"

able "cox-lab laptop on devices" "pocl cores" || { ended; exit; }
export OCL_ICD_VENDORS="$work/pocl"
two="--devices cpu:2x1 --frames 24 --size 64x96"

run 1 "one device" --devices cpu:1x1 --frames 24 --size 64x96 -o "$work/one"
shows err 'there is one device, .*cpu:2x'

# --- A part at a time: what is done is not done again ----------------------------------------------------------------
lap=$work/lap
# shellcheck disable=SC2086 # words of $two
{
    run 0 "two parts" $two --parts sizes,curve -o "$lap"
    shows out '^  cox-lab run --anonymous --devices cpu:2x1 .* --curve '
    run 0 "the same again" $two --parts sizes,curve -o "$lap"
    shows out '^sizes: done before'
    shows out '^curve: done before'
    lacks out '^  cox-lab run'
    rm "$lap/curve.db"
    run 0 "a database has gone" $two --parts sizes,curve -o "$lap"
    shows out '^sizes: done before'
    shows out '^  cox-lab run .* --curve '
    run 1 "another kernel in the same folder" $two --kernel video --parts curve -o "$lap"
    shows err 'fresh'
    run 0 "the other parts" $two -o "$lap"
    shows out '^curve: done before'
    shows out '^energy: not here\.|^  cox-lab run .* --objective energy'
}

# --- The archive -----------------------------------------------------------------------------------------------------
what="the archive"
mkdir "$work/unpacked"
if tar xf "$lap/laptop.tar" -C "$work/unpacked"; then pass; else fail "tar does not read it"; fi
there=$work/unpacked/laptop
for file in laptop.html machine.json parts.json plots/plots.gp plots/curve.csv probe.db sizes.db curve.db reserve.db corun.db \
    disturb.db; do
    if [ -s "$there/$file" ]; then pass; else fail "$file is not in it"; fi
    if cmp -s "$there/$file" "$lap/$file"; then pass; else fail "$file differs"; fi
done
for csv in "$there"/plots/*.csv; do
    what="$csv"
    if grep -q "'$(basename "$csv")' skip 1" "$there/plots/plots.gp"; then pass; else fail "plots.gp does not name it"; fi
    if head -n 1 "$csv" | grep -qE '^series,x,y,low,high(,label)?$'; then pass; else fail "its keys"; fi
    if [ "$(wc -l <"$csv")" -gt 1 ]; then pass; else fail "it is empty"; fi
done
verb=
for db in "$there"/*.db; do
    run 0 "report of $db" report "$db" -o "$work/report.html"
    run 0 "replay of $db" replay "$db"
done
what="what it tells of its owner"
if command -v sqlite3 >/dev/null; then
    for db in "$there"/*.db; do
        if [ -z "$(sqlite3 "$db" "SELECT host FROM run WHERE host <> ''")" ]; then pass; else fail "$db names the machine"; fi
    done
    found=$(sqlite3 "$there/curve.db" "SELECT count(*) FROM session WHERE policy = 'curve'")
    if [ "$found" -ge 9 ]; then pass; else fail "$found splits of the curve"; fi
    found=$(sqlite3 "$there/corun.db" "SELECT group_concat(kind, ' ') FROM session WHERE policy = 'soak'")
    if [ "$found" = "solo solo sweep" ]; then pass; else fail "stages of the soak: $found"; fi
fi
if grep -aqF "$work" "$lap/laptop.tar"; then fail "a path of this machine is in the archive"; else pass; fi
what="the page"
for words in 'The split' 'A reserved core' 'Mains and battery' '<span>--anonymous</span>' 'prefers-color-scheme: dark' '<svg '; do
    if grep -q -e "$words" "$lap/laptop.html"; then pass; else fail "no '$words'"; fi
done
if grep -qE '<script|src=|href=.http' "$lap/laptop.html"; then fail "it loads something"; else pass; fi
if command -v python3 >/dev/null; then
    if python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$lap/laptop.html"; then pass; else fail "no XML"; fi
fi
if command -v gnuplot >/dev/null; then
    what="gnuplot"
    if (cd "$there/plots" && gnuplot plots.gp >"$work/out" 2>"$work/err"); then pass; else fail "it does not draw"; fi
    for csv in "$there"/plots/*.csv; do
        if [ -s "${csv%.csv}.svg" ]; then pass; else fail "no drawing of $csv"; fi
    done
fi

# --- Interrupted: the part under way is done again, those before are not -----------------------------------------------
verb=laptop
what="interrupted"
# shellcheck disable=SC2086
"$lab" laptop --devices cpu:2x1 --frames 100000 --size 64x96 --parts curve,disturb -o "$work/again" >"$work/out" 2>"$work/err" &
laptop=$!
while kill -0 $laptop 2>/dev/null && ! [ -s "$work/again/curve.db" ]; do sleep 0.2; done
kill -TERM $laptop
wait $laptop
status=$?
if [ "$status" -eq 130 ]; then pass; else fail "status $status instead of 130"; fi
shows err 'the same command goes on'
if [ -e "$work/again/laptop.tar" ]; then fail "there is an archive of nothing"; else pass; fi
# shellcheck disable=SC2086
run 0 "going on" $two --parts curve -o "$work/again"
shows out '^probe: done before'
shows out '^  cox-lab run .* --curve '
if [ -s "$work/again/laptop.tar" ]; then pass; else fail "there is no archive"; fi
# shellcheck disable=SC2086
run 0 "begun anew" $two --parts curve --fresh -o "$work/again"
lacks out 'done before'

# --- Two kinds of cores, a meter, mains and then battery ---------------------------------------------------------------
sys=$work/sys
put() { mkdir -p "$(dirname "$sys/$1")" && echo "$2" >"$sys/$1"; }
for n in 0 1; do
    put devices/system/cpu/cpu$n/topology/thread_siblings_list $n
    put devices/system/cpu/cpu$n/cpufreq/scaling_cur_freq $((3000000 - n * 800000))
    put devices/system/cpu/cpu$n/cpufreq/cpuinfo_max_freq $((4500000 - n * 2000000))
done
put devices/cpu_core/cpus 0
put devices/cpu_atom/cpus 1
put class/power_supply/AC/type Mains
put class/power_supply/AC/online 1
put class/power_supply/BAT0/type Battery
put class/powercap/intel-rapl:0/name package-0
put class/powercap/intel-rapl:0/max_energy_range_uj 262143328850
put class/powercap/intel-rapl:0/energy_uj 1000000
hybrid="$two --sysfs $sys --powercap $sys/class/powercap -o $work/hybrid"
# shellcheck disable=SC2086
if taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null; then
    run 0 "kinds of cores and a meter" $hybrid --parts curve,corun,kinds,energy
    shows out '^  taskset -c 0 cox-lab run .*--devices cpu '
    shows out '^  taskset -c 1 cox-lab run .*--devices cpu '
    shows out '^  cox-lab run .*--objective energy --deadline '
    for plot in kinds energy late clocks course turbo; do
        if [ -s "$work/hybrid/plots/$plot.csv" ]; then pass; else fail "no $plot.csv"; fi
    done
    # The drawing, or the note: on a busy machine no band of these few frames may be long enough beside another device's.
    if grep -q 'Each device beside the others' "$work/hybrid/laptop.html"; then pass; else fail "no word of corun"; fi
    if grep -q '1 P cores' "$work/hybrid/plots/kinds.csv"; then pass; else fail "no P cores"; fi
fi
# shellcheck disable=SC2086
{
    run 0 "on mains" $hybrid --parts curve
    if grep -q '"supply": "mains"' "$work/hybrid/parts.json"; then pass; else fail "no part on mains"; fi
    if grep -q 'again on battery' "$work/hybrid/laptop.html"; then pass; else fail "battery is not asked for"; fi
    put class/power_supply/AC/online 0
    run 0 "on battery" $hybrid --parts curve
    shows out '^curve, on battery'
    if [ -s "$work/hybrid/curve-battery.db" ] && [ -s "$work/hybrid/curve.db" ]; then pass; else fail "not both"; fi
    if [ -s "$work/hybrid/plots/supplies.csv" ]; then pass; else fail "they are not compared"; fi
    put class/power_supply/AC/online 1
    run 0 "on mains again" $hybrid --parts curve
    shows out '^curve: done before'
}
ended
