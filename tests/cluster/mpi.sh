#!/bin/sh
# cox-tonemap-mpi: the frames of one run, with any number of ranks; and again after a rank was killed or had no room.
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

# same FILE ONE NAME: the bytes of one run.
same() { cmp -s "$1" "$2" && pass || fail "$3: the bytes differ"; }

# Frames that are not encoded: one file, which all ranks write.
for kind in y4m nv12 p010; do
    "$tonemap" "$work/film.mkv" -o "$work/one.$kind" -q 2>"$work/err" || fail "$kind in one run: $(cat "$work/err")"
    for count in 1 2 3; do
        if ranks $count "$work/film.mkv" -o "$work/all$count.$kind"; then pass; else fail "$count ranks, $kind: $(cat "$work/err")"; fi
        same "$work/all$count.$kind" "$work/one.$kind" "$count ranks, $kind"
        [ -e "$work/all$count.$kind.pieces/film.$kind" ] && fail "$count ranks, $kind: two files" || pass
    done
done

# Unlike devices, y4m, a look of its own.
"$tonemap" "$work/film.mkv" -o "$work/one.y4m" --operator bt2390 --lookahead 1 --scale 32x -q 2>"$work/err"
if ranks 3 "$work/film.mkv" -o "$work/all.y4m" --operator bt2390 --lookahead 1 --scale 32x --devices 'cpu|cpu:2x1'; then pass; else
    fail "unlike devices: $(cat "$work/err")"
fi
same "$work/all.y4m" "$work/one.y4m" 'unlike devices'

# A peak that is given.
"$tonemap" "$work/film.mkv" -o "$work/one.y4m" --peak 500 -q 2>"$work/err"
if ranks 2 "$work/film.mkv" -o "$work/given.y4m" --peak 500; then pass; else fail "a given peak: $(cat "$work/err")"; fi
same "$work/given.y4m" "$work/one.y4m" 'a given peak'

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
cp "$work/killed.mkv" "$work/kept.mkv"
ranks 2 "$work/film.mkv" -o "$work/killed.mkv" --encoder ffv1 --operator clip && fail 'an output that exists: no failure'
grep -q 'killed.mkv: exists; --overwrite replaces it' "$work/err" && cmp -s "$work/killed.mkv" "$work/kept.mkv" && pass ||
    fail "an output that exists: $(cat "$work/err")"
if ranks 2 "$work/film.mkv" -o "$work/killed.mkv" --encoder ffv1 --operator clip --overwrite; then pass; else fail "another look: $(cat "$work/err")"; fi
equal "$(frames_of "$work/killed.mkv")" "$(frames_of "$work/clip.mkv")" 'another look'

# A film without anything beside its frames, to a container.
"$tonemap" "$work/one.y4m" -o "$work/plain.mkv" --transfer pq --encoder ffv1 -q 2>"$work/err" || fail "y4m in one run: $(cat "$work/err")"
if ranks 2 "$work/one.y4m" -o "$work/plain2.mkv" --transfer pq --encoder ffv1; then pass; else fail "of y4m: $(cat "$work/err")"; fi
equal "$(frames_of "$work/plain2.mkv")" "$(frames_of "$work/plain.mkv")" 'of y4m'

# Two runs in one folder.
timeout 300 flock "$work/given.y4m.pieces" mpirun -n 2 "$mpi" "$work/film.mkv" -o "$work/given.y4m" </dev/null >"$work/out" 2>"$work/err" &&
    fail 'two runs at once: no failure'
grep -q 'given.y4m.pieces: another run works there' "$work/err" && pass || fail "two runs at once: $(cat "$work/err")"

# --- Again, of one file -----------------------------------------------------------------------------------------------
# Frames of 73 734 bytes, after a header.
"$tonemap" "$work/film.mkv" -o "$work/large.y4m" --scale 256x192 -q 2>"$work/err" || fail "large: $(cat "$work/err")"
large() { ranks 3 "$work/film.mkv" -o "$work/again.y4m" --scale 256x192 "$@"; }
pieces=$work/again.y4m.pieces

mapped() { awk -F, '$1 == "map" { n += $4 } END { print n + 0 }' "$pieces/times.csv"; }
noted() { awk -F: '{ n += $2 } END { print n + 0 }' "$1"; }

# again FRAMES_THAT_COUNT NAME OPTIONS...: started again, the others are mapped, and the bytes are those of $one.
one=$work/large.y4m
again() {
    left=$((300 - $1))
    name=$2
    shift 2
    if large "$@"; then pass; else fail "$name: $(cat "$work/err")"; fi
    equal "$(mapped)" "$left" "$name: frames that are mapped"
    same "$work/again.y4m" "$one" "$name"
}

