#!/bin/sh
# Films whose colours change, for tests that source this after tonemap.sh.
#
#   part NAME TRANSFER [PRIMARIES MATRIX RANGE OPTIONS]   NAME.hevc and NAME.mkv, $frames frames that name these colours
#   film NAME PART...                  NAME.hevc, one stream of these parts
#   packed FILM PART...                the same in a container; parts are files
#   alone PART OPTIONS...              add the frames of the part, mapped alone, to the file "alone"
#   follows FILM CHANGES OPTIONS -- PART...   each part of the film is what it is alone
#   pieces FILM OPTIONS...             a film in pieces that begin within the parts equals one run
#   samples FILE                       the frames of a y4m file without the first line
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
need ffmpeg
need_device
need_libavformat

FRAMES=4                        # of a part
FRAME=$((160 * 96 * 3 / 2 + 6)) # bytes in y4m

ff() { ffmpeg -nostdin -v error -y "$@"; }
make() { expect_status 0 "$*" ff "$@"; } # OPTIONS...: OUTPUT is the last one
has_encoder() { ff -f lavfi -i "color=gray:s=320x180,format=$2" -frames:v 1 -c:v $1 -f null - 2>/dev/null; }
has_encoder libx265 yuv420p10le || skip 'ffmpeg cannot encode 10 bits with libx265'

pattern="testsrc2=s=160x96:r=24,format=yuv420p10le"

# part NAME TRANSFER [PRIMARIES MATRIX RANGE OPTIONS]: H.265 that names these colours.
part() {
    colours=colorprim=${3:-bt2020}:colormatrix=${4:-bt2020nc}:range=${5:-limited}
    [ $2 = none ] || colours=$colours:transfer=$2
    make -f lavfi -i "$pattern" -frames:v $FRAMES -c:v libx265 -preset ultrafast \
        -x265-params log-level=none:lossless=1:repeat-headers=1:$colours${6:+:$6} $1.mkv
    make -i $1.mkv -c copy $1.hevc
}

# film NAME PART...: one stream of these parts.
film() {
    film=$1.hevc
    shift
    for part; do cat $part.hevc; done >$film
}

# packed FILM PART...: the same in a container.
packed() {
    film=$1
    shift
    for part; do echo "file $part"; done >list
    make -f concat -i list -c copy $film
}

# samples FILE: the frames of a y4m file without the first line.
samples() { tail -n +2 $1; }

# alone PART OPTIONS...: the frames of the part alone. SDR parts, sdr*, are accepted.
alone() {
    case $1 in
    sdr*) set -- "$@" --transfer auto ;;
    esac
    a_frames=$(echo "$*" | tr ' ' _).frames
    if [ ! -e $a_frames ]; then
        run 0 "$* alone" "$@" -o alone.y4m
        samples alone.y4m >$a_frames
    fi
    cat $a_frames >>alone
}

# follows FILM CHANGES OPTIONS -- PART...: each part of the film is what it is alone. The parts are files.
follows() {
    f_film=$1 f_changes=$2 f_options=
    shift 2
    while [ "$1" != -- ]; do
        f_options="$f_options $1"
        shift
    done
    shift
    : >alone
    for f_part; do
        alone $f_part $f_options
    done
    run 0 "$f_film$f_options" $f_film -o film.y4m $f_options
    case $f_changes in
    0) lacks out '^colours' ;;
    1) contains out "^colours   1 change, the first at frame $FRAMES\$" ;;
    *) contains out "^colours   $f_changes changes, the first at frame $FRAMES\$" ;;
    esac
    samples film.y4m | cmp -s - alone || fail "$f_film$f_options: a part differs from the part alone"
    pass
}

# pieces FILM OPTIONS...: a film in pieces that begin within the parts equals one run.
pieces() {
    p_film=$1
    shift
    run 0 "$p_film in one run: $*" $p_film -o whole.y4m "$@"
    run 0 'the first frames' analyse $p_film --range :$((FRAMES + 1)) -o 1.part "$@"
    run 0 'the rest' analyse $p_film --range $((FRAMES + 1)): -o 2.part "$@"
    run 0 'its light' steer 2.part 1.part -o film.scene
    for p_part in 1 2; do
        run 0 "piece $p_part" map $p_film --scene film.scene --share $p_part/2 -o $p_part.y4m
    done
    run 0 'its pieces' join 1.y4m 2.y4m -o joined.y4m --overwrite
    same whole.y4m joined.y4m "pieces of $p_film: $*"
    rm -f ./*.part film.scene [12].y4m whole.y4m joined.y4m
}
