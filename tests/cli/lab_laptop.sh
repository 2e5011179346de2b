#!/bin/sh
# Tests of cox-lab laptop. They cover refused options, the parts on two cores and resuming after an interruption. They
# also cover mains and battery, kinds of cores, energy, and the contents of the archive. Usage:
#   sh lab_laptop.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/lab.sh"
verb=laptop
. "$source/tests/support/setups.sh"

# --- What is refused -------------------------------------------------------------------------------------------------
prints 'Usage: cox-lab laptop' "help" --help
run 2 "an argument too many" now
run 2 "unknown option" --fast
run 2 "too short a time" --minutes 1
run 2 "too few frames" --frames 8
denies 2 "'nothing'" "a part that is none" --parts sizes,nothing
run 2 "the first part by name" --parts probe
denies 2 'tonemap, video, work or blur' "a kernel of one's own" --kernel mine.cl
run 2 "a size of nothing" --size 0x0
run 1 "a folder that cannot be made" -o "$work/none/folder"
echo text >"$work/file"
run 1 "a folder that is a file" -o "$work/file"

able "cox-lab laptop on devices" "pocl cores" || skip "there are no two devices"
export OCL_ICD_VENDORS="$work/pocl"
two="--devices cpu:2x1 --frames 24 --size 64x96"

denies 1 'only one device was found: .*cpu:2x' "one device" --devices cpu:1x1 --frames 24 --size 64x96 -o "$work/one"

# --- One part at a time: parts that are done are not repeated ---------------------------------------------------------
lap=$work/lap
{
    prints '^  cox-lab run --anonymous --devices cpu:2x1 .* --curve ' "two parts" $two --parts sizes,curve -o "$lap"
    run 0 "the same again" $two --parts sizes,curve -o "$lap"
    contains out '^sizes: already done' '^curve: already done'
    lacks out '^  cox-lab run'
    rm "$lap/curve.db"
    run 0 "a database has gone" $two --parts sizes,curve -o "$lap"
    contains out '^sizes: already done' '^  cox-lab run .* --curve '
    denies 1 'fresh' "another kernel in the same folder" $two --kernel video --parts curve -o "$lap"
    run 0 "the other parts" $two -o "$lap"
    contains out '^curve: already done' '^energy: skipped\.|^  cox-lab run .* --objective energy'
}

# --- The archive -----------------------------------------------------------------------------------------------------
what="the archive"
mkdir "$work/unpacked"
check "tar does not read it" tar xf "$lap/laptop.tar" -C "$work/unpacked"
there=$work/unpacked/laptop
for file in README.txt LICENSE SHA256SUMS laptop.html machine.json parts.json plots/plots.gp plots/curve.csv probe.db sizes.db curve.db reserve.db corun.db \
    disturb.db; do
    check "$file is not in it" [ -s "$there/$file" ]
    same "$there/$file" "$lap/$file"
done
what="the archive's checksums"
check "they are wrong" env -C "$there" sha256sum --quiet --strict -c SHA256SUMS
equal "$(cd "$there" && find . -type f ! -name SHA256SUMS | sed 's,^\./,,' | LC_ALL=C sort)" \
    "$(sed 's/^[0-9a-f]*  //' "$there/SHA256SUMS" | LC_ALL=C sort)" "files"
same "$there/LICENSE" "$source/LICENSE"
contains "$there/README.txt" "SHA-256 of the program: $(sha256sum <"$lab" | cut -d ' ' -f 1)" '^  curve    [0-9T:Z-]+, power: ' \
    "cox-lab $("$lab" --version | sed 's/.* //') of Coxswain, commit "
