#!/bin/sh
# Every command in the code blocks of docs/guide and README.md runs, with the exit status that the page says. A reader's
# folder has the inputs that the pages name. The commands of a page run in their order in one folder. Those that cannot
# run in a test have a marker with the reason in the page: see tests/support/guides.py.
#   sh guides.sh BIN_DIR SOURCE_DIR [PAGE.md...]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
shift 2
pages=${*:-README.md $(cd "$source/docs/guide" && echo *.md)}
limit=600 # seconds; ends a command that hangs
need python3
unset OCL_ICD_VENDORS

# --- The commands ---

mkdir "$work/commands" "$work/films" "$work/pages"
paths=
for page in $pages; do
    case $page in
    README.md) paths="$paths $source/README.md" ;;
    *) paths="$paths $source/docs/guide/$page" ;;
    esac
done
# shellcheck disable=SC2086 # one word each
expect_status 0 'the commands of the guides' python3 "$source/tests/support/guides.py" "$work/commands" $paths
cp "$work/out" "$work/list"
[ "$status" -eq 0 ] || finish

need_device

# --- What the machine lacks: words for messages, in $lacking ---

# A film of four seconds in PQ, with sound and words.
films=ffmpeg
if command -v ffmpeg >/dev/null; then
    films='libavformat in cox-tonemap'
    printf '1\n00:00:00,100 --> 00:00:00,600\nhello\n' >"$work/words.srt"
    tags=setparams=color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc:range=tv
    if ffmpeg -v error -f lavfi -i testsrc2=s=192x108:r=25:d=4.8 -f lavfi -i sine=d=4.8 -i "$work/words.srt" -map 0:v -map 1:a \
        -map 2:s -vf "format=yuv420p10le,$tags" -c:v ffv1 -c:a aac -c:s srt "$work/films/movie.mkv" 2>"$work/err"; then
        if "$bin/cox-tonemap" "$work/films/movie.mkv" -o null: --frames 1 -q >"$work/out" 2>"$work/err"; then
            films=
        elif ! grep -q 'built without libavformat' "$work/err"; then
            fail 'a film'
        fi
    else
        films="an ffmpeg with ffv1 and aac"
    fi
fi
pandas=pandas
for name in python3 /usr/bin/python3; do
    if [ -n "$pandas" ] && "$name" -c 'import pandas' 2>/dev/null; then
        pandas=
        mkdir "$work/python"
        ln -s "$(command -v "$name")" "$work/python/python3"
        PATH="$work/python:$PATH"
    fi
done
pair=
"$bin/cox-devices" --devices cpu:2x1 >"$work/out" 2>"$work/err" || pair='two compute units'

