#!/bin/sh
# cox-tonemap --judge: its figures, in text and in the statistics, against those of tests/support/judge.py in double
# precision. References that end, are damaged, or are no SDR video of the film's size.
#   sh judge.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
make_clips
film=$work/film.y4m
first() { head -c $(($(head -n 1 "$2" | wc -c) + $1 * ($3 + 6))) "$2"; } # FRAMES FILE FRAME_BYTES
first 4 "$work/clip.y4m" $frame10 >"$film"

# changed WHAT FROM TO: FROM with other samples.
#   offset   brighter by 3 codes in even frames and 5 in odd ones, and a little red
#   bands    a wide dark ramp with steps of 2 codes in the upper half, one of 5 in the lower half; corners at the limits
#   full     10 bits, 4:4:4, full range
changed() {
    python3 - "$@" <<'END'
import sys
what, source, target = sys.argv[1:]
head, _, rest = open(source, "rb").read().partition(b"\n")
size, out = 64 * 48 * 3 // 2, open(target, "wb")
out.write(b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C444p10 XCOLORRANGE=FULL\n" if what == "full" else head + b"\n")
for n in range(len(rest) // (size + 6)):
    frame = bytearray(rest[n * (size + 6) + 6 :][:size])
    luma, cb, cr = frame[:3072], frame[3072:3840], frame[3840:]
    if what == "offset":
        luma = bytes(min(code + 3 + 2 * (n % 2), 255) for code in luma)
        cr = bytes(code + 4 for code in cr)
    elif what == "bands":
        luma = bytes(40 + x // 16 * (2 if y < 24 else 5) for y in range(48) for x in range(64))
        luma = b"\x10\x10\xeb\xeb" + luma[4:]
        cb = cr = bytes([128] * 768)
    else:
        luma = [round((code - 16) / 219 * 1023) for code in luma]
        cb, cr = ([round(512 + (plane[y // 2 * 32 + x // 2] - 128) / 224 * 1023) for y in range(48) for x in range(64)]
                  for plane in (cb, cr))
        luma, cb, cr = (b"".join(code.to_bytes(2, "little") for code in plane) for plane in (luma, cb, cr))
    out.write(b"FRAME\n" + luma + cb + cr)
END
}
figure() { # NAME...: one of film.judge, or of a picture's judge, in a.json
    python3 -c 'import functools, json, sys
data = json.load(open("a.json"))
print(functools.reduce(lambda at, name: at[name], sys.argv[1:], data.get("film", data)["judge"]))' "$@"
}
right() { # FILE REFERENCE [PEAK]: the figures in a.json are those of judge.py
    equal "$(cat "$work/err")" ''
    python3 "$source/tests/support/judge.py" "$@" >figures || fail 'no figures'
    equal "$(python3 "$source/tests/support/judge.py" near a.json figures)" '' 'wrong figures'
}
judges() { # REFERENCE LIKE: the figures are those of judge.py for a.y4m and the y4m file LIKE
    run 0 "judged by $1" "$film" --judge "$1" -o a.y4m --stats a.json
    right a.y4m "$2"
}

refused() { # STATUS PATTERN WHAT ARGS...: as refuses, with the folder's files
    files=$(ls)
    denies "$@"
    equal "$(ls)" "$files" 'files'
}

# --- Figures ---

run 0 'a film' "$film" -o b.y4m
run 0 'a film against itself' "$film" --judge b.y4m --stats a.json
contains out '^judged    4 frames: dE ITP 0.00 \(mean\), 0.00 \(median\), 0.00 \(90 %\), 0.00 \(99 %\), 0.00 at most$' \
    '^flicker   0.000 codes' '^banding   0.00 edges in 1000 pixels, 0.00 in the reference$' '^clipped   .* white .* black'
equal "$(ls)" "a.json
b.y4m" 'files, without an output'
equal "$(figure frames) $(figure de_itp) $(figure flicker)" \
    "4 {'mean': 0.0, 'p50': 0.0, 'p90': 0.0, 'p99': 0.0, 'max': 0.0} 0.0"
equal "$(figure output)" "$(figure reference)"
run 0 'NV12 has the same pixels' "$film" --judge b.y4m -o a.nv12 --stats a.json
equal "$(figure de_itp max)" 0.0
run 0 'and P010 others' "$film" --judge b.y4m -o a.p010 --stats a.json
check 'not the bits of 8' [ "$(figure de_itp max)" != 0.0 ]

for what in offset bands full; do
    changed $what b.y4m b.$what.y4m
    judges b.$what.y4m b.$what.y4m
done
changed bands b.y4m b.bands.y4m
judges b.bands.y4m b.bands.y4m
check 'band edges' [ "$(figure reference band_edges)" != 0.0 ]
check 'flicker' [ "$(figure flicker)" != 0.0 ]

if ! command -v ffmpeg >/dev/null || ! ffmpeg -hide_banner -encoders 2>/dev/null | grep -q ' ffv1 '; then
    leave_out 'containers' 'there is no ffmpeg with the encoder ffv1'
elif "$tonemap" "$film" -o no.mkv 2>&1 | grep -q 'built without libavformat'; then
    leave_out 'containers' 'this build has no libavformat'
else
    tagged() { # MATRIX PRIMARIES TRANSFER FILE
        expect_status 0 "tagged $1" ffmpeg -v error -nostdin -i b.offset.y4m -c:v ffv1 -colorspace $1 \
            -color_primaries $2 -color_trc $3 -y $4
    }
    cp b.offset.y4m small.y4m
    tagged smpte170m smpte170m smpte170m small.mkv
    judges small.mkv small.y4m
    cp b.offset.y4m wide.y4m
    tagged bt2020nc bt2020 bt2020-10 wide.mkv
    judges wide.mkv wide.y4m
    tagged bt2020nc bt2020 smpte2084 hdr.mkv
    run 1 'HDR' "$film" --judge hdr.mkv -o a.mkv
    contains err '^cox-tonemap: hdr.mkv: is HDR; --judge compares it with the output of --hdr only$'
    refute 'an output' [ -e a.mkv ]

    # HDR and BT.2020, as the reference names them
    run 0 'HDR' "$film" --hdr 600 --judge hdr.mkv -o h.y4m --stats a.json
    cp b.offset.y4m h.ref.y4m
    right h.y4m h.ref.y4m 600
    refused 1 '^cox-tonemap: wide.mkv: is SDR, or does not name PQ; with --hdr' 'SDR' "$film" --judge wide.mkv --hdr 600
    tagged bt2020nc bt2020 arib-std-b67 hlg.mkv
    refused 1 '^cox-tonemap: hlg.mkv: is HLG; --judge compares PQ$' 'HLG' "$film" --judge hlg.mkv --hdr 600
    run 0 'BT.2020 and the names of BT.709' "$film" --wide --judge small.mkv -o w.y4m --stats a.json
    right w.y4m small.y4m
    run 0 'a still and a film of PQ' "$film" --hdr 600 --judge hdr.mkv -o h.png --frame 0 --stats a.json --peak 1000
    cp h.ref.y4m h.one.y4m
    right h.png h.one.y4m 600
fi

# y4m has no names: it is what the mapped frames are.
run 0 'HDR' "$film" --hdr 600 -o h.mine.y4m
run 0 'HDR against itself' "$film" --hdr 600 --judge h.mine.y4m --stats a.json
equal "$(figure de_itp max)" 0.0
run 0 'HDR for another display' "$film" --hdr 300 --judge h.mine.y4m -o h.y4m --stats a.json
right h.y4m h.mine.y4m 300
run 0 'BT.2020' "$film" --wide -o w.mine.y4m
run 0 'BT.2020 against itself' "$film" --wide --judge w.mine.y4m --stats a.json
equal "$(figure de_itp max)" 0.0
run 0 'another curve in BT.2020' "$film" --wide --judge w.mine.y4m -o w.y4m --stats a.json --operator reinhard
right w.y4m w.mine.y4m

# --- Which frames ---

fixed='--peak 1000'
film=$work/clip.y4m
run 0 'a film of a fixed peak' "$film" -o b.y4m $fixed
run 0 'a part of the film' "$film" --judge b.y4m --stats a.json $fixed --start 5 --frames 3
equal "$(figure frames) $(figure de_itp max)" '3 0.0'
equal "$(cat "$work/err")" ''
run 0 'stills' "$film" --judge b.y4m --stats a.json $fixed --frame 3,9 -o still-%d.png
equal "$(figure frames) $(figure flicker)" '2 None'
equal "$(ls still-*)" "still-1.png
still-2.png"

first 4 b.y4m $frame8 >short.y4m
run 0 'a reference that ends early' "$film" --judge short.y4m --stats a.json $fixed -o a.y4m
contains err '^cox-tonemap: warning: short.y4m: ends 8 frames before the mapped film$'
equal "$(figure frames)" 4
whole a.y4m $frame8 12
run 1 'with --strict' "$film" --judge short.y4m $fixed --strict
contains err '^cox-tonemap: short.y4m: ends 8 frames before'
run 1 'no frame of it' "$film" --judge short.y4m $fixed --start 6
contains err '^cox-tonemap: short.y4m: has none of the mapped frames$'
lacks out '^judged'

{ cat b.y4m && tail -c $((frame8 + 6)) b.y4m; } >long.y4m
run 0 'a reference that goes on' "$film" --judge long.y4m $fixed
contains err '^cox-tonemap: warning: long.y4m: goes on after the 12 frames of the mapped film$'
run 0 'but only a part is mapped' "$film" --judge long.y4m $fixed --frames 12
equal "$(cat "$work/err")" ''

# --- Pictures and stills ---

python3 "$source/tests/support/hdr_picture.py" make picture.pfm
picture=picture.pfm
run 0 'a picture' $picture -o grade.png --operator reinhard --depth 16
run 0 'a picture against another mapping' $picture --judge grade.png -o a.png --stats a.json
right a.png grade.png
contains out '^judged    1 frame: dE ITP' '^banding ' '^clipped '
lacks out '^flicker'
run 0 'without an output' $picture --judge grade.png --operator reinhard --depth 16 --repeat 3
contains out '^judged    1 frame: dE ITP 0.00 .* 0.00 at most$'
lacks out '^written'
run 0 'a picture in BT.2020' $picture --judge grade.png -o a.png --stats a.json --wide --operator clip
right a.png grade.png
run 0 'a picture in PQ' $picture -o hdr.png --hdr 1000
run 0 'a picture in PQ against another' $picture --judge hdr.png -o a.png --hdr 500 --stats a.json
right a.png hdr.png 500
check 'clipped to the peak' [ "$(figure output clipped_white)" != 0.0 ]
run 0 'a JPEG' $picture --judge grade.png -o a.jpg --peak 1000 ||
    grep -q 'built without libjpeg' "$work/err"
refused 1 '^cox-tonemap: hdr.png: is HDR; --judge' 'PQ' $picture --judge hdr.png -o a.png
refused 1 '^cox-tonemap: grade.png: is SDR, or does not name PQ' 'sRGB' $picture --judge grade.png -o a.png --hdr 600
refused 2 '^cox-tonemap: --judge and --alpha cannot be combined' 'alpha' $picture --judge grade.png -o a.png --alpha
refused 1 '^cox-tonemap: grade.png: is 97 x 64, but the mapped frames are 64 x 48' 'another size' "$film" --judge grade.png
refused 1 '^cox-tonemap: grade.png: input and output are the same' 'an output' $picture --judge grade.png -o grade.png
photo() { python3 "$source/tests/support/photo.py" png "$@"; }
photo sdr.png srgb bt709 16 rgb
photo rgba.png srgb bt709 8 rgba
photo linear.png linear bt709 16 rgb
photo limited.png pq bt709 16 rgb limited
photo pq.png pq bt709 16 rgb
PYTHONPATH="$source/tests/support" python3 - <<'PY' # a profile instead of cICP: that of P3
import zlib
import gain_map, photo
data = open("sdr.png", "rb").read()
profile = bytearray(gain_map.profile_p3()[18:])
profile[36:40] = b"acsp"  # without it libpng drops the profile
profile = b"p3\0\0" + zlib.compress(profile)
open("icc.png", "wb").write(data[:33] + photo.chunk(b"iCCP", profile) + data[33:])
open("cicp.png", "wb").write(data[:33] + photo.chunk(b"cICP", bytes((12, 13, 0, 1))) + data[33:])
open("ycc.png", "wb").write(data[:33] + photo.chunk(b"cICP", bytes((1, 13, 1, 1))) + data[33:])
PY
refused 1 '^cox-tonemap: icc.png: its ICC profile is not that of sRGB' 'a profile' pq.png --judge icc.png
refused 1 '^cox-tonemap: ycc.png: damaged PNG: its cICP names a matrix' 'a matrix' pq.png --judge ycc.png
run 0 'P3' pq.png --judge cicp.png --stats a.json
wide=$(figure de_itp mean)
run 0 'sRGB' pq.png --judge sdr.png --stats a.json
differ "$wide" "$(figure de_itp mean)" 'P3 and sRGB'
run 0 'a picture of the size' pq.png --judge sdr.png -o a.png
refused 1 '^cox-tonemap: rgba.png: has transparent parts' 'alpha' pq.png --judge rgba.png
refused 1 '^cox-tonemap: linear.png: its transfer curve .linear. is not supported' 'light' pq.png --judge linear.png
refused 1 '^cox-tonemap: limited.png: its codes are of the limited range' 'limited range' pq.png --judge limited.png
head -c 200 sdr.png >cut.png
refused 1 '^cox-tonemap: cut.png: damaged or truncated PNG' 'a cut PNG' pq.png --judge cut.png

run 0 'a still' "$film" -o still.png --frame 2 $fixed
run 0 'a still against itself' "$film" --judge still.png -o a.png --frame 2 $fixed --stats a.json
equal "$(figure frames)" 1
contains out ' 0.00 at most$'
run 0 'another frame' "$film" --judge still.png -o a.png --frame 9 $fixed --stats a.json
right a.png still.png
run 0 'a film has more frames than a PNG' "$film" --judge still.png -o a.y4m $fixed
contains err '^cox-tonemap: warning: still.png: ends 11 frames before the mapped film$'

# --- Bad references ---

head -c 30000 b.y4m >cut.y4m
run 1 'a cut reference' "$film" --judge cut.y4m $fixed -o a.y4m --stats a.json
contains err '^cox-tonemap: cut.y4m: frame 6 .* is incomplete'
equal "$(figure frames)" 6
whole a.y4m $frame8 12
clean

run 0 'another film' "$work/odd.y4m" -o odd.y4m
refused 1 '^cox-tonemap: odd.y4m: is 37 x 21, but the mapped frames are 64 x 48; .* same size$' 'another size' \
    "$film" --judge odd.y4m -o a.y4m
run 0 'mapped to its size' "$film" --judge odd.y4m --scale 37x21 --frames 3
refused 1 'no.y4m: cannot be opened' 'no file' "$film" --judge no.y4m -o a.y4m
refused 1 '\.: ' 'a folder' "$film" --judge . -o a.y4m
make_picture
refused 1 'small.pfm: a picture, but not a PNG' 'a picture' "$film" --judge "$work/small.pfm" -o a.y4m
head -c 20 odd.y4m >header
refused 1 '^cox-tonemap: header: ' 'a part of a header' "$film" --judge header -o a.y4m
refused 1 '^cox-tonemap: odd.y4m: input and output are the same' 'an output' "$work/odd.y4m" --judge odd.y4m -o odd.y4m
refused 2 'only one of the input and --judge' 'standard input twice' - --judge - -o a.y4m
refused 2 '^cox-tonemap: --judge takes one input, but 2' 'two films' "$film" "$film" --judge odd.y4m -o .
refused 1 '^cox-tonemap: odd.y4m: is 37 x 21, but' 'a film as the reference of a picture' "$work/small.pfm" \
    --judge odd.y4m -o a.png
refused 2 '^cox-tonemap: --judge is not an option of' 'a piece' map "$film" --scene a --judge odd.y4m -o a.mkv
refused 2 '^cox-tonemap: no output' 'a kind of output without its name' "$film" --judge odd.y4m --to mkv
finish
