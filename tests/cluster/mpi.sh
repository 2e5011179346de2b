#!/bin/sh
# cox-tonemap-mpi gives the frames of one run with any number of ranks. It also does so when it is started again after
# a rank was killed or had no disk space. Usage:
#   sh mpi.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/cluster.sh"
mpi=$tonemap-mpi
[ -x "$mpi" ] || skip "cox-tonemap-mpi is not built (COX_MPI is off)"
need mpirun
# As in containers: as root, with more ranks than cores, and without access to each other's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
mpirun -n 1 true 2>"$work/err" || skip "mpirun does not work here: $(tail -n 1 "$work/err")"

program() { # RANKS ARGS...
    count=$1
    shift
    timeout 600 mpirun -n "$count" "$mpi" "$@"
}
# one_run WHAT ARGS...: the single run that the ranks are compared with.
one_run() {
    h_one=$1
    shift
    expect_status 0 "$h_one, in one run" "$tonemap" "$@" -q
}

for count in 1 2 3 5; do
    run 0 "$count ranks" $count "$film" -o all$count.mkv --encoder ffv1
    whole all$count.mkv
done

# Raw frames go into one file, which all ranks write.
for kind in y4m nv12 p010; do
    one_run $kind "$film" -o one.$kind
    for count in 1 2 3; do
        run 0 "$count ranks, $kind" $count "$film" -o all$count.$kind
        same all$count.$kind one.$kind
        refute 'two files' [ -e all$count.$kind.pieces/film.$kind ]
    done
done

# Open MPI's semaphore for a file of this name, which another user's job has left. It lies in a separate name space,
# because other jobs of this machine would find it.
cat >"$work/planted.sh" <<'END'
mount -t tmpfs tmpfs /dev/shm && : >/dev/shm/sem.OMPIO_film.y4m && chmod 0 /dev/shm/sem.OMPIO_film.y4m || exit 9
timeout 600 mpirun -n 2 "$@" || exit
ls -A /dev/shm
END
if unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm' 2>/dev/null; then
    expect_status 0 "a semaphore of another's job" unshare --mount sh "$work/planted.sh" "$mpi" "$film" -o planted.y4m
    contains out '^sem.OMPIO_film.y4m$'
    counts 1 out OMPIO
    same planted.y4m one.y4m
    equal "$(find planted.y4m.pieces -name '*film.y4m*')" '' 'links to the file'
else
    leave_out "a semaphore of another's job" 'no file system can be mounted'
fi

look='--operator bt2390 --lookahead 1 --scale 32x'
# shellcheck disable=SC2086 # options are words
{
    one_run 'unlike devices, a look of its own' "$film" -o look.y4m $look
    run 0 'unlike devices' 3 "$film" -o all.y4m $look --devices 'cpu|cpu:2x1'
}
same all.y4m look.y4m
one_run 'a given peak' "$film" -o peak.y4m --peak 500
run 0 'a given peak' 2 "$film" -o given.y4m --peak 500
same given.y4m peak.y4m

# kill_a_rank RANKS STATE OUTPUT ARGS...: kill a rank during the mapping, as soon as the command STATE succeeds. A run
# that ended before is repeated without its output.
kill_a_rank() {
    ranks=$1
    state=$2
    output=$3
    shift 3
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        start mpirun -n "$ranks" "$mpi" "$film" -o "$output" "$@"
        wait_until 120 "a rank that has begun" eval "gone $pid || $state"
        rank=$(pgrep -P "$pid" -f cox-tonemap-mpi | head -n 1)
        [ -z "$rank" ] || kill -KILL "$rank" 2>/dev/null
        ends "$pid" 300
        [ "$status" -eq 0 ] || break
        rm -rf "$output" "$output.pieces"
    done
    differ "$status" 0 "the status, in ten tries"
    refute "an output" [ -e "$output" ]
}

# All ranks end without an output. The next start does only the rest.
what='a killed rank'
kill_a_rank 2 'ls killed.mkv.pieces/*.part' killed.mkv --encoder ffv1
remember
parts() { find killed.mkv.pieces -name '*.part' ! -newer "$work/before" | wc -l; }
before=$(parts)
run 0 'after a kill' 2 "$film" -o killed.mkv --encoder ffv1
whole killed.mkv
equal "$(parts)" "$before" 'parts that are left as they were'

