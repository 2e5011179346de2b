#!/bin/sh
# cox-lab cluster: its table, its page, files that are refused, and figures from the times of a run.
#   sh lab_cluster.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=cluster
cd "$work" || exit 1
film="$source/examples/cluster/feature-4k.json"

run 0 "help" --help
shows out "Usage: cox-lab cluster"
run 2 "nothing"
run 2 "two files" "$film" "$film"
run 2 "no such engine" "$film" --engine fast
run 2 "falling numbers" "$film" --machines 4,2
run 2 "no machine" "$film" --machines 0

cp "$film" own.json
run 2 "its own input" own.json -o own.json
cmp -s own.json "$film" && pass || fail "the input was written over"
run 2 "times as rows" own.json --times times.csv --json

run 0 "the example" "$film" --seeds 5 -o film.html
shows out '^  1000 +mpi '
shows out '^  1000 +queue '
shows out 'mpi: below half the ideal from [0-9]+ machines on: serial steps$'
if python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' film.html 2>"$work/err"; then pass; else fail "the page is not well-formed"; fi
[ "$(grep -c '<svg' film.html)" -ge 2 ] && pass || fail "no plots"
cp out first
run 0 "again" "$film" --seeds 5
cmp -s out first && pass || fail "the same command gives other figures"
run 0 "rows" "$film" --csv --machines 2,8 --engine queue --pieces 8
[ "$(wc -l <out)" -eq 3 ] && pass || fail "not a line for each number and one for the keys"
shows out '^.?cluster.?,.?machines'

# refused NAME PATTERN SED: the example, changed by sed.
refused() {
    sed "$3" "$film" >wrong.json
    run 1 "$1" wrong.json
    shows err "$2"
}
refused "an unknown key" 'wrong.json.*frame_count' 's/"frames"/"frame_count"/'
refused "no speed" 'map_fps' 's/, "map_fps": 7.5//'
refused "a speed of nothing" 'map_fps' 's/"map_fps": 7.5/"map_fps": 0/'
refused "more than all are slow" 'part' 's/"part": 0.02/"part": 1.5/'
refused "no object" 'storage' 's/"storage": {.*},/"storage": 5,/'
refused "cut off" 'wrong.json' '$d'
run 1 "no such file" none.json

# Times that are known: ten frames a second, half a second for each range.
cat >times.csv <<END
step,rank,first,count,start_s,seconds
begin,0,0,1000,0,1
map,0,0,100,1,10.5
map,0,100,900,11.5,90.5
join,0,0,1000,102,2
END
run 0 "figures of a run" --fit times.csv
cp out ours.json
shows out '"begin_s": 0\.500000'
shows out '"map_fps": (10|9\.9999)'
shows out '"join_fps": 500'
run 0 "that run again" ours.json --times times.csv
shows out 'real run, 1 rank: simulated over real: map [0-9.]+ / 101.0 s = (1\.0|0\.9)[0-9]*; all'
run 1 "a run of another film" "$film" --times times.csv
shows err 'has 1000 frames'
"$lab" cluster --fit times.csv >/dev/full 2>err && fail "standard output that cannot be written" || pass
grep -v '^map,0,0,' times.csv >rest.csv
run 1 "a run that went on" --fit rest.csv
shows err 'went on with what another one had begun'
echo 'map,0,0,1' >>times.csv
run 1 "a line cut off" --fit times.csv
shows err 'times.csv: line 6'

ended
