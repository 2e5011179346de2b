#!/bin/sh
# Compare the speed of cox-tonemap with that of ffmpeg's filter chain. Whole processes run in turn. Usage:
#
#     docs/results/video-speed.sh DIR [BIN_DIR]
#
# DIR takes a 4K PQ clip (25 MB a frame), which the script makes there once, and two output films, which it removes.
# Both programs map the clip with hable, a peak of 1000 cd/m2, SDR white at 100, no desaturation, no dither and the gamut
# clipped. They also map it to half the size; ffmpeg's chain halves first, bicubically. The script needs ffmpeg with
# zscale. With GNU time (Debian: time) it shows the peak resident memory too.
#
#     FRAMES=48 ROUNDS=5         how much
#     CLIP=FILE                  use this clip instead of making one
#     OPTIONS="--devices cpu"    more options for cox-tonemap
# SPDX-License-Identifier: Apache-2.0
set -eu
LC_ALL=C
export LC_ALL
if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    echo "usage: $0 DIR [BIN_DIR]" >&2
    exit 2
fi
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
cox=${2:-build/bin}/cox-tonemap
frames=${FRAMES:-48}
rounds=${ROUNDS:-5}
clip=${CLIP:-$dir/clip4k-$frames.y4m}
command -v ffmpeg >/dev/null || { echo "there is no ffmpeg" >&2; exit 1; }
[ -x "$cox" ] || { echo "there is no $cox" >&2; exit 1; }
work=$(mktemp -d "$dir/video-speed.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The chain people use: floating-point planes between the filters.
tags=setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:range=tv
chain="$tags,zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=tonemap=hable:desat=0:peak=10"
chain="$chain,zscale=t=bt709:m=bt709:r=tv,format=yuv420p"
half="zscale=w=iw/2:h=ih/2:f=bicubic,$chain"
same="--operator hable --sdr-white 100 --desat 0 --dither none --gamut clip ${OPTIONS:-}"

# film PICTURE WIDTHxHEIGHT NITS FRAMES OUTPUT: make a PQ film of a still, with 1.0 at NITS cd/m2.
film() {
    case $1 in *.exr) transfer=linear ;; *) transfer=iec61966-2-1 ;; esac
    tagged="setparams=color_primaries=bt709:color_trc=$transfer:colorspace=gbr:range=pc"
    pq="zscale=w=${2%x*}:h=${2#*x}:f=bicubic:tin=$transfer:pin=bt709:min=gbr:rin=full:t=smpte2084:p=bt2020:m=bt2020nc"
    ffmpeg -nostdin -v error -y -loop 1 -framerate 24 -i "$1" -frames:v "$4" \
        -vf "$tagged,$pq:r=limited:npl=$3,format=yuv420p10le,setsar=1" -strict -1 "$5.part.y4m"
    mv "$5.part.y4m" "$5"
}

# run NAME COMMAND...: seconds go to $work/NAME, peak kilobytes to $work/NAME.kb
run() {
    name=$1
    shift
    begin=$(date +%s%N)
    if [ -n "$gnu_time" ]; then
        "$gnu_time" -f %M -a -o "$work/$name.kb" "$@" </dev/null >"$work/log" 2>&1 || fail "$@"
    else
        "$@" </dev/null >"$work/log" 2>&1 || fail "$@"
    fi
    end=$(date +%s%N)
    awk "BEGIN { printf \"%.3f\\n\", ($end - $begin) / 1e9 }" >>"$work/$name"
}

fail() {
    cat "$work/log" >&2
    echo "failed: $*" >&2
    exit 1
}

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# take_turns: each once
take_turns() {
    # shellcheck disable=SC2086
    {
        run ffmpeg ffmpeg -nostdin -v error -i "$clip" -vf "$chain" -f null -
        run cox "$cox" -q "$clip" -o null: $same --peak 1000
        run cox_defaults "$cox" -q "$clip" -o null: ${OPTIONS:-}
        run ffmpeg_half ffmpeg -nostdin -v error -i "$clip" -vf "$half" -f null -
        run cox_half "$cox" -q "$clip" -o null: $same --peak 1000 --scale 1/2
        run cox_auto "$cox" -q "$clip" -o null: $same --peak auto
        run ffmpeg_file ffmpeg -nostdin -v error -y -i "$clip" -vf "$chain" "$work/out.y4m"
        rm "$work/out.y4m" # before the system writes it to the disk, beside the next program
        run cox_file "$cox" -q "$clip" -o "$work/out.y4m" $same --peak 1000
        rm "$work/out.y4m"
    }
}