for csv in "$there"/plots/*.csv; do
    what="$csv"
    check "plots.gp does not name it" grep -q "'$(basename "$csv")' skip 1" "$there/plots/plots.gp"
    check "its keys" eval 'head -n 1 "$csv" | grep -qE "^series,x,y,low,high(,label)?\$"'
    check "it is empty" [ "$(wc -l <"$csv")" -gt 1 ]
done
verb=
for db in "$there"/*.db; do
    run 0 "report of $db" report "$db" -o "$work/report.html"
    run 0 "replay of $db" replay "$db"
done
what="what it tells of its owner"
if [ "$sqlite" ]; then
    for db in "$there"/*.db; do
        holds "SELECT host FROM run WHERE host <> ''" ""
    done
    found=$(sqlite3 "$there/curve.db" "SELECT count(*) FROM session WHERE policy = 'curve'")
    check "$found splits of the curve" [ "$found" -ge 9 ]
    found=$(sqlite3 "$there/corun.db" "SELECT group_concat(kind, ' ') FROM session WHERE policy = 'soak'")
    check "stages of the soak: $found" [ "$found" = "solo solo sweep" ]
fi
refute "a path of this machine is in the archive" grep -aqF "$work" "$lap/laptop.tar"
what="the page"
for words in 'The split' 'A reserved core' 'Mains and battery' '<span>--anonymous</span>' 'prefers-color-scheme: dark' '<svg '; do
    contains "$lap/laptop.html" "$words"
done
lacks "$lap/laptop.html" '<script|src=|href=.http'
if [ "$python" ]; then
    check "no XML" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$lap/laptop.html"
fi
if command -v gnuplot >/dev/null; then
    what="gnuplot"
    check "it does not draw" env -C "$there/plots" gnuplot plots.gp
    for csv in "$there"/plots/*.csv; do
        check "no drawing of $csv" [ -s "${csv%.csv}.svg" ]
    done
fi

# --- Interrupted: only the part under way is repeated -----------------------------------------------------------------
verb=laptop
what="interrupted"
start "$lab" laptop --devices cpu:2x1 --frames 100000 --size 64x96 --parts curve,disturb -o "$work/again"
wait_until 300 "the second part's database" [ -s "$work/again/curve.db" ]
kill -TERM "$pid"
ends "$pid" 120
equal "$status" 130 "status"
contains err 'run the same command again'
refute "there is an archive of nothing" [ -e "$work/again/laptop.tar" ]
run 0 "going on" $two --parts curve -o "$work/again"
contains out '^probe: already done' '^  cox-lab run .* --curve '
check "there is no archive" [ -s "$work/again/laptop.tar" ]
run 0 "begun anew" $two --parts curve --fresh -o "$work/again"
lacks out 'already done'

# --- Two kinds of cores, a meter, mains and then battery --------------------------------------------------------------
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
if taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null; then
    run 0 "kinds of cores and a meter" $hybrid --parts curve,corun,kinds,energy
    contains out '^  taskset -c 0 cox-lab run .*--devices cpu ' '^  taskset -c 1 cox-lab run .*--devices cpu '
    contains out '^  cox-lab run .*--objective energy --deadline '
    for plot in kinds energy late clocks course turbo; do
        check "no $plot.csv" [ -s "$work/hybrid/plots/$plot.csv" ]
    done
    # The drawing, or its note: on a busy machine no band of these few frames may overlap with another device's for
    # long enough.
    contains "$work/hybrid/laptop.html" 'Each device while the others work'
    contains "$work/hybrid/plots/kinds.csv" '1 P cores'
fi
{
    run 0 "on mains" $hybrid --parts curve
    contains "$work/hybrid/parts.json" '"supply": "mains"'
    contains "$work/hybrid/laptop.html" 'on battery to compare'
    put class/power_supply/AC/online 0
    prints '^curve, on battery' "on battery" $hybrid --parts curve
    check "no run on battery" [ -s "$work/hybrid/curve-battery.db" ]
    check "no run on mains" [ -s "$work/hybrid/curve.db" ]
    check "they are not compared" [ -s "$work/hybrid/plots/supplies.csv" ]
    put class/power_supply/AC/online 1
    prints '^curve: already done' "on mains again" $hybrid --parts curve
}
finish
