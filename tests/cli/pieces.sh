#!/bin/sh
# A film mapped in pieces: the frames of one run over the whole, whatever the pieces; and that nothing which does not go
# together is taken for a film.
#
#   [COX_PIECES="1 7 50 333"] sh pieces.sh BIN_DIR SOURCE_DIR
#
# COX_PIECES: the lengths of the pieces that are tried, in frames of 1000 (default: 333).
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
skip() {
    echo "skipped, because $1"
    exit 77
}
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../support/tonemap.sh"
command -v ffmpeg >/dev/null || skip "ffmpeg is missing"

bytes() { wc -c <"$1" | tr -d ' '; }
same() { if cmp -s "$1" "$2"; then pass; else fail "$3: the frames differ"; fi; }

# --- A film of 1000 frames with 12 cuts, which brightens and darkens between them ---

film="$work/film.y4m"
light='0.25+0.7*mod(floor(N/77)*5,13)/13+0.1*sin(N/30)'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=42,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb='512+8*sin(N/9)':cr=512" \
    -frames:v 1000 -strict -1 -f yuv4mpegpipe "$film" </dev/null 2>"$work/err" || skip "this ffmpeg cannot make the film"
(cd "$work/d" && "$tonemap" "$film" -o whole.y4m) >"$work/out" 2>"$work/err"
grep -q 'no OpenCL' "$work/err" && skip "this machine has no OpenCL device"
has out '^scenes .*12 cuts' 'the film has cuts'
mv "$work/d/whole.y4m" "$work/whole.y4m"
clean

# pieces FILM WHOLE LENGTHS NAME [OPTIONS...]: the film in pieces of those lengths, in turn, is the whole.
pieces() {
    film_of=$1
    whole=$2
    lengths=$3
    what_of=$4
    shift 4
    first=0
    made=0
    : >"$work/ranges"
    while [ $first -lt 1000 ]; do
        for length in $lengths; do
            [ $first -lt 1000 ] || break
            end=$((first + length))
            [ $end -le 1000 ] || end=1000
            echo "$first:$end" >>"$work/ranges"
            first=$end
        done
    done
    while read -r range; do
        made=$((made + 1))
        (cd "$work/d" && "$tonemap" analyse "$film_of" --range "$range" -o "$made.part" -q "$@") 2>"$work/err" </dev/null ||
            fail "$what_of: analyse $range"
    done <"$work/ranges"
    # shellcheck disable=SC2046
    run 0 "$what_of: steer" steer $(cd "$work/d" && ls -- *.part) -o film.scene
    has out ', 12 cuts' "$what_of: its cuts"
    made=0
    while read -r range; do
        made=$((made + 1))
        (cd "$work/d" && "$tonemap" map "$film_of" --scene film.scene --range "$range" -o "$made.y4m" -q "$@") 2>"$work/err" \
            </dev/null || fail "$what_of: map $range"
    done <"$work/ranges"
    # shellcheck disable=SC2046
    run 0 "$what_of: join" join $(cd "$work/d" && ls -- *.y4m) -o ../joined.y4m --overwrite
    same "$whole" "$work/joined.y4m" "$what_of"
    clean
}

for length in ${COX_PIECES:-333}; do
    pieces "$film" "$work/whole.y4m" "$length" "pieces of $length"
done
pieces "$film" "$work/whole.y4m" '211 3 148 1 77' 'pieces of any length'

# Looking ahead, and a size of its own.
(cd "$work/d" && "$tonemap" "$film" -o ../ahead.y4m --lookahead 1 --scale 32x --operator bt2390 -q) 2>"$work/err"
run 0 'analyse of a look ahead' analyse "$film" --range :400 -o a.part --lookahead 1 --scale 32x --operator bt2390
run 0 'the rest of it' analyse "$film" --range 400: -o b.part --lookahead 1 --scale 32x --operator bt2390
run 0 'its light' steer b.part a.part -o film.scene
for part in 1 2 3; do run 0 'its pieces' map "$film" --scene film.scene --share $part/3 -o $part.y4m; done
run 0 'its whole' join 3.y4m 2.y4m 1.y4m -o ../joined.y4m --overwrite
same "$work/ahead.y4m" "$work/joined.y4m" 'a look ahead'