# ratio NAME OVER: the median of the rounds' ratios
ratio() {
    paste "$work/$1" "$work/$2" | awk '{ print $1 / $2 }' >"$work/ratios"
    median "$work/ratios"
}

# line NAME TEXT OVER
line() {
    seconds=$(median "$work/$1")
    memory=
    [ ! -s "$work/$1.kb" ] || memory=$(sort -n "$work/$1.kb" | awk 'END { printf "%.0f MB", $1 / 1024 }')
    awk -v text="$2" -v s="$seconds" -v n="$count" -v r="$(ratio "$3" "$1")" -v m="$memory" \
        'BEGIN { printf "%-40s %8.3f s %8.1f frames/s  x %-6.2f %s\n", text, s, n / s, r, m }'
    echo "    rounds: $(tr '\n' ' ' <"$work/$1")"
}

# psnr CLIP TEXT
psnr() {
    ffmpeg -nostdin -v error -y -i "$1" -vf "$chain" "$work/ffmpeg.y4m"
    # shellcheck disable=SC2086
    "$cox" -q "$1" -o "$work/cox.y4m" $same --peak 1000
    number='\([0-9.]*[0-9][.][0-9]\)[0-9]*'
    ffmpeg -nostdin -v info -i "$work/cox.y4m" -i "$work/ffmpeg.y4m" -lavfi '[0:v][1:v]psnr' -f null - 2>&1 |
        sed -n "s|.*PSNR y:$number u:$number v:$number .*|PSNR $2: Y' \1 dB, Cb \2 dB, Cr \3 dB|p"
}

gnu_time=$(command -v time 2>/dev/null) || gnu_time=
[ -x "$gnu_time" ] || gnu_time=/usr/bin/time
[ -x "$gnu_time" ] || gnu_time=
if [ ! -e "$clip" ]; then
    echo "making $clip"
    film examples/data/StillLife.exr 3840x2160 203 "$frames" "$clip"
fi
cat "$clip" >/dev/null # into the page cache
count=$(ffprobe -v error -select_streams v:0 -count_packets -show_entries stream=nb_read_packets -of csv=p=0 "$clip")
rm -f "$work"/*
take_turns # compiles the kernels, where that has not been done; not counted
rm -f "$work"/*
round=0
while [ $round -lt "$rounds" ]; do
    take_turns
    round=$((round + 1))
done

echo "machine: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) hardware threads, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
ffmpeg -version | head -n 1
"$cox" --version | head -n 1
echo "$count frames of $(head -n 1 "$clip" | cut -c 1-60), $rounds rounds in turn; medians of whole processes; the ratio is the"
echo "median of the rounds' ratios, the memory the most of all rounds"
line ffmpeg "ffmpeg, output discarded" ffmpeg
line cox "cox-tonemap, output discarded" ffmpeg
line cox_auto "cox-tonemap --peak auto, discarded" ffmpeg
line cox_defaults "cox-tonemap with its defaults, discarded" ffmpeg
line ffmpeg_half "ffmpeg, half the size, discarded" ffmpeg_half
line cox_half "cox-tonemap --scale 1/2, discarded" ffmpeg_half
line ffmpeg_file "ffmpeg, y4m to a file" ffmpeg_file
line cox_file "cox-tonemap, y4m to a file" ffmpeg_file
"$cox" -q examples/data/StillLife.exr -o "$work/sdr.png"
film "$work/sdr.png" 3840x2160 800 3 "$work/inside.y4m"
psnr "$work/inside.y4m" "against ffmpeg, no light above the peak"
[ "$count" -gt 100 ] || psnr "$clip" "against ffmpeg, this clip (ffmpeg's overflows show)"
