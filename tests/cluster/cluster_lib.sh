# What the tests of examples/cluster share: sourced with `work`, a folder, and `tonemap`, the program. Makes $work/film.mkv, of 300
# frames with a scene's change and sound, and $work/one.md5, of the frames that one run over it gives.
# SPDX-License-Identifier: Apache-2.0
skip() {
    echo "skipped, because $1"
    exit 77
}
: "${XDG_CACHE_HOME:=$work/cache}"
export XDG_CACHE_HOME
passed=0
failed=0
pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
}
equal() { if [ "$1" = "$2" ]; then pass; else fail "$3: '$1' is not '$2'"; fi; }
frames_of() { ffmpeg -v error -i "$1" -map 0:v -f md5 - </dev/null; }

[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"
command -v ffmpeg >/dev/null || skip "ffmpeg is missing"
light='0.25+0.7*mod(floor(N/77)*5,13)/13'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=13,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb=512:cr=512" \
    -f lavfi -i sine=440:duration=12.5 -frames:v 300 -c:v libx264 -preset ultrafast -qp 0 -g 40 -bf 2 -color_trc smpte2084 -c:a aac \
    "$work/film.mkv" </dev/null 2>"$work/err" || skip "this ffmpeg cannot make the film"
"$tonemap" "$work/film.mkv" -o "$work/one.mkv" --encoder ffv1 -q 2>"$work/err" || {
    grep -q 'no OpenCL' "$work/err" && skip "this machine has no OpenCL device"
    grep -q 'without libavformat' "$work/err" && skip "this build has no libavformat"
    fail "one run: $(cat "$work/err")"
}
frames_of "$work/one.mkv" >"$work/one.md5"

# whole FILE NAME: the frames of one run, and the sound.
whole() {
    equal "$(frames_of "$1")" "$(cat "$work/one.md5")" "$2: the frames"
    equal "$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 "$1" | tr '\n' ' ')" 'ffv1 aac ' "$2: the streams"
}