# The file of scenes in one run over the whole, and changed by hand.
run 0 'one run by the file of scenes' "$film" --scene film.scene -o ../joined.y4m
same "$work/ahead.y4m" "$work/joined.y4m" 'one run by the file of scenes'
run 0 'a piece that is there' map "$film" --scene film.scene --share 2/3 -o 2.y4m
has out '^done ' 'a piece that is there'
sed 's/^scene 539$/scene 539 peak 5000/' "$work/d/film.scene" >"$work/d/other.scene"
run 0 'a piece before the change' map "$film" --scene other.scene --share 1/3 -o 1.y4m
has out '^done ' 'a piece before the change is as it was'
run 0 'a piece with the change' map "$film" --scene other.scene --share 2/3 -o 2.y4m
has out '^written ' 'a piece with the change is mapped anew'
has out 'to 5000 cd' 'its peak'
clean

# Each piece on other devices: a processor, a second one's driver, both. What they compute in common is said beforehand.
export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
if "$(dirname "$tonemap")/cox-devices" 2>/dev/null | grep -q 'rusticl .* 1$'; then
    (cd "$work/d" && "$tonemap" "$film" -o ../muladd.y4m --devices cpu --arithmetic muladd -q) 2>"$work/err"
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
    echo "other devices were not tried: llvmpipe is missing"
fi
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE

# A peak that is given needs no look.
(cd "$work/d" && "$tonemap" "$film" -o ../given.y4m --peak 600 -q) 2>"$work/err"
for part in 1 2; do run 0 'analyse of nothing' analyse "$film" --share $part/2 -o $part.part --peak 600; done
run 0 'light that is given' steer 1.part 2.part -o film.scene
for part in 1 2; do run 0 'its pieces' map "$film" --scene film.scene --share $part/2 -o $part.y4m; done
run 0 'its whole' join 1.y4m 2.y4m -o ../joined.y4m --overwrite
same "$work/given.y4m" "$work/joined.y4m" 'a peak that is given'
clean

# --- What does not go together: one line, status 3, nothing left ---

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
refuses 3 'cut.part: is cut off' 'a part that is cut off' steer "$keep/cut.part" "$keep/b.part" -o film.scene
refuses 3 'damaged.part: is damaged' 'a damaged part' steer "$keep/damaged.part" "$keep/b.part" -o film.scene
refuses 3 'both have frame 30' 'parts that overlap' steer "$keep/a.part" "$keep/over.part" -o film.scene
refuses 3 'both have frame 40' 'a part twice' steer "$keep/b.part" "$keep/b.part" -o film.scene
refuses 3 'do not go together: operator' 'parts of another look' steer "$keep/a.part" "$keep/look.part" -o film.scene
grep -q 'arithmetic 2' "$keep/ab.scene" &&
    refuses 3 'do not go together: arithmetic' 'another arithmetic' steer "$keep/a.part" "$keep/arithmetic.part" -o film.scene
refuses 3 'no part of' 'what is no part' steer "$keep/ab.scene" -o film.scene
refuses 3 "is cut off: it has no line 'end'" 'scenes cut off' map "$film" --scene "$keep/cut.scene" -o a.y4m
refuses 3 'line [0-9]+: is not .FRAME PEAK GAIN' 'scenes with a wrong line' map "$film" --scene "$keep/wrong.scene" -o a.y4m
refuses 3 'of another size or format' 'scenes of another size' map "$film" --scene "$keep/size.scene" -o a.y4m
refuses 3 'written by version 99.0' 'scenes of another version' map "$film" --scene "$keep/version.scene" -o a.y4m
refuses 3 'is of another film' 'scenes of another film' map "$work/other.y4m" --scene "$keep/ab.scene" -o a.y4m
refuses 3 '--range begins with frame 90' 'a range beyond the scenes' map "$film" --scene "$keep/ab.scene" --range 90:95 -o a.y4m
refuses 3 'is no piece' 'what is no piece' join "$keep/1.y4m" "$work/whole.y4m" -o a.y4m
refuses 3 'both have frame 0' 'a piece twice' join "$keep/1.y4m" "$keep/1.y4m" -o a.y4m
refuses 1 'frame 216 .* is not whole' 'a film cut off' analyse "$work/other.y4m" -o a.part
refuses 2 'needs what steer has found' 'no scenes' map "$film" -o a.y4m
refuses 2 'the look is what analyse was told' 'a look of its own' map "$film" --scene "$keep/ab.scene" --operator clip -o a.y4m
refuses 2 'not I/N' 'a share that is none' analyse "$film" --share 3/2 -o a.part
refuses 2 'not FIRST:END' 'a range that is none' analyse "$film" --range 9:3 -o a.part
refuses 2 'both say which frames' 'a range and a share' analyse "$film" --range 3:9 --share 1/2 -o a.part

