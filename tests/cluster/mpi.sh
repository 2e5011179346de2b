#!/bin/sh
# cox-tonemap-mpi: the frames of one run, with any number of ranks; and again after a rank was killed.
#   sh mpi.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
mpi=$tonemap-mpi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ -x "$mpi" ] || {
    echo "skipped, because cox-tonemap-mpi is not built (COX_MPI is off)"
    exit 77
}
. "$(dirname "$0")/cluster_lib.sh"
command -v mpirun >/dev/null || skip "mpirun is missing"
# As in containers: as root, with more ranks than cores, without reading each other's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
mpirun -n 1 true 2>"$work/err" || skip "mpirun does not work here: $(tail -n 1 "$work/err")"

# ranks N ARGS...
ranks() {
    count=$1
    shift
    timeout 300 mpirun -n "$count" "$mpi" "$@" </dev/null >"$work/out" 2>"$work/err"
}

for count in 1 2 3 5; do
    if ranks $count "$work/film.mkv" -o "$work/all$count.mkv" --encoder ffv1; then pass; else fail "$count ranks: $(cat "$work/err")"; fi
    whole "$work/all$count.mkv" "$count ranks"
done

# Unlike devices, y4m, a look of its own.
"$tonemap" "$work/film.mkv" -o "$work/one.y4m" --operator bt2390 --lookahead 1 --scale 32x -q 2>"$work/err"
if ranks 3 "$work/film.mkv" -o "$work/all.y4m" --operator bt2390 --lookahead 1 --scale 32x --devices 'cpu|cpu:2x1'; then pass; else
    fail "unlike devices: $(cat "$work/err")"
fi
cmp -s "$work/one.y4m" "$work/all.y4m" && pass || fail 'unlike devices: the frames differ'

# A peak that is given.
"$tonemap" "$work/film.mkv" -o "$work/one.y4m" --peak 500 -q 2>"$work/err"
if ranks 2 "$work/film.mkv" -o "$work/given.y4m" --peak 500; then pass; else fail "a given peak: $(cat "$work/err")"; fi
cmp -s "$work/one.y4m" "$work/given.y4m" && pass || fail 'a given peak: the frames differ'

# A rank is killed: all end, there is no output; the next start does the rest only.
mpirun -n 2 "$mpi" "$work/film.mkv" -o "$work/killed.mkv" --encoder ffv1 </dev/null >"$work/out" 2>"$work/err" &
pid=$!
tries=600
until ls "$work/killed.mkv.pieces"/*.part >/dev/null 2>&1 || [ $tries -eq 0 ]; do
    sleep 0.02
    tries=$((tries - 1))
done
killed=$(pgrep -P "$pid" -f cox-tonemap-mpi | head -n 1)
[ -n "$killed" ] && kill -KILL "$killed" 2>/dev/null
wait "$pid"
status=$?
if [ -n "$killed" ] && [ $status -ne 0 ]; then
    [ -e "$work/killed.mkv" ] && fail 'a killed rank: an output' || pass
else
    echo "no rank was killed in time: the film was done"
fi
touch "$work/before"
before=$(find "$work/killed.mkv.pieces" -name '*.part' | wc -l)
sleep 0.1
if ranks 2 "$work/film.mkv" -o "$work/killed.mkv" --encoder ffv1; then pass; else fail "after a kill: $(cat "$work/err")"; fi
whole "$work/killed.mkv" 'after a kill'
after=$(find "$work/killed.mkv.pieces" -name '*.part' ! -newer "$work/before" | wc -l)
equal "$after" "$before" 'after a kill: parts that are left as they were'

# Another look in the same folder: nothing of the old one is taken for it.
"$tonemap" "$work/film.mkv" -o "$work/clip.mkv" --encoder ffv1 --operator clip -q 2>"$work/err"
if ranks 2 "$work/film.mkv" -o "$work/killed.mkv" --encoder ffv1 --operator clip; then pass; else fail "another look: $(cat "$work/err")"; fi
equal "$(frames_of "$work/killed.mkv")" "$(frames_of "$work/clip.mkv")" 'another look'

# What is wrong is said once.
ranks 2 "$work/film.mkv" -o "$work/a.mkv" --operator no-such-operator && fail 'a wrong option: no failure'
equal "$(grep -c "no operator 'no-such-operator'" "$work/err")" 1 'a wrong option'
ranks 2 "$work/film.mkv" -o "$work/a.png" && fail 'a picture: no failure'
ranks 2 "$work/missing.mkv" -o "$work/a.mkv" && fail 'no film: no failure'
grep -q 'missing.mkv: cannot be opened' "$work/err" && pass || fail "no film: $(cat "$work/err")"
[ -e "$work/a.mkv" ] && fail 'an output of nothing' || pass

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
