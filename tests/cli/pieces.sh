#!/bin/sh
# A film mapped in pieces has the frames of one run over the whole film, for any lengths of the pieces. Files that do
# not belong together are refused.
#
#   [COX_PIECES="1 7 50 333"] sh pieces.sh BIN_DIR SOURCE_DIR
#
# COX_PIECES: the lengths of pieces to try, in frames of a film of 1000 (default: 333).
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device

# --- A film of 1000 frames with 12 cuts, which brightens and darkens between them ---

film="$work/film.y4m"
light='0.25+0.7*mod(floor(N/77)*5,13)/13+0.1*sin(N/30)'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=42,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb='512+8*sin(N/9)':cr=512" \
    -frames:v 1000 -strict -1 -f yuv4mpegpipe "$film" 2>"$work/err" || skip "this ffmpeg cannot make the film"
prints '^scenes .*12 cuts' 'the film' "$film" -o ../whole.y4m

# pieces FILM WHOLE LENGTHS WHAT: the film in pieces of these lengths, used in rotation, equals the whole.
pieces() {
    first=0
    : >"$work/ranges"
    while [ $first -lt 1000 ]; do
        for length in $3; do
            [ $first -lt 1000 ] || break
            end=$((first + length))
            [ $end -le 1000 ] || end=1000
            echo "$first:$end" >>"$work/ranges"
            first=$end
        done
    done
    while read -r range <&3; do
        run 0 "$4: analyse $range" analyse "$1" --range "$range" -o "${range%:*}.part" -q
    done 3<"$work/ranges"
    prints ', 12 cuts' "$4: steer" steer ./*.part -o film.scene
    while read -r range <&3; do
        run 0 "$4: map $range" map "$1" --scene film.scene --range "$range" -o "${range%:*}.y4m" -q
    done 3<"$work/ranges"
    run 0 "$4: join" join ./*.y4m -o ../joined.y4m --overwrite
    same "$2" "$work/joined.y4m"
    clean
}

for length in ${COX_PIECES:-333}; do
    pieces "$film" "$work/whole.y4m" "$length" "pieces of $length"
done
pieces "$film" "$work/whole.y4m" '411 3 348 1 237' 'pieces of any length'

# With look-ahead, and with another size.
run 0 'the whole' "$film" -o ../ahead.y4m --lookahead 1 --scale 32x --operator bt2390 -q
run 0 'analyse of a look ahead' analyse "$film" --range :400 -o a.part --lookahead 1 --scale 32x --operator bt2390
run 0 'the rest of it' analyse "$film" --range 400: -o b.part --lookahead 1 --scale 32x --operator bt2390
run 0 'its light' steer b.part a.part -o film.scene
for part in 1 2 3; do run 0 'its pieces' map "$film" --scene film.scene --share $part/3 -o $part.y4m; done
run 0 'its whole' join 3.y4m 2.y4m 1.y4m -o ../joined.y4m --overwrite
same "$work/ahead.y4m" "$work/joined.y4m" 'a look ahead'

# The scene file in one run over the whole film, and a scene file that was edited.
run 0 'one run by the scene file' "$film" --scene film.scene -o ../joined.y4m
same "$work/ahead.y4m" "$work/joined.y4m"
prints '^done ' 'a piece that is there' map "$film" --scene film.scene --share 2/3 -o 2.y4m
sed 's/^scene 539$/scene 539 peak 5000/' film.scene >other.scene
prints '^done ' 'a piece before the change' map "$film" --scene other.scene --share 1/3 -o 1.y4m
run 0 'a piece with the change' map "$film" --scene other.scene --share 2/3 -o 2.y4m
contains out '^written ' 'to 5000 cd'
clean

# Each piece on other devices: a CPU, another driver's device, and both. The arithmetic is set in advance for all.
export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
if "$bin/cox-devices" 2>/dev/null | grep -q 'rusticl .* 1$'; then
    run 0 'the whole' "$film" -o ../muladd.y4m --devices cpu --arithmetic muladd -q
    run 0 'analyse on a processor' analyse "$film" --range :300 -o 1.part --devices cpu --arithmetic muladd
    run 0 'analyse on llvmpipe' analyse "$film" --range 300:600 -o 2.part --devices gpu --arithmetic muladd
    run 0 'analyse on both' analyse "$film" --range 600: -o 3.part --devices cpu,gpu --arithmetic muladd
    run 0 'the light of three machines' steer 1.part 2.part 3.part -o film.scene
    run 0 'map on llvmpipe' map "$film" --scene film.scene --share 1/3 -o 1.y4m --devices gpu
    run 0 'map on both' map "$film" --scene film.scene --share 2/3 -o 2.y4m --devices cpu,gpu
    run 0 'map on a processor' map "$film" --scene film.scene --share 3/3 -o 3.y4m --devices cpu
    run 0 'join what three machines mapped' join 1.y4m 2.y4m 3.y4m -o ../joined.y4m --overwrite
    same "$work/muladd.y4m" "$work/joined.y4m" 'pieces of three kinds of machines'
    clean
else
    leave_out 'other devices' 'llvmpipe is missing'
fi
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE

# If the peak is given, no analysis is needed.
run 0 'the whole' "$film" -o ../given.y4m --peak 600 -q
for part in 1 2; do run 0 'analyse of nothing' analyse "$film" --share $part/2 -o $part.part --peak 600; done
run 0 'light that is given' steer 1.part 2.part -o film.scene
for part in 1 2; do run 0 'its pieces' map "$film" --scene film.scene --share $part/2 -o $part.y4m; done
run 0 'its whole' join 1.y4m 2.y4m -o ../joined.y4m --overwrite
same "$work/given.y4m" "$work/joined.y4m"
cp film.scene "$work/given.scene"
clean

# --- What does not belong together: one line, status 3, no file left ---

keep="$work/keep"
mkdir "$keep"
(cd "$keep" && {
    "$tonemap" analyse "$film" --range 0:40 -o a.part -q
    "$tonemap" analyse "$film" --range 40:90 -o b.part -q
    "$tonemap" analyse "$film" --range 30:50 -o over.part -q
    "$tonemap" analyse "$film" --range 40:90 -o look.part -q --operator clip
    "$tonemap" analyse "$film" --range 40:90 -o arithmetic.part -q --arithmetic muladd
    "$tonemap" steer a.part b.part -o ab.scene -q
    "$tonemap" map "$film" --scene ab.scene --share 1/2 -o 1.y4m -q
    "$tonemap" map "$film" --scene ab.scene --share 2/2 -o 2.y4m -q
    head -c 5000 a.part >cut.part
    { head -c 3000 a.part; printf x; tail -c +3002 a.part; } >damaged.part
    sed '$d' ab.scene >cut.scene
    sed 's/^0 .*/0 -5 1/' ab.scene >wrong.scene
    sed 's/^width 64/width 65/' ab.scene >size.scene
    sed '1s/ 1 [0-9].*/ 1 99.0/' ab.scene >version.scene
}) 2>"$work/err"
head -c 2000000 "$film" >"$work/other.y4m"
refuses 3 'cut.part: truncated' 'a part that is cut off' steer "$keep/cut.part" "$keep/b.part" -o film.scene
refuses 3 'damaged.part: damaged' 'a damaged part' steer "$keep/damaged.part" "$keep/b.part" -o film.scene
refuses 3 'both contain frame 30' 'parts that overlap' steer "$keep/a.part" "$keep/over.part" -o film.scene
refuses 3 'both contain frame 40' 'a part twice' steer "$keep/b.part" "$keep/b.part" -o film.scene
refuses 3 'do not match: operator' 'parts of another look' steer "$keep/a.part" "$keep/look.part" -o film.scene
! grep -q 'arithmetic 2' "$keep/ab.scene" ||
    refuses 3 'do not match: arithmetic' 'another arithmetic' steer "$keep/a.part" "$keep/arithmetic.part" -o film.scene