# Other options in the same folder: no pieces of the earlier run are used.
one_run 'another look' "$film" -o clip.mkv --encoder ffv1 --operator clip
cp killed.mkv kept.mkv
what='an output that exists'
refute 'no failure' program 2 "$film" -o killed.mkv --encoder ffv1 --operator clip
contains "$work/log" 'killed.mkv: exists already; use --overwrite to replace it'
same killed.mkv kept.mkv
run 0 'another look' 2 "$film" -o killed.mkv --encoder ffv1 --operator clip --overwrite
equal "$(frames_of killed.mkv)" "$(frames_of clip.mkv)"

# A film that has only frames, written to a container.
one_run 'of y4m' peak.y4m -o plain.mkv --transfer pq --encoder ffv1
run 0 'of y4m' 2 peak.y4m -o plain2.mkv --transfer pq --encoder ffv1
equal "$(frames_of plain2.mkv)" "$(frames_of plain.mkv)"

what='two runs in one folder'
refute 'no failure' timeout 600 flock given.y4m.pieces mpirun -n 2 "$mpi" "$film" -o given.y4m
contains "$work/log" 'given.y4m.pieces: another run uses this folder'

# --- Started again, one file of raw frames ---------------------------------------------------------------------------
# Frames of 73 734 bytes, after a header.
size='--scale 256x192'
pieces=$work/d/again.y4m.pieces
# shellcheck disable=SC2086 # options are words
one_large() { one_run "$1" "$film" -o "$2" $size $3; }
one_large 'large frames' large.y4m ''

frames_mapped() { awk -F, '$1 == "map" { n += $4 } END { print n + 0 }' "$pieces/times.csv"; }
noted() { awk -F: '{ n += $2 } END { print n + 0 }' "$1"; }

# again FRAMES_THAT_COUNT WHAT OPTIONS...: start again. The other frames are mapped, and the bytes equal those of
# $right.
right=large.y4m
again() {
    left=$((300 - $1))
    h_again=$2
    shift 2
    # shellcheck disable=SC2086
    run 0 "$h_again" 3 "$film" -o again.y4m $size "$@"
    equal "$(frames_mapped)" "$left" 'frames that are mapped'
    same again.y4m $right
}

# A rank is killed while it maps.
what='a rank that was killed'
# shellcheck disable=SC2086
kill_a_rank 3 '[ -s "$pieces/journal" ]' again.y4m $size
cp "$pieces/journal" "$work/journal"
again "$(noted "$work/journal")" 'a rank that was killed'
equal "$(head -n "$(wc -l <"$work/journal")" "$pieces/journal" | sort)" "$(sort "$work/journal")" 'the journal'

