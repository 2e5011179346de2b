#!/bin/sh
# Count the operations of the library's kernels per pixel with Oclgrind, for each arithmetic.
#
#     docs/results/kernel-operations.sh [BIN_DIR]
#
# Oclgrind runs the vector form of each kernel and counts the instructions it executes, for 16 pixels.
# These count as operations:
#   - floating-point additions, subtractions, multiplications and fma
#   - shifts, bitwise operations, conversions
#   - a choice with its comparison, as one: a minimum, for instance
# These do not: loads and stores, rearranging vectors, integer sums (most of them addresses).
#
# The figures belong into the table in examples/programs/bench/kernels_list.c. Takes a minute or two.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/../.."
bin=${1:-build/bin}
width=2048
height=32
# count DEFINE: Oclgrind does not report an fma, but has one.
count()
{
    oclgrind --build-options "-DINLINE=static -fno-inline $1" --inst-counts --log /dev/null \
        "$bin/cox-bench" kernels --size ${width}x$height --frames 10 |
        awk -v pixels=$((width * height)) '
            /^Instructions executed for kernel/ { split($0, part, "\047"); kernel[++n] = part[2]; next }
            /^ *[0-9]+ - (fadd|fsub|fmul|select|and|or|xor|shl|lshr|ashr)$/ { count[n] += $1 }
            /^ *[0-9]+ - call _Z[0-9]+(convert_|fmaDv|(min|max|clamp)Dv)/ { count[n] += $1 }
            END {
                # The last round; its order is that of examples/programs/bench/kernels.c.
                split("HLG;histogram;analysis alone;picture, half to 16 bits;PQ with analysis;picture, float to 8 bits;" \
                      "PQ;picture, half to 8 bits", name, ";")
                for (i = n; i > 0 && found < 8; i--)
                    if (kernel[i] ~ /^(picture|video|histogram)$/)
                        printf "%-28s %5.0f\n", name[++found], 16 * count[i] / pixels
            }'
}

echo "muladd"
count ""
echo "fma"
count -DCOX_FMA