# A rank is killed while it maps.
mpirun -n 3 "$mpi" "$work/film.mkv" -o "$work/again.y4m" --scale 256x192 </dev/null >"$work/out" 2>"$work/err" &
pid=$!
tries=3000
until [ -s "$pieces/journal" ] || [ $tries -eq 0 ]; do
    sleep 0.01
    tries=$((tries - 1))
done
killed=$(pgrep -P "$pid" -f cox-tonemap-mpi | head -n 1)
[ -n "$killed" ] && kill -KILL "$killed" 2>/dev/null
wait "$pid"
if [ -e "$work/again.y4m" ]; then
    echo "no rank was killed in time: the film was done"
    mv "$work/again.y4m" "$pieces/film.y4m"
fi
cp "$pieces/journal" "$work/journal"
again "$(noted "$work/journal")" 'a rank that was killed'
equal "$(head -n "$(wc -l <"$work/journal")" "$pieces/journal" | sort)" "$(sort "$work/journal")" 'a rank that was killed: the journal'

# before: as it was just before the file became the output.
cp "$pieces/journal" "$work/whole"
cp "$pieces/film.scene" "$work/scene"
before() {
    rm -f "$work/again.y4m"
    cp "$work/large.y4m" "$pieces/film.y4m"
    cp "$work/whole" "$pieces/journal"
    cp "$work/scene" "$pieces/film.scene"
}
first=$(sort -n "$work/whole" | head -n 1)
second=$(sort -n "$work/whole" | sed -n 2p)
last=$(sort -n "$work/whole" | tail -n 1)
before
again 300 'ended before the last step'
before
rm "$pieces/film.y4m"
again 0 'a journal without its film'

# The end of a line was not written; a line is none.
for torn in "$first" "${first%?}" "${first%:*}"; do
    before
    printf '%s\nno piece\n\n%s' "$second" "$torn" >"$pieces/journal"
    again "$(echo "$second" | cut -d: -f2)" 'a line that is cut off'
done

# Lines of frames that the file has not, or not whole.
before
truncate -s -1 "$pieces/film.y4m"
again $((300 - $(echo "$last" | cut -d: -f2))) 'a film that is cut off'

# The header is another one: the frames' rate is none of what pieces are told apart by.
before
"$tonemap" "$work/film.mkv" -o "$work/rate.y4m" --scale 256x192 --rate 25 -q 2>"$work/err" || fail "another rate: $(cat "$work/err")"
one=$work/rate.y4m
again 0 'another header' --rate 25

# The last scene is changed by hand: only the pieces that have frames of it are mapped again.
before
scene=$(awk '$1 == "scene" { n = $2 } END { print n }' "$work/scene")
sed "s/^scene $scene\$/& peak 300/" "$work/scene" >"$pieces/film.scene"
cp "$pieces/film.scene" "$work/changed"
"$tonemap" "$work/film.mkv" -o "$work/changed.y4m" --scene "$work/changed" -q 2>"$work/err" || fail "a changed scene: $(cat "$work/err")"
cmp -s "$work/changed.y4m" "$work/large.y4m" && fail 'a changed scene: nothing changed' || pass
unchanged() { awk -F: -v scene="$scene" '$1 + $2 <= scene { n += $2 } END { print n + 0 }' "$1"; }
kept=$(unchanged "$work/whole")
[ "$kept" -gt 0 ] && pass || fail 'a changed scene: nothing is to be kept'
one=$work/changed.y4m
again "$kept" 'a changed scene'

# The same, without room for the film's end: all end, and an output of before is as it was. With the scene as it was
# before, too, the frames that were overwritten in between are not taken for what they were.
limited() {
    count=$1
    blocks=$2
    shift 2
    timeout 300 mpirun -n "$count" sh -c 'ulimit -f "$0"; exec "$@"' "$blocks" "$mpi" "$@" </dev/null >"$work/out" 2>"$work/err"
}
before
cp "$work/changed" "$pieces/film.scene"
echo mine >"$work/again.y4m"
limited 3 $((290 * 73734 / 512)) "$work/film.mkv" -o "$work/again.y4m" --scale 256x192
equal $? 1 "no room: the status"
grep -q "again.y4m.pieces/film.y4m: cannot be written, at byte .*: File too large" "$work/err" && pass || fail "no room: $(cat "$work/err")"
equal "$(head -c 5 "$work/again.y4m" | tr -d "\0")" mine 'no room: the output of before'
cmp -s "$pieces/film.y4m" "$work/large.y4m" && fail 'no room: nothing was written' || pass
cp "$work/scene" "$pieces/film.scene"
one=$work/large.y4m
again "$(unchanged "$pieces/journal")" 'overwritten in between'