refuses 3 'not a part written by' 'what is no part' steer "$keep/ab.scene" -o film.scene
refuses 3 "truncated: the line 'end' is missing" 'scenes cut off' map "$film" --scene "$keep/cut.scene" -o a.y4m
refuses 3 'line [0-9]+: expected .FRAME PEAK GAIN' 'scenes with a wrong line' map "$film" --scene "$keep/wrong.scene" -o a.y4m
refuses 3 'have another size or format' 'scenes of another size' map "$film" --scene "$keep/size.scene" -o a.y4m
refuses 3 'written by version 99.0' 'scenes of another version' map "$film" --scene "$keep/version.scene" -o a.y4m
refuses 3 'from another film' 'scenes of another film' map "$work/other.y4m" --scene "$keep/ab.scene" -o a.y4m
refuses 3 '--range begins with frame 90' 'a range beyond the scenes' map "$film" --scene "$keep/ab.scene" --range 90:95 -o a.y4m
refuses 3 'not a piece' 'what is no piece' join "$keep/1.y4m" "$work/whole.y4m" -o a.y4m
refuses 3 'both contain frame 0' 'a piece twice' join "$keep/1.y4m" "$keep/1.y4m" -o a.y4m
refuses 1 'frame 216 .* is incomplete' 'a film cut off' analyse "$work/other.y4m" -o a.part
refuses 2 'needs --scene FILE, which cox-tonemap steer writes' 'no scenes' map "$film" -o a.y4m
refuses 2 'the look is set by analyse' 'a look of its own' map "$film" --scene "$keep/ab.scene" --operator clip -o a.y4m
refuses 2 'expected I/N' 'a share that is none' analyse "$film" --share 3/2 -o a.part
refuses 2 'expected FIRST:END' 'a range that is none' analyse "$film" --range 9:3 -o a.part
refuses 2 'both select frames' 'a range and a share' analyse "$film" --range 3:9 --share 1/2 -o a.part

