#!/bin/sh
# cox-lab run --baseline: StarPU beside the policies. Where this build has none, only that it says so.   sh lab_baseline.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=run
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES POCL_AFFINITY
# shellcheck source=tests/support/setups.sh
. "$2/tests/support/setups.sh"
export STARPU_HOME="$work"

run 2 "a baseline that is none" --baseline cuda
shows err "starpu is needed"
run 2 "without frames" --baseline starpu --frames 0
if grep -q "built without StarPU" "$work/err"; then
    shows err "COX_STARPU=ON"
    ended || exit 1
    echo "skipped, because this build has no StarPU (Debian: libstarpu-dev; cmake -D COX_STARPU=ON)"
    exit 77
fi
run 2 "a kernel of several passes" --baseline starpu --kernel blur
run 2 "a kernel of one's own" --baseline starpu --kernel "$source/examples/lab/data/sharpen.cl"
shows err "tonemap, video and work"
able "cox-lab run --baseline" pocl || { ended; exit; }
export OCL_ICD_VENDORS="$work/pocl"

# value SQL RESULT
value() {
    command -v sqlite3 >/dev/null || return 0
    found=$(sqlite3 "$work/b.db" "$1" 2>&1)
    if [ "$found" = "$2" ]; then pass; else fail "$1: '$found' instead of '$2'"; fi
}
small="--devices cpu --size 64x96 --rounds 2 --frames 12 --telemetry 0 -o $work/b.db --baseline starpu"
# shellcheck disable=SC2086 # words of $small
for kernel in tonemap video work; do
    run 0 "$kernel" --kernel $kernel $small
    shows out "baseline: StarPU 1\.3.* dmda, [0-9]+ blocks; the sweep:"
    shows out "^  1 .*[0-9]"
    shows out "^  starpu-dmda .*[0-9]"
    shows out "starpu-dmda: outputs as device 0 alone writes them, bit for bit, after ([0-9]+) of \1 blocks"
done
# shellcheck disable=SC2086
run 0 "frames in flight, repeats, a delay" --kernel work --in-flight 3 --repeats 2 --disturb delay=0,500@4:8 --csv $small
shows out "policy,starpu-dmda,"
value "SELECT count(*), min(frames) FROM summary WHERE policy = 'starpu-dmda' AND run = 1" "1|12"
value "SELECT count(*) FROM summary WHERE policy = 'starpu-dmda' AND run = 4" 6
value "SELECT count(DISTINCT run) FROM setting WHERE name = 'baseline' AND value LIKE 'StarPU 1.3%dmda%; 1: %'" 4
value "SELECT min(rows) || ' ' || max(rows) FROM (SELECT sum(b.rows) AS rows FROM band b JOIN session USING (session)
    WHERE policy = 'starpu-dmda' AND run = 1 GROUP BY session, frame)" "96 96"
run 1 "sub-devices" --baseline starpu --devices cpu:1x1 --kernel work --frames 8 -o "$work/c.db"
shows err "whole devices only"
verb=
run 0 "the report" report "$work/b.db" -o "$work/b.html"
if grep -q starpu-dmda "$work/b.html"; then pass; else fail "no row in the report"; fi
run 0 "a replay, without its sessions" replay "$work/b.db" --run 1
lacks out starpu-dmda
ended