refuses 3 'frames 45 to 89 are in no piece: behind' 'the last piece is missing' join "$keep/1.y4m" -o a.y4m
refuses 3 'frames 0 to 44 are in no piece: before' 'the first piece is missing' join "$keep/2.y4m" -o a.y4m
refuses 3 'there is no frame 5000' 'a range beyond the film' analyse "$film" --range 5000: -o a.part
refuses 1 'is cut off: its last frame is not whole' 'a share of a film cut off' analyse "$work/other.y4m" --share 1/2 -o a.part

# What is read is not written to.
cp "$film" "$work/d/film.y4m"
cp "$keep"/*.part "$keep/ab.scene" "$keep"/?.y4m "$work/d"
cp "$work/d/ab.scene" "$work/d/scene.y4m"
for what_of in 'analyse film.y4m -o film.y4m' 'steer a.part b.part -o a.part' 'map film.y4m --scene scene.y4m -o scene.y4m' \
    'join 1.y4m 2.y4m -o 1.y4m --overwrite' 'map film.y4m --scene ab.scene -o film.y4m'; do
    (cd "$work/d" && md5sum -- *) >"$work/sums"
    # shellcheck disable=SC2086
    run 1 "$what_of" $what_of
    (cd "$work/d" && md5sum -- *) | cmp -s - "$work/sums" && pass || fail "$what_of: a file has changed"
done
clean

# What editors leave in a scene file makes no difference, and a file that is cut off is noticed wherever it is.
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
    cmp -s "$work/plain.scene" "$work/$kind.scene" && fail "an edited file, $kind: is not another one"
    run 0 "an edited file, $kind" map "$film" --scene "$work/$kind.scene" --share 1/2 -o a.y4m
    has out '^done ' "an edited file, $kind"
done
clean
for kind in newline crlf; do
    bytes=$(bytes "$work/$kind.scene")
    for less in 1 2 3 4 5 6 9 12 15; do
        head -c $((bytes - less)) "$work/$kind.scene" >"$work/short.scene"
        [ $kind = crlf ] && [ $less -le 2 ] && continue # 'end' stands there yet
        refuses 3 "short.scene: is cut off: it has no line 'end'" "a file cut off by $less, $kind" map "$film" --scene "$work/short.scene" -o a.y4m
    done
done
{ cat "$work/plain.scene" && echo '45 900 1'; } >"$work/more.scene"
refuses 3 "line [0-9]+: comes behind the line 'end'" "a line behind the last" map "$film" --scene "$work/more.scene" -o a.y4m

# What is there and damaged is made again, and what people have changed is left alone.
run 0 'a piece' map "$film" --scene "$keep/ab.scene" -o a.y4m
head -c 100000 "$work/d/a.y4m" >"$work/d/b.y4m" && mv "$work/d/b.y4m" "$work/d/a.y4m"
run 0 'a piece that is cut off' map "$film" --scene "$keep/ab.scene" -o a.y4m
has out '^written ' 'a piece that is cut off'
run 0 'steer' steer "$keep/a.part" "$keep/b.part" -o c.scene
sed -i 's/^scene 0$/scene 0 peak 700/' "$work/d/c.scene"
run 0 'steer again' steer "$keep/a.part" "$keep/b.part" -o c.scene
has out '^done ' 'steer again'
grep -q 'peak 700' "$work/d/c.scene" && pass || fail 'steer again: a change is lost'
run 3 'a piece of before the change' join a.y4m --scene c.scene -o d.y4m
run 0 'steer anew' steer "$keep/a.part" "$keep/b.part" -o c.scene --overwrite
grep -q 'peak 700' "$work/d/c.scene" && fail 'steer anew: the change is there' || pass
run 1 'a full device' map "$film" --scene "$keep/ab.scene" --to y4m -o /dev/full
[ -c /dev/full ] && pass || fail 'a full device: is none any more'
clean

# --- Killed: nothing that looks whole; another start finishes ---

for delay in 0.02 0.05 0.1 0.15 0.2 0.3; do
    (cd "$work/d" && exec "$tonemap" map "$film" --scene "$keep/ab.scene" -o a.y4m --in-flight 1 -q) 2>/dev/null &
    pid=$!
    sleep $delay
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ ! -e "$work/d/a.y4m" ] || [ "$(bytes "$work/d/a.y4m")" -eq $((90 * (4608 + 6) + $(head -n 1 "$work/d/a.y4m" | wc -c))) ] ||
        fail 'killed: half a piece'
done
run 0 'after a kill' map "$film" --scene "$keep/ab.scene" -o a.y4m
run 0 'joined after a kill' join a.y4m -o ../a.y4m
run 0 'as it should be' join "$keep/2.y4m" "$keep/1.y4m" -o ../b.y4m
same "$work/a.y4m" "$work/b.y4m" 'after a kill'
clean

# --- Containers ---

"$tonemap" --help | grep -q join || fail 'the help has the steps'
if ffmpeg -v error -i "$film" -c:v libx264 -preset ultrafast -qp 0 -g 60 -bf 2 -color_trc smpte2084 -y "$work/film.mkv" \
    </dev/null 2>/dev/null; then
    (cd "$work/d" && "$tonemap" "$work/film.mkv" -o ../container.y4m -q) 2>"$work/err"
    if grep -q 'built without libavformat' "$work/err"; then
        echo "containers were not tried: this build has no libavformat"
    else
        pieces "$work/film.mkv" "$work/container.y4m" '400 251' 'pieces of a container'
        for part in 1 2 3; do
            run 0 'analyse a container' analyse "$work/film.mkv" --share $part/3 -o $part.part
        done
        run 0 'steer a container' steer 1.part 2.part 3.part -o film.scene
        for part in 1 2 3; do
            run 0 'a finished piece' map "$work/film.mkv" --scene film.scene --share $part/3 -o $part.mkv --encoder ffv1
        done
        run 0 'a finished piece that is there' map "$work/film.mkv" --scene film.scene --share 3/3 -o 3.mkv --encoder ffv1
        has out '^done ' 'a finished piece that is there'
        run 3 'another source' join 3.mkv 1.mkv 2.mkv --source 1.mkv -o whole.mkv
        head -c 20000 "$work/d/2.mkv" >"$work/d/cut.mkv" && mv "$work/d/cut.mkv" "$work/d/2.mkv"
        run 3 'a finished piece cut off' join 3.mkv 1.mkv 2.mkv -o whole.mkv
        run 0 'it is made again' map "$work/film.mkv" --scene film.scene --share 2/3 -o 2.mkv --encoder ffv1
        has out '^written ' 'it is made again'
        run 0 'join finished pieces' join 3.mkv 1.mkv 2.mkv --source "$work/film.mkv" -o whole.mkv
        decoded=$(ffmpeg -v error -i "$work/d/whole.mkv" -f md5 - </dev/null)
        equal "$decoded" "$(ffmpeg -v error -i "$work/container.y4m" -pix_fmt yuv420p -f md5 - </dev/null)" 'finished pieces'
        clean

        # Encoded pieces that cannot be joined: another try would not help.
        ffmpeg -v error -i "$work/film.mkv" -c copy -frames:v 40 -y "$work/other.mkv" </dev/null
        rm -rf "$keep" && mkdir "$keep"
        (cd "$keep" && {
            "$tonemap" analyse "$work/film.mkv" --range :40 -o film.part -q
            "$tonemap" analyse "$work/film.mkv" --range :40 -o half.part -q --scale 32x
            "$tonemap" analyse "$work/other.mkv" -o other.part -q
            for of in film half other; do "$tonemap" steer $of.part -o $of.scene -q; done
            film="$work/film.mkv"
            "$tonemap" map "$film" --scene film.scene --share 1/2 -o 1.mkv -q --encoder ffv1
            "$tonemap" map "$film" --scene film.scene --share 2/2 -o 2.mkv -q --encoder ffv1
            "$tonemap" map "$film" --scene film.scene --share 2/2 -o codec.mkv -q --encoder libx264
            "$tonemap" map "$film" --scene film.scene --share 2/2 -o settings.mkv -q --encoder ffv1:slices=9
            "$tonemap" map "$film" --scene film.scene --share 2/2 -o 2.y4m -q
            "$tonemap" map "$film" --scene half.scene --share 2/2 -o size.mkv -q --encoder ffv1
            "$tonemap" map "$work/other.mkv" --scene other.scene --share 2/2 -o other.mkv -q --encoder ffv1
            : >empty.mkv
            head -c 100 2.mkv >head.mkv
            head -c 40 2.y4m >head.y4m
        }) 2>"$work/err"
        for piece in codec settings; do
            refuses 3 'encoded otherwise than the pieces before' "join: other $piece" join "$keep/1.mkv" "$keep/$piece.mkv" -o a.mkv
        done
        for piece in size other; do
            refuses 3 'of other films, or mapped otherwise' "join: other $piece" join "$keep/1.mkv" "$keep/$piece.mkv" -o a.mkv
        done
        refuses 3 'one is y4m, the other is encoded' 'join: y4m behind encoded' join "$keep/1.mkv" "$keep/2.y4m" -o a.mkv
        for piece in empty.mkv head.mkv head.y4m; do
            refuses 3 "$piece: is no piece, or damaged: " "join: $piece" join "$keep/1.mkv" "$keep/$piece" -o a.mkv
        done
        refuses 1 'none.mkv: cannot be opened' 'join: a piece that is not there' join "$keep/1.mkv" "$keep/none.mkv" -o a.mkv
        run 0 'join: those that fit' join "$keep/1.mkv" "$keep/2.mkv" -o a.mkv
        clean

        # Where a large film's frames are is kept, and read anew where what is kept is damaged.
        ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=24 -vf noise=alls=100:allf=t,format=yuv420p10le -frames:v 50 \
            -c:v ffv1 -color_trc smpte2084 -y "$work/large.mkv" </dev/null 2>"$work/err" || fail 'a large film cannot be made'
        if [ "$(bytes "$work/large.mkv")" -gt 67108864 ]; then
            touch "$work/before" # the cache may have indices of earlier runs' films
            sleep 0.1
            run 0 'a large film' analyse "$work/large.mkv" --share 2/3 -o 1.part
            kept=$(find "$XDG_CACHE_HOME/coxswain" -name 'index-*' -newer "$work/before")
            [ -s "$kept" ] && pass || fail 'a large film: nothing is kept'
            run 0 'a large film again' analyse "$work/large.mkv" --share 2/3 -o 2.part
            printf x | dd of="$kept" bs=1 seek=100 conv=notrunc 2>/dev/null
            run 0 'a large film, what is kept being damaged' analyse "$work/large.mkv" --share 2/3 -o 3.part
            head -c 200 "$kept" >"$kept.cut" && mv "$kept.cut" "$kept"
            run 0 'a large film, what is kept being cut off' analyse "$work/large.mkv" --share 2/3 -o 4.part
            for part in 2 3 4; do same "$work/d/1.part" "$work/d/$part.part" "a large film, part $part"; done
            [ "$(bytes "$kept")" -gt 300 ] && pass || fail 'a large film: what is damaged is not replaced'
        else
            echo 'a large film was not tried: it has become a small one'
        fi
        clean
    fi
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