# lacks_something TOOLS FILE: whether the command in FILE needs what is missing here.
lacks_something() {
    lacking=
    for tool in $(echo "$1" | tr ',' ' '); do
        case $tool in
        -) ;;
        gst:*) gst-inspect-1.0 "${tool#gst:}" >/dev/null 2>&1 || lacking="GStreamer's ${tool#gst:}" ;;
        ./* | packaging/*) ;;
        *) command -v "$tool" >/dev/null || lacking=$tool ;;
        esac
        [ -z "$lacking" ] || return 0
    done
    if [ -n "$films" ] && grep -Eq '\.(mkv|mp4|scene|part)' "$2"; then
        lacking=$films
    elif [ -n "$pandas" ] && grep -q figures.py "$2"; then
        lacking=$pandas
    elif [ -n "$pair" ] && grep -q 'cpu:2x1' "$2"; then
        lacking=$pair
    elif grep -q zscale= "$2" && ! ffmpeg -hide_banner -filters 2>/dev/null | grep -q ' zscale '; then
        lacking="ffmpeg's zscale"
    elif grep -q libx265 "$2" && ! ffmpeg -hide_banner -encoders 2>/dev/null | grep -q ' libx265 '; then
        lacking="ffmpeg's libx265"
    elif grep -q '\.exr' "$2" && ! "$bin/cox-tonemap" "$source/examples/data/StillLife.exr" -o null.png -q >/dev/null 2>"$work/err" &&
        grep -q 'built without' "$work/err"; then
        lacking='OpenEXR in cox-tonemap'
    elif grep -q llvmpipe "$2" && ! RUSTICL_ENABLE=llvmpipe "$bin/cox-devices" 2>/dev/null | grep -Eq ' rusticl .* 1 *$'; then
        lacking="Mesa's llvmpipe"
    fi
    [ -n "$lacking" ]
}

# --- A reader's folder ---

plugin=$(find "$bin/../lib" -name 'libgstcoxswain.so' -exec dirname {} \; | head -n 1)
export GST_PLUGIN_PATH="$plugin" GST_REGISTRY="$work/gst.registry"
export PATH="$bin:$PATH" PKG_CONFIG_PATH="$work/pkg${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
# If the library was built with a sanitizer, its programs need the same one.
sanitizer=
if nm -D "$bin/../lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi
mkdir "$work/pkg"
cat >"$work/times.csv" <<END
step,rank,first,count,start_s,seconds
begin,0,0,1000,0,1
map,0,0,100,1,10.5
map,0,100,900,11.5,90.5
join,0,0,1000,102,2
END
cat >"$work/pkg/coxswain.pc" <<END
Name: coxswain
Description: the library in the build folder
Version: 0
Cflags: -I$source/include $sanitizer
Libs: -L$bin/../lib -lcoxswain -Wl,-rpath,$bin/../lib
END

# program_of PAGE [LANGUAGE]: the code in it, of C if no language is given.
program_of() { awk -v fence="^\`\`\`${2:-c}\$" '$0 ~ fence {on = 1; next} /^```$/ {on = 0} on' "$1"; }

# enter PAGE: the working directory is the page's folder, with the inputs that pages name.
enter() {
    [ -d "$work/pages/$1" ] || {
        mkdir "$work/pages/$1" "$work/pages/$1/season1" "$work/pages/$1/folder"
        cd "$work/pages/$1" || exit 1
        # A folder is a link, so that the paths in commands lead to the sources. No command writes there.
        for name in examples docs tests packaging; do ln -s "$source/$name" $name; done
        ln -s "$(cd "$bin/.." && pwd)" build
        cp "$source/examples/data/StillLife.exr" room.exr
        cp "$source/examples/data/stilllife_pq_480x270.y4m" clip.y4m
        truncate -s 49766400 frames.yuv # two frames of 3840x2160, 4:2:0, 10 bits
        mkdir movie-sdr.mkv.pieces      # of cox-tonemap-mpi, which few builds have
        cp "$work/times.csv" movie-sdr.mkv.pieces
        program_of "$source/README.md" >app.c
        program_of "$source/docs/guide/api.md" >guide.c
        program_of "$source/docs/guide/pandas.md" python >figures.py
        if [ -e "$work/films/movie.mkv" ]; then
            for name in movie.mkv season1/1.mkv season1/2.mkv 'Movie (2021).mkv'; do ln "$work/films/movie.mkv" "$name"; done
        fi
    }
    cd "$work/pages/$1" || exit 1
}

# printed FILE: its lines are in the output, in their order.
printed() {
    h_line=$(awk 'NR == FNR {shown[++count] = $0; next} $0 == shown[at + 1] {at++} END {if (at < count) print shown[at + 1]}' "$1" "$work/out")
    equal "$h_line" '' 'a line that the page shows'
}

# --- Run them ---

ran=0
tab=$(printf '\t')
while IFS=$tab read -r number page line statuses tools reason <&3; do
    what="$page:$line"
    if [ "$reason" != - ]; then
        echo "marked, $reason" >>"$work/left"
        continue
    fi
    enter "$page"
    if lacks_something "$tools" "$work/commands/$number.sh"; then
        echo "skipped, this machine lacks $lacking" >>"$work/left"
        continue
    fi
    status=0
    begun=$(date +%s)
    timeout -k 10 $limit sh "$work/commands/$number.sh" >"$work/out" 2>"$work/err" || status=$?
    [ -z "${COX_GUIDES_TIMES:-}" ] || echo "$(($(date +%s) - begun)) s, status $status: $what: $(head -n 1 "$work/commands/$number.sh")"
    ran=$((ran + 1))
    case ,$statuses, in
    *,$status,*) pass ;;
    *) fail "status $status instead of $statuses: $(head -n 3 "$work/commands/$number.sh")" ;;
    esac
    [ ! -e "$work/commands/$number.shows" ] || printed "$work/commands/$number.shows"
done 3<"$work/list"

what=
echo "$(wc -l <"$work/list") commands: $ran ran"
[ ! -e "$work/left" ] || sort "$work/left" | uniq -c
finish
