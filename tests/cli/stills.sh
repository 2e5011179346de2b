#!/bin/sh
# Stills of cox-tonemap: their colours as the PNG names them.
#   sh stills.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
png() { python3 "$source/tests/support/png.py" "$@"; }

# ramp CURVE: 256 x 2 pixels of grey from black to SDR white, 16 bits, 4:4:4, full range; linear is a picture.
ramp() {
    python3 - "$1" <<'EOF'
import math, struct, sys
def pq(light):
    y = (203 * light / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)
def hlg(light):
    a = 0.17883277
    e = (0.203 * light) ** (1 / 1.2)
    return math.sqrt(3 * e) if e <= 1 / 12 else a * math.log(12 * e - (1 - 4 * a)) + 0.5 - a * math.log(4 * a)
curve = sys.argv[1]
grey = [i / 255 for i in range(256)]
if curve == "linear":
    data = b"Pf\n256 2\n-1\n" + 2 * struct.pack("<256f", *grey)
else:
    signal = [round(65535 * (pq if curve == "pq" else hlg)(light)) for light in grey]
    data = 2 * struct.pack("<256H", *signal) + 4 * struct.pack("<256H", *([32768] * 256))
open(curve + ".ramp", "wb").write(data)
EOF
}

# --- The light is that of sRGB, which the PNG names ---

for curve in pq hlg linear; do
    for depth in 8 16; do
        format="--size 256x2 --format yuv444p16 --transfer $curve --range full --dither none"
        [ $curve != linear ] || format=
        ramp $curve
        run 0 "a ramp of $curve, $depth bits" $curve.ramp -o a.png $format --operator clip --peak 203 --depth $depth
        differ "$(png chunk a.png sRGB)" '' 'the chunk sRGB'
        check "wrong by $(png ramp a.png) codes" awk -v wrong="$(png ramp a.png)" 'BEGIN { exit !(wrong < 0.54) }'
    done
done
clean

finish
