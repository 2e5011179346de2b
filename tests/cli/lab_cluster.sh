#!/bin/sh
# cox-lab cluster: its table, its page, the files that it refuses, and figures from the times of a run.
#   sh lab_cluster.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
verb=cluster
film="$source/examples/programs/cluster/feature-4k.json"

prints "Usage: cox-lab cluster" "help" --help
run 2 "nothing"
run 2 "two files" "$film" "$film"
run 2 "no such engine" "$film" --engine fast
run 2 "falling numbers" "$film" --machines 4,2
run 2 "no machine" "$film" --machines 0

cp "$film" own.json
run 2 "its own input" own.json -o own.json
same own.json "$film"
run 2 "times as rows" own.json --times times.csv --json

run 0 "the example" "$film" --seeds 5 -o film.html
contains out '^  1000 +mpi ' '^  1000 +queue ' 'mpi: efficiency below 0.5 from [0-9]+ machines on; largest loss: serial steps$'
is_xml film.html
check "no plots" [ "$(grep -c '<svg' film.html)" -ge 2 ]
cp "$work/out" first
run 0 "again" "$film" --seeds 5
same "$work/out" first
run 0 "rows" "$film" --csv --machines 2,8 --engine queue --pieces 8
check "not a line for each number and one for the keys" [ "$(wc -l <"$work/out")" -eq 3 ]
contains out '^.?cluster.?,.?machines'

# refused NAME PATTERN SED: the example, changed by this sed command, is refused.
refused() {
    sed "$3" "$film" >wrong.json
    denies 1 "$2" "$1" wrong.json
}
refused "an unknown key" 'wrong.json.*frame_count' 's/"frames"/"frame_count"/'
refused "no speed" 'map_fps' 's/, "map_fps": 7.5//'
refused "a speed of nothing" 'map_fps' 's/"map_fps": 7.5/"map_fps": 0/'
refused "more than all are slow" 'part' 's/"part": 0.02/"part": 1.5/'
refused "no object" 'storage' 's/"storage": {.*},/"storage": 5,/'
refused "cut off" 'wrong.json' '$d'
run 1 "no such file" none.json

# Known times: ten frames per second, and half a second for each range.
cat >times.csv <<END
step,rank,first,count,start_s,seconds
begin,0,0,1000,0,1
map,0,0,100,1,10.5
map,0,100,900,11.5,90.5
join,0,0,1000,102,2
END
run 0 "figures of a run" --fit times.csv
cp "$work/out" ours.json
contains out '"begin_s": 0\.500000' '"map_fps": (10|9\.9999)' '"join_fps": 500'
run 0 "that run again" ours.json --times times.csv
contains out 'real run, 1 rank: simulated over real: map [0-9.]+ / 101.0 s = (1\.0|0\.9)[0-9]*; all'
denies 1 'real run has 1000 frames' "a run of another film" "$film" --times times.csv
what="standard output that cannot be written"
"$lab" cluster --fit times.csv >/dev/full 2>"$work/err"
differ $? 0 "status"
grep -v '^map,0,0,' times.csv >rest.csv
denies 1 'from a resumed run' "a run that went on" --fit rest.csv
echo 'map,0,0,1' >>times.csv
denies 1 'times.csv: line 6' "a line cut off" --fit times.csv

finish
