#!/bin/sh
# Photographs: PNG with cICP, AVIF, HEIC, JPEG XL, and JPEG and HEIC with gain maps. A ramp of grey and patches of colour
# get the codes of a computation in double precision, within half a code of 8 bits. They are upright. SDR is refused.
#   sh photographs.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
photo() { python3 "$source/tests/support/photo.py" "$@"; }
gain_map() { python3 "$source/tests/support/gain_map.py" "$@"; }

# has LIBRARY FILE: this build reads the file; else the message names the library.
has() {
    "$tonemap" "$2" -o none.png -q >"$work/out" 2>"$work/err"
    rm -f none.png
    ! grep -q "built without $1" "$work/err" || { leave_out "$1" 'cox-tonemap was built without it' && false; }
}

# can PROGRAM...: the programs that make a kind of files are there.
can() {
    for h_program; do
        command -v "$h_program" >/dev/null || { leave_out "files of $1" "there is no $h_program" && return 1; }
    done
}

# maps MOST WHAT FILE JUDGE ARG...: the picture is read, and JUDGE finds no error above MOST codes.
maps() {
    h_most=$1
    h_file=$3
    h_judge=$4
    run 0 "$2" "$h_file" -o out.png --operator clip --desat 0 --peak 203 --exposure 0 --depth 16
    shift 4
    h_error=$($h_judge judge out.png "$@")
    check "$what: an error of $h_error codes" awk -v e="$h_error" -v m="$h_most" 'BEGIN { exit !(e != "" && e <= m) }'
    clean
}

# --- PNG ---

for case in 'pq bt2020 16 rgb' 'pq p3 8 rgba' 'hlg bt709 8 grey'; do
    # shellcheck disable=SC2086 # a case is words
    set -- $case
    photo png "$work/a.png" "$@"
    maps 0.5 "PNG, $case" "$work/a.png" photo "$@"
done
photo png "$work/a.png" pq bt2020 16 rgb limited
maps 0.5 'PNG of limited range' "$work/a.png" photo pq bt2020 16 rgb
photo png "$work/sdr.png" srgb bt709 8 rgb
refuses 1 'sdr.png: the PNG picture is SDR .transfer: sRGB' 'a PNG without cICP' "$work/sdr.png" -o a.png
photo png "$work/linear.png" linear bt709 16 rgb
refuses 1 'the PNG picture is SDR .transfer: linear' 'linear PNG' "$work/linear.png" -o a.png
head -c 300 "$work/a.png" >"$work/cut.png"
refuses 1 'cut.png: damaged or truncated PNG' 'a truncated PNG' "$work/cut.png" -o a.png
refuses 1 'a.png: 64 x 16 pixels need .*--max-memory' 'a limit of memory' "$work/a.png" -o a.png --max-memory 0.00001

# --- JPEG with a gain map ---

gain_map jpeg "$work/a.jpg" list
if has libjpeg "$work/a.jpg"; then
    for way in xmp list iso colours p3 notes loose; do
        gain_map jpeg "$work/a.jpg" $way
        maps 0.5 "JPEG, gain map named by $way" "$work/a.jpg" gain_map $way
    done
    gain_map jpeg "$work/a.jpg" grey 6
    maps 0.5 'a grey JPEG, turned' "$work/a.jpg" gain_map grey 6
    gain_map jpeg "$work/none.jpg" none
    refuses 1 'the JPEG picture is SDR: it has no gain map' 'JPEG' "$work/none.jpg" -o a.png
    gain_map jpeg "$work/hdr.jpg" hdr
    refuses 1 'hdr.jpg: a gain map from HDR to SDR' 'a map that leads to SDR' "$work/hdr.jpg" -o a.png
    size=$(bytes "$work/a.jpg")
    head -c $((size - 30)) "$work/a.jpg" >"$work/cut.jpg"
    refuses 1 'cut.jpg: damaged or truncated JPEG' 'a truncated gain map' "$work/cut.jpg" -o a.png
fi

# --- AVIF ---