refuses 3 'frames 45 to 89 are missing: no piece after' 'the last piece is missing' join "$keep/1.y4m" -o a.y4m
refuses 3 'frames 0 to 44 are missing: no piece before' 'the first piece is missing' join "$keep/2.y4m" -o a.y4m
refuses 3 'has no frame 5000' 'a range beyond the film' analyse "$film" --range 5000: -o a.part
refuses 1 'truncated: its last frame is incomplete' 'a share of a film cut off' analyse "$work/other.y4m" --share 1/2 -o a.part

# Input files are never written to.
cp "$film" film.y4m
cp "$keep"/*.part "$keep/ab.scene" "$keep"/?.y4m "$work/d"
cp ab.scene scene.y4m
for what_of in 'analyse film.y4m -o film.y4m' 'steer a.part b.part -o a.part' 'map film.y4m --scene scene.y4m -o scene.y4m' \
    'join 1.y4m 2.y4m -o 1.y4m --overwrite' 'map film.y4m --scene ab.scene -o film.y4m'; do
    md5sum -- * >"$work/sums"
    run 1 "$what_of" $what_of
    check 'a file has changed' md5sum --quiet -c "$work/sums"
done
clean

# Changes that editors make to a scene file do not matter. A truncated file is detected, wherever it ends.
sed 's/^scene 0$/scene 0 peak 700 gain 0.5/' "$keep/ab.scene" >"$work/plain.scene"
run 0 'a piece of an edited file' map "$film" --scene "$work/plain.scene" --share 1/2 -o a.y4m
tab=$(printf '\t')
cr=$(printf '\r')
sed "s/\$/$cr/" "$work/plain.scene" >"$work/crlf.scene"
{ printf '\357\273\277' && cat "$work/plain.scene"; } >"$work/mark.scene"
sed "s/ /$tab $tab/g; s/^/$tab/; s/\$/ $tab /" "$work/plain.scene" >"$work/blanks.scene"
printf '%s' "$(cat "$work/plain.scene")" >"$work/newline.scene"
{ cat "$work/plain.scene" && printf '\n\n# Nothing follows.\n'; } >"$work/behind.scene"
{ printf '\357\273\277' && printf '%s' "$(sed "s/ /$tab/g; s/\$/ $cr/" "$work/plain.scene")"; } >"$work/all.scene"
for kind in crlf mark blanks newline behind all; do
    refute "$kind is not another file" cmp "$work/plain.scene" "$work/$kind.scene"
    prints '^done ' "an edited file, $kind" map "$film" --scene "$work/$kind.scene" --share 1/2 -o a.y4m
done
clean
for kind in newline crlf; do
    bytes=$(bytes "$work/$kind.scene")
    for less in 1 2 3 4 5 6 9 12 15; do
        head -c $((bytes - less)) "$work/$kind.scene" >"$work/short.scene"
        [ $kind = crlf ] && [ $less -le 2 ] && continue # 'end' is still complete
        refuses 3 "short.scene: truncated: the line 'end' is missing" "a file cut off by $less, $kind" map "$film" --scene "$work/short.scene" -o a.y4m
    done
done
{ cat "$work/plain.scene" && echo '45 900 1'; } >"$work/more.scene"
refuses 3 "line [0-9]+: unexpected line after 'end'" "a line behind the last" map "$film" --scene "$work/more.scene" -o a.y4m

# An existing file that is damaged is made again. One that the user changed is left alone.
run 0 'a piece' map "$film" --scene "$keep/ab.scene" -o a.y4m
head -c 100000 a.y4m >b.y4m && mv b.y4m a.y4m
prints '^written ' 'a piece that is cut off' map "$film" --scene "$keep/ab.scene" -o a.y4m
run 0 'steer' steer "$keep/a.part" "$keep/b.part" -o c.scene
sed -i 's/^scene 0$/scene 0 peak 700/' c.scene
prints '^done ' 'steer again' steer "$keep/a.part" "$keep/b.part" -o c.scene
contains c.scene 'peak 700'
run 3 'a piece of before the change' join a.y4m --scene c.scene -o d.y4m
run 0 'steer anew' steer "$keep/a.part" "$keep/b.part" -o c.scene --overwrite
lacks c.scene 'peak 700'
run 1 'a full device' map "$film" --scene "$keep/ab.scene" --to y4m -o /dev/full
check 'is none any more' [ -c /dev/full ]
clean

# --- Killed: no file looks complete, and another start finishes ---

# written PID BYTES: the file that the process writes is longer than this, or the process has ended.
written() {
    gone "$1" || [ "$(find "/proc/$1/fd" -lname "$work/d/*" -exec stat -L -c %s {} + | sort -n | tail -n 1)" -gt "$2" ]
}
what='killed'
for least in 0 1000000 2000000 3000000; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rm -f a.y4m
        start "$tonemap" map "$film" --scene "$work/given.scene" -o a.y4m --in-flight 1 -q
        wait_until 120 "more than $least bytes" written $pid $least
        kill -KILL $pid
        ends $pid 120
        [ $status -ne 137 ] || break
    done
    equal $status 137 "the kill after $least bytes, in ten tries"
    [ ! -e a.y4m ] || fail "killed after $least bytes: there is a file"
done
run 0 'after a kill' map "$film" --scene "$work/given.scene" -o a.y4m
run 0 'joined after a kill' join a.y4m -o ../a.y4m
same "$work/a.y4m" "$work/given.y4m"
equal "$(ls -A)" a.y4m 'files'
clean

# --- Containers ---

run 0 'help' --help
contains out join
mkv=$work/film.mkv
ffmpeg -v error -i "$film" -c:v libx264 -preset ultrafast -qp 0 -g 60 -bf 2 -color_trc smpte2084 -y "$mkv" 2>/dev/null || {
    leave_out 'containers' 'this ffmpeg cannot make one'
    finish
}
"$tonemap" "$mkv" -o ../container.y4m -q 2>"$work/err"
if grep -q 'built without libavformat' "$work/err"; then
    leave_out 'containers' 'this build has no libavformat'
    finish
fi
pieces "$mkv" "$work/container.y4m" '400 251' 'pieces of a container'
for part in 1 2 3; do run 0 'analyse a container' analyse "$mkv" --share $part/3 -o $part.part; done
run 0 'steer a container' steer 1.part 2.part 3.part -o film.scene
for part in 1 2 3; do run 0 'a finished piece' map "$mkv" --scene film.scene --share $part/3 -o $part.mkv --encoder ffv1; done
prints '^done ' 'a finished piece that is there' map "$mkv" --scene film.scene --share 3/3 -o 3.mkv --encoder ffv1
run 3 'another source' join 3.mkv 1.mkv 2.mkv --source 1.mkv -o whole.mkv
head -c 20000 2.mkv >cut.mkv && mv cut.mkv 2.mkv
run 3 'a finished piece cut off' join 3.mkv 1.mkv 2.mkv -o whole.mkv
prints '^written ' 'it is made again' map "$mkv" --scene film.scene --share 2/3 -o 2.mkv --encoder ffv1
run 0 'join finished pieces' join 3.mkv 1.mkv 2.mkv --source "$mkv" -o whole.mkv
equal "$(ffmpeg -v error -i whole.mkv -f md5 -)" "$(ffmpeg -v error -i "$work/container.y4m" -pix_fmt yuv420p -f md5 -)"
clean

# Encoded pieces that cannot be joined. Trying again would not help.
ffmpeg -v error -i "$mkv" -c copy -frames:v 40 -y "$work/other.mkv"
rm -rf "$keep" && mkdir "$keep" && cd "$keep" || exit 1
run 0 'analyse' analyse "$mkv" --range :40 -o film.part -q
run 0 'analyse half the size' analyse "$mkv" --range :40 -o half.part -q --scale 32x
run 0 'analyse another film' analyse "$work/other.mkv" -o other.part -q
for of in film half other; do run 0 "steer $of" steer $of.part -o $of.scene -q; done
run 0 'map 1' map "$mkv" --scene film.scene --share 1/2 -o 1.mkv -q --encoder ffv1
for piece in '2.mkv --encoder ffv1' 'codec.mkv --encoder libx264' 'settings.mkv --encoder ffv1:slices=9' 2.y4m; do
    run 0 "map $piece" map "$mkv" --scene film.scene --share 2/2 -q -o $piece
done
run 0 'map half the size' map "$mkv" --scene half.scene --share 2/2 -o size.mkv -q --encoder ffv1
run 0 'map another film' map "$work/other.mkv" --scene other.scene --share 2/2 -o other.mkv -q --encoder ffv1
: >empty.mkv
head -c 100 2.mkv >head.mkv
head -c 40 2.y4m >head.y4m
clean
while IFS='|' read -r piece pattern <&3; do
    refuses 3 "$pattern" "join: $piece" join "$keep/1.mkv" "$keep/$piece" -o a.mkv
done 3<<'END'
codec.mkv|encoder or encoder settings differ from the pieces before
settings.mkv|encoder or encoder settings differ from the pieces before
size.mkv|they have different films or settings
other.mkv|they have different films or settings
2.y4m|one is y4m, the other is encoded
empty.mkv|empty.mkv: not a piece, or damaged:
head.mkv|head.mkv: not a piece, or damaged:
head.y4m|head.y4m: not a piece, or damaged:
END
refuses 1 'none.mkv: cannot be opened' 'join: a piece that is not there' join "$keep/1.mkv" "$keep/none.mkv" -o a.mkv
run 0 'join: those that fit' join "$keep/1.mkv" "$keep/2.mkv" -o a.mkv
clean

# The index of a large film is stored. If the stored index is damaged, it is made again.
large=$work/large.mkv
ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=24 -vf noise=alls=100:allf=t,format=yuv420p10le -frames:v 50 \
    -c:v ffv1 -color_trc smpte2084 -y "$large" 2>"$work/err" || fail 'a large film cannot be made'
check 'the large film has become a small one' [ "$(bytes "$large")" -gt 67108864 ]
run 0 'a large film' analyse "$large" --share 2/3 -o 1.part
kept=$(find "$XDG_CACHE_HOME/coxswain" -name '*.index')
check 'nothing is kept' [ -s "$kept" ]
run 0 'a large film again' analyse "$large" --share 2/3 -o 2.part
printf x | dd of="$kept" bs=1 seek=100 conv=notrunc 2>/dev/null
run 0 'a large film, what is kept being damaged' analyse "$large" --share 2/3 -o 3.part
head -c 200 "$kept" >"$kept.cut" && mv "$kept.cut" "$kept"
run 0 'a large film, what is kept being cut off' analyse "$large" --share 2/3 -o 4.part
for part in 2 3 4; do same 1.part $part.part; done
check 'what is damaged is not replaced' [ "$(bytes "$kept")" -gt 300 ]
finish