# The scene file is changed after rank 0 has read it: no frame is mapped as it says then.
before
rm "$pieces/film.y4m" "$pieces/journal" "$work/again.y4m" 2>/dev/null
cp "$work/changed" "$work/soon"
mpirun -n 3 "$mpi" "$work/film.mkv" -o "$work/again.y4m" --scale 256x192 </dev/null >"$work/out" 2>"$work/err" &
pid=$!
until [ -e "$pieces/journal" ] || ! kill -0 "$pid" 2>/dev/null; do :; done
mv "$work/soon" "$pieces/film.scene"
if wait "$pid"; then
    echo "the scene file was not changed in time: the film was done"
    same "$work/again.y4m" "$work/large.y4m" 'a scene file that is changed meanwhile'
else
    grep -q 'film.scene: was changed while its frames were being mapped' "$work/err" && pass || fail "a scene file that is changed meanwhile: $(cat "$work/err")"
    [ -e "$work/again.y4m" ] && fail 'a scene file that is changed meanwhile: an output' || pass
fi

# A disk without room.
mkdir "$work/disk"
if mount -t tmpfs -o size=4m tmpfs "$work/disk" 2>/dev/null; then
    trap 'umount "$work/disk"; rm -rf "$work"' EXIT
    ranks 2 "$work/film.mkv" -o "$work/disk/full.y4m" --scale 256x192
    equal $? 1 'a full disk: the status'
    grep -q 'full.y4m.pieces/film.y4m: cannot be written, at byte .*: No space left' "$work/err" && pass || fail "a full disk: $(cat "$work/err")"
    [ -e "$work/disk/full.y4m" ] && fail 'a full disk: an output' || pass
    # The folder is on another disk than the output.
    mkdir "$work/disk/folder"
    ln -s "$work/disk/folder" "$work/apart.y4m.pieces"
    ranks 2 "$work/film.mkv" -o "$work/apart.y4m"
    equal $? 1 'two disks: the status'
    grep -q 'apart.y4m.pieces: is on another file system than' "$work/err" && pass || fail "two disks: $(cat "$work/err")"
else
    echo "a full disk: skipped, because no tmpfs can be mounted"
fi

# Raw frames whose scene is changed.
again=$work/all2.nv12.pieces/film.scene
sed "s/^scene $scene\$/& peak 300/" "$again" >"$work/raw" && cp "$work/raw" "$again"
"$tonemap" "$work/film.mkv" -o "$work/raw.nv12" --scene "$work/raw" -q 2>"$work/err" || fail "raw frames of scenes: $(cat "$work/err")"
cmp -s "$work/raw.nv12" "$work/one.nv12" && fail 'raw frames of scenes: nothing changed' || pass
if ranks 2 "$work/film.mkv" -o "$work/all2.nv12"; then pass; else fail "raw frames again: $(cat "$work/err")"; fi
same "$work/all2.nv12" "$work/raw.nv12" 'raw frames again'
"$tonemap" "$work/film.mkv" -o "$work/raw.y4m" --scene "$work/raw" -q 2>"$work/err" && fail 'raw frames as y4m: no failure'
grep -q 'raw: is of frames with other samples than those of' "$work/err" && pass || fail "raw frames as y4m: $(cat "$work/err")"

# What is wrong is said once.
ranks 2 "$work/film.mkv" -o "$work/a.mkv" --operator no-such-operator && fail 'a wrong option: no failure'
equal "$(grep -c "no operator 'no-such-operator'" "$work/err")" 1 'a wrong option'
ranks 2 "$work/film.mkv" -o "$work/a.png" && fail 'a picture: no failure'
ranks 2 "$work/missing.mkv" -o "$work/a.mkv" && fail 'no film: no failure'
grep -q 'missing.mkv: cannot be opened' "$work/err" && pass || fail "no film: $(cat "$work/err")"
[ -e "$work/a.mkv" ] && fail 'an output of nothing' || pass
ranks 2 "$work/film.mkv" -o /dev/null --to y4m && fail 'no file: no failure'
grep -q '/dev/null: is no file' "$work/err" && pass || fail "no file: $(cat "$work/err")"
cp "$work/one.p010" "$work/in.p010"
ranks 2 "$work/in.p010" --size 64x48 -o "$work/in.p010" && fail 'the input as the output: no failure'
grep -q 'in.p010: is the input' "$work/err" && pass || fail "the input as the output: $(cat "$work/err")"
same "$work/in.p010" "$work/one.p010" 'the input as the output'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