# before: the state just before the file became the output.
cp "$pieces/journal" "$work/whole"
cp "$pieces/film.scene" "$work/scene"
before() {
    rm -f again.y4m
    cp large.y4m "$pieces/film.y4m"
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

# The end of a line is missing, or a line is invalid.
for torn in "$first" "${first%?}" "${first%:*}"; do
    before
    printf '%s\nno piece\n\n%s' "$second" "$torn" >"$pieces/journal"
    again "$(echo "$second" | cut -d: -f2)" "a line that is cut off: '$torn'"
done

# Lines of frames that are missing or incomplete in the file.
before
truncate -s -1 "$pieces/film.y4m"
again $((300 - $(echo "$last" | cut -d: -f2))) 'a film that is cut off'

# Another header: the frame rate does not tell pieces apart.
before
one_large 'another header' rate.y4m '--rate 25'
right=rate.y4m
again 0 'another header' --rate 25

# The last scene is edited: only the pieces with frames of it are mapped again.
before
scene=$(awk '$1 == "scene" { n = $2 } END { print n }' "$work/scene")
sed "s/^scene $scene\$/& peak 300/" "$work/scene" >"$pieces/film.scene"
cp "$pieces/film.scene" "$work/changed"
one_run 'a changed scene' "$film" -o changed.y4m --scene "$work/changed"
refute 'nothing changed' cmp -s changed.y4m large.y4m
unchanged() { awk -F: -v scene="$scene" '$1 + $2 <= scene { n += $2 } END { print n + 0 }' "$1"; }
kept=$(unchanged "$work/whole")
check 'nothing is to be kept' [ "$kept" -gt 0 ]
right=changed.y4m
again "$kept" 'a changed scene'

# The same without space for the end of the film. All ranks end, and an earlier output stays unchanged. If the scene is
# then restored, frames that were overwritten meanwhile must not be reused.
before
cp "$work/changed" "$pieces/film.scene"
echo mine >again.y4m
# shellcheck disable=SC2086
expect_status 1 'no room' timeout 600 mpirun -n 3 sh -c 'ulimit -f "$0"; exec "$@"' $((290 * 73734 / 512)) "$mpi" "$film" \
    -o again.y4m $size
contains err 'again.y4m.pieces/film.y4m: cannot be written, at byte .*: File too large'
equal "$(head -c 5 again.y4m | tr -d '\0')" mine 'the output of before'
refute 'nothing was written' cmp -s "$pieces/film.y4m" large.y4m
cp "$work/scene" "$pieces/film.scene"
right=large.y4m
again "$(unchanged "$pieces/journal")" 'overwritten in between'

# The scene file changes after rank 0 has read it, so no frame may be mapped with the new contents. A run that ended
# before is repeated.
what='a scene file that is changed meanwhile'
for _ in 1 2 3 4 5 6 7 8 9 10; do
    before
    rm -f "$pieces/film.y4m" "$pieces/journal"
    cp "$work/changed" "$work/soon"
    # shellcheck disable=SC2086
    start mpirun -n 3 "$mpi" "$film" -o again.y4m $size
    until [ -e "$pieces/journal" ] || gone "$pid"; do :; done
    mv "$work/soon" "$pieces/film.scene"
    ends "$pid" 300
    [ "$status" -eq 0 ] || break
    same again.y4m large.y4m
done
differ "$status" 0 'the status, in ten tries'
contains err 'film.scene: changed while its frames were being mapped'
refute 'an output' [ -e again.y4m ]

# A full disk.
mkdir "$work/disk"
if mount -t tmpfs -o size=4m tmpfs "$work/disk" 2>/dev/null; then
    at_exit "umount '$work/disk'"
    # shellcheck disable=SC2086
    run 1 'a full disk' 2 "$film" -o "$work/disk/full.y4m" $size
    contains err 'full.y4m.pieces/film.y4m: cannot be written, at byte .*: No space left'
    refute 'an output' [ -e "$work/disk/full.y4m" ]
    # The folder is on another disk than the output.
    mkdir "$work/disk/folder"
    ln -s "$work/disk/folder" apart.y4m.pieces
    denies 1 'apart.y4m.pieces: not on the file system of' 'two disks' 2 "$film" -o apart.y4m
else
    leave_out 'a full disk' 'no tmpfs can be mounted'
fi

# Raw frames whose scene is edited.
sed -i "s/^scene $scene\$/& peak 300/" all2.nv12.pieces/film.scene
cp all2.nv12.pieces/film.scene "$work/raw"
one_run 'raw frames of scenes' "$film" -o raw.nv12 --scene "$work/raw"
refute 'nothing changed' cmp -s raw.nv12 one.nv12
run 0 'raw frames again' 2 "$film" -o all2.nv12
same all2.nv12 raw.nv12
what='raw frames as y4m'
refute 'no failure' "$tonemap" "$film" -o raw.y4m --scene "$work/raw" -q
contains "$work/log" 'raw: its frames have another sample format than'

# An error is reported once.
wrong() { # PATTERN WHAT ARGS...
    h_pattern=$1
    what=$2
    shift 2
    refute 'no failure' program 2 "$@"
    contains "$work/log" "$h_pattern"
}
wrong "unknown operator 'no-such-operator'" 'a wrong option' "$film" -o a.mkv --operator no-such-operator
counts 1 "$work/log" "unknown operator 'no-such-operator'"
wrong . 'a picture' "$film" -o a.png
wrong 'missing.mkv: cannot be opened' 'no film' missing.mkv -o a.mkv
refute 'an output of nothing' [ -e a.mkv ]
wrong '/dev/null: not a regular file' 'no file' "$film" -o /dev/null --to y4m
cp one.p010 in.p010
wrong 'in.p010: input and output are the same file' 'the input as the output' in.p010 --size 64x48 -o in.p010
same in.p010 one.p010
finish
