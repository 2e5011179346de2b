#!/bin/sh
# cox-lab run --baseline: StarPU next to the policies. In a build without StarPU only the message is checked.
#   sh lab_baseline.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/lab.sh"
verb=run
. "$source/tests/support/setups.sh"
export STARPU_HOME="$work"

denies 2 "must be starpu" "a baseline that is none" --baseline cuda
run 2 "without frames" --baseline starpu --frames 0
if grep -q "built without StarPU" "$work/err"; then
    contains err "COX_STARPU=ON"
    skip "this build has no StarPU (Debian: libstarpu-dev; cmake -D COX_STARPU=ON)"
fi
run 2 "a kernel of several passes" --baseline starpu --kernel blur
denies 2 "needs --kernel work" "a kernel of one's own" --baseline starpu --kernel "$source/examples/programs/lab/data/sharpen.cl"
able "cox-lab run --baseline" pocl || skip "PoCL is missing"
export OCL_ICD_VENDORS="$work/pocl"

db=$work/b.db
small="--devices cpu --size 64x96 --rounds 2 --frames 12 --telemetry 0 -o $work/b.db --baseline starpu"
run 0 "work" --kernel work $small
contains out "baseline: StarPU 1\.3.* dmda, [0-9]+ blocks; the sweep:" "^  1 .*[0-9]" "^  starpu-dmda .*[0-9]"
contains out "starpu-dmda: outputs equal those of device 0 alone, bit for bit, after ([0-9]+) of \1 blocks"
run 0 "frames in flight, repeats, a delay" --kernel work --in-flight 3 --repeats 2 --disturb delay=0,500@4:8 --csv $small
contains out "policy,starpu-dmda,"
holds "SELECT count(*), min(frames) FROM summary WHERE policy = 'starpu-dmda' AND run = 1" "1|12"
holds "SELECT count(*) FROM summary WHERE policy = 'starpu-dmda' AND run = 2" 6
holds "SELECT count(DISTINCT run) FROM setting WHERE name = 'baseline' AND value LIKE 'StarPU 1.3%dmda%; 1: %'" 2
holds "SELECT min(rows) || ' ' || max(rows) FROM (SELECT sum(b.rows) AS rows FROM band b JOIN session USING (session)
    WHERE policy = 'starpu-dmda' AND run = 1 GROUP BY session, frame)" "96 96"
denies 1 "whole devices only" "sub-devices" --baseline starpu --devices cpu:1x1 --kernel work --frames 8 -o "$work/c.db"
verb=
run 0 "the report" report "$work/b.db" -o "$work/b.html"
check "no row in the report" grep -q starpu-dmda "$work/b.html"
run 0 "a replay, without its sessions" replay "$work/b.db" --run 1
lacks out starpu-dmda
finish
