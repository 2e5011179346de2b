#!/bin/sh
# What cox-lab run records on two and on three devices. cox-lab replay replays it and repeats its decisions, and
# cox-lab report reports it.
#   sh lab_recorded.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
. "$source/tests/support/setups.sh"
able "two devices" "pocl cores" || skip "there are no two devices"
db=$work/s.db

# record DEVICES ARGS...: record a new database. The frame numbers of its references must have large gaps.
record() {
    rm -f "$db"*
    run 0 "run on $*" run --size 64x96 --rounds 8 --frames 40 -o "$db" --devices "$@"
    [ -n "$sqlite" ] || return 0
    far=$(sqlite3 "$db" "SELECT count(*) > 0 FROM (SELECT 1 FROM frame JOIN session USING (session) WHERE kind <> 'policy'
        GROUP BY session HAVING max(frame) >= 2 * count(*) + 100)")
    check "no reference has far frames" [ "$far" = 1 ]
}

# read_again DEVICES POLICY...: replay accepts what was recorded with these policies, in every mode, and so does report
read_again() {
    count=$1
    shift
    prints "conditions of $# sessions? of all policies" "replay of $count devices" replay "$db"
    for device in $(seq 0 $((count - 1))); do contains out "^  device $device  .* us per row"; done
    lacks out "never had rows"
    lacks err .
    for policy in "$@"; do contains out "^$policy( +[0-9.]+){7}\\*?( |\$)"; done
    run 0 "replay of $count devices as CSV" replay --csv "$db"
    for policy in "$@"; do contains out "^1,all,$policy,$((40 * $#)),"; done
    run 0 "decisions on $count devices" replay --decisions "$db"
    for policy in "$@"; do contains out ", $policy: 40 splits, [0-9]+ grants: all the same"; done
    lacks err .
    run 0 "report of $count devices" report "$db" -o "$work/s.html"
    for policy in "$@"; do
        contains "$work/s.html" ">$policy<"
    done
}

export OCL_ICD_VENDORS="$work/pocl"
sharpen=$source/examples/programs/lab/data/sharpen.cl
record cpu:2x1
read_again 2 adaptive
record cpu:2x1 --kernel "$sharpen" --policy adaptive,chunks,last-frame --in-flight 2 --disturb delay=1,2000@10:20
read_again 2 adaptive chunks last-frame

record cpu:2x1 --kernel "$source/examples/programs/lab/data/soften.cl" --policy adaptive,chunks --in-flight 2
run 0 "decisions in passes" replay --decisions "$db"
contains out ", adaptive: 40 splits, 0 grants: all the same" ", chunks: 80 splits, [0-9]+ grants: all the same"
run 0 "replay of two passes" replay "$db"
contains out "^  pass 0, across, 96 rows\$" "^  pass 1, down, 96 rows, [0-9.]+ us after the previous pass\$"
for policy in adaptive chunks; do contains out "^$policy( +[0-9.]+){7}\\*?( |\$)"; done
denies 1 "run 1 has frames of 2 passes" "a fit to two passes" fit "$db"
run 0 "report of two passes" report "$db" -o "$work/s.html"
contains "$work/s.html" "Rows of each device in across"

if [ -n "$only" ]; then
    leave_out "three devices" "only $only is to be used"
elif able "three devices" rusticl; then
    OCL_ICD_VENDORS=$work/both
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    record cpu:2x1,gpu --policy adaptive,ewma
    read_again 3 adaptive ewma
fi

finish