if can avifenc; then
    photo y4m "$work/a.y4m" pq bt2020 10 limited
    avif() { avifenc --min 0 --max 0 --minalpha 0 --maxalpha 0 -s 10 "$@" >"$work/log" 2>&1 || fail 'avifenc failed'; }
    avif --cicp 9/16/9 -r limited "$work/a.y4m" "$work/a.avif"
    if has libavif "$work/a.avif"; then
        maps 0.5 'AVIF, PQ, limited range' "$work/a.avif" photo pq bt2020 10 limited
        photo y4m "$work/a.y4m" hlg p3 12 full
        avif --cicp 12/18/9 -r full --irot 1 --imir 0 "$work/a.y4m" "$work/a.avif"
        maps 0.5 'AVIF, HLG, full range, turned and mirrored' "$work/a.avif" photo hlg p3 12 full 5
        photo png "$work/alpha.png" srgb bt2020 16 rgba
        avif --cicp 9/16/0 -r full -d 12 -y 444 "$work/alpha.png" "$work/a.avif"
        maps 0.5 'AVIF, RGB with alpha' "$work/a.avif" photo pq bt2020 16 rgba
        avif --cicp 1/13/6 "$work/sdr.png" "$work/sdr.avif"
        refuses 1 'the AVIF picture is SDR .transfer: sRGB' 'SDR' "$work/sdr.avif" -o a.png
        size=$(bytes "$work/a.avif")
        head -c $((size - 40)) "$work/a.avif" >"$work/cut.avif"
        refuses 1 'cut.avif: damaged AVIF' 'a truncated AVIF' "$work/cut.avif" -o a.png
    fi
fi

# --- JPEG XL ---

if can cjxl; then
    jxl() { cjxl "$@" -d 0 >"$work/log" 2>&1 || fail 'cjxl failed'; }
    photo png "$work/rgba.png" srgb bt2020 16 rgba
    jxl "$work/rgba.png" "$work/a.jxl" -x color_space=RGB_D65_202_Rel_PeQ
    if has libjxl "$work/a.jxl"; then
        maps 0.5 'JPEG XL, PQ' "$work/a.jxl" photo pq bt2020 16 rgba
        jxl "$work/rgba.png" "$work/a.jxl" -x color_space=RGB_D65_DCI_Rel_HLG
        maps 0.5 'JPEG XL, HLG' "$work/a.jxl" photo hlg p3 16 rgba
        photo pfm "$work/a.pfm" linear bt2020 16
        jxl "$work/a.pfm" "$work/a.jxl" -x color_space=RGB_D65_202_Rel_Lin
        maps 0.5 'JPEG XL, linear' "$work/a.jxl" photo linear bt2020 16 rgb
        jxl "$work/sdr.png" "$work/sdr.jxl"
        refuses 1 'the JPEG XL picture is SDR .transfer: sRGB' 'SDR' "$work/sdr.jxl" -o a.png
        size=$(bytes "$work/a.jxl")
        head -c $((size / 2)) "$work/a.jxl" >"$work/cut.jxl"
        refuses 1 'cut.jxl: damaged or truncated JPEG XL' 'a truncated JPEG XL' "$work/cut.jxl" -o a.png
    fi
fi

# --- HEIC ---

hevc() { # FILE ARG...: code as HEVC without loss
    h_out=$1
    shift
    ffmpeg -nostdin -v error "$@" -c:v libx265 -x265-params lossless=1:log-level=none -tag:v hvc1 "$h_out" 2>"$work/log"
}
if can ffmpeg && photo y4m "$work/a.y4m" pq bt2020 12 limited && ! hevc "$work/a.mp4" -i "$work/a.y4m"; then
    leave_out 'files of HEIC' 'ffmpeg cannot encode HEVC'
elif [ -e "$work/a.mp4" ]; then
    photo heic "$work/a.heic" pq bt2020 12 limited "$work/a.mp4" 6
    if has libheif "$work/a.heic"; then
        maps 0.5 'HEIC, PQ, turned' "$work/a.heic" photo pq bt2020 12 limited 6
        photo heic "$work/a.heic" hlg p3 12 limited "$work/a.mp4"
        maps 0.5 'HEIC, HLG' "$work/a.heic" photo hlg p3 12 limited
        photo heic "$work/sdr.heic" srgb bt709 12 limited "$work/a.mp4"
        refuses 1 'the HEIC picture is SDR .transfer: sRGB' 'SDR' "$work/sdr.heic" -o a.png
        gain_map y4m "$work/base.y4m"
        gain_map gray "$work/map"
        hevc "$work/base.mp4" -i "$work/base.y4m"
        hevc "$work/map.mp4" -f rawvideo -pix_fmt gray -s 32x16 -i "$work/map"
        gain_map heic "$work/apple.heic" "$work/base.mp4" "$work/map.mp4"
        maps 0.5 "HEIC with Apple's gain map" "$work/apple.heic" gain_map heic
        size=$(bytes "$work/a.heic")
        head -c $((size - 200)) "$work/a.heic" >"$work/cut.heic"
        refuses 1 'cut.heic: damaged HEIC' 'a truncated HEIC' "$work/cut.heic" -o a.png
    fi
fi

finish
