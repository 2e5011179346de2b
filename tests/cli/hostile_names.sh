#!/bin/sh
# The programs with file names that could be taken for options, patterns, protocols or code. A file appears under exactly
# the given name and no other. Messages show the name without control characters.
#   sh hostile_names.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
. "$source/tests/support/hostile_names.sh"
need_device
make_picture
clip 8 4 2 tiny
tiny=$work/tiny.y4m
fast='--devices cpu'
# shellcheck disable=SC2086 # options are words
{
    expect_status 0 'analyse' "$tonemap" analyse "$tiny" -o "$work/tiny.part" $fast
    expect_status 0 'steer' "$tonemap" steer "$work/tiny.part" -o "$work/tiny.scene"
    expect_status 0 'the picture' "$tonemap" "$work/small.pfm" -o "$work/right.png" $fast
    expect_status 0 'the film' "$tonemap" "$tiny" -o "$work/right.y4m" $fast
}

# gives WHAT COMMAND...: it succeeds, and what it prints is plain
gives() {
    h_what=$1
    shift
    expect_status 0 "$h_what" "$@"
    plain out err
}

# It fails, with one plain line.
denies_plainly() { # STATUS WHAT COMMAND...
    expect_status "$@"
    contains err .
    equal "$(wc -l <"$work/err")" 1 'lines of the message'
    plain out err
}

# One name each for input, output, statistics and trace.
# shellcheck disable=SC2086
films() { # NUMBER
    clean
    name_is="name $1"
    case $name in - | null:) return ;; esac # these are no files; see below
    gives "$name_is, written" "$tonemap" "$tiny" --to y4m -o "$name" $fast
    only "$name_is, written" "$name"
    same "./$name" "$work/right.y4m"
    refute "$name_is, replaced by itself" "$tonemap" --to y4m -o "$name" $fast -- "$name"
    plain "$work/log"
    cp "$tiny" "./$name"
    gives "$name_is, read" "$tonemap" -o "$name.y4m" --stats "$name.stats" --trace "$name.trace" -v $fast -- "$name"
    same "./$name.y4m" "$work/right.y4m"
    mkdir "./$name.d"
    gives "$name_is, a folder" "$tonemap" -o "$name.d" --to y4m $fast -- "$name"
    same "$(find "./$name.d" -name '*.y4m')" "$work/right.y4m"
    only "$name_is, read" "$name" "$name.y4m" "$name.stats" "$name.trace" "$name.d"
    plain "./$name.stats" "./$name.trace"
    rm "./$name"
    denies_plainly 1 "$name_is, missing" "$tonemap" -o a.y4m $fast -- "$name"
    harmless
}

# The steps of a film in pieces, and a picture.
# shellcheck disable=SC2086
pieces() { # NUMBER
    clean
    name_is="name $1"
    case $name in - | null:) return ;; esac
    cp "$tiny" "./$name"
    gives "$name_is, analyse" "$tonemap" analyse -o "$name.part" $fast -- "$name"
    gives "$name_is, steer" "$tonemap" steer -o "$name.scene" -- "$name.part"
    same "./$name.scene" "$work/tiny.scene"
    gives "$name_is, map" "$tonemap" map --scene "$name.scene" -o "$name.y4m" $fast -- "$name"
    gives "$name_is, join" "$tonemap" join --scene "$name.scene" -o "$name.all.y4m" -- "$name.y4m"
    only "$name_is, pieces" "$name" "$name.part" "$name.scene" "$name.y4m" "$name.all.y4m"
    clean
    cp "$work/small.pfm" "./$name"
    gives "$name_is, a picture" "$tonemap" -o "$name.png" $fast -- "$name"
    same "./$name.png" "$work/right.png"
    only "$name_is, a picture" "$name" "$name.png"
    harmless
}

# One name in three, for what takes long. The files are opened by the same functions.
some() { # COMMAND NUMBER
    [ $(($2 % 3)) -ne 0 ] || "$1" "$2"
}

each_name films
each_name some pieces
clean

# Two names that are no files.
what='standard output'
# shellcheck disable=SC2086
"$tonemap" "$tiny" --to y4m -o - $fast >"$work/stdout" 2>"$work/err"
same "$work/stdout" "$work/right.y4m"
# shellcheck disable=SC2086
gives 'nothing' "$tonemap" "$tiny" -o null: $fast
equal "$(ls -A)" '' 'files'

# Containers: libavformat takes a name for an address, or for a pattern of several pictures.
if command -v ffmpeg >/dev/null && ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=24 -frames:v 3 -pix_fmt yuv420p10le -c:v ffv1 \
    -color_trc smpte2084 "$work/tiny.mkv" 2>/dev/null && "$tonemap" "$work/tiny.mkv" -o null: -q 2>/dev/null; then
    # shellcheck disable=SC2086
    containers() { # NUMBER
        clean
        name_is="name $1"
        case $name in - | null:) return ;; esac
        cp "$work/tiny.mkv" "./$name"
        gives "$name_is, a container" "$tonemap" --encoder ffv1 -o "$name.mkv" $fast -- "$name"
        only "$name_is, a container" "$name" "$name.mkv"
        harmless
    }
    each_name some containers
else
    leave_out 'containers' 'ffmpeg or libavformat is missing'
fi

if [ -x "$bin/cox-lab" ]; then
    lab=$bin/cox-lab
    clean
    gives 'a recording' "$lab" sim --scenario constant-2 --policy ewma --frames 20 --seeds 1 --record "$work/right.db"
    databases() { # NUMBER
        clean
        name_is="name $1"
        case $name in -) return ;; esac
        gives "$name_is, sim" "$lab" sim --scenario constant-2 --policy ewma --frames 20 --seeds 1 --record "$name"
        gives "$name_is, merge" "$lab" merge -o "$name.all" -- "$name" "$work/right.db"
        gives "$name_is, report" "$lab" report -o "$name.html" -- "$name.all"
        plain "./$name.html"
        gives "$name_is, export" "$lab" export --format paje -o "$name.paje" -- "$name"
        gives "$name_is, fit" "$lab" fit --seeds 1 -o "$name.json" -- "$name"
        gives "$name_is, replay" "$lab" replay --policy ewma -- "$name"
        only "$name_is, the lab" "$name" "$name.all" "$name.html" "$name.paje" "$name.json"
        rm "./$name"
        expect_status 1 "$name_is, missing" "$lab" report -o a.html -- "$name"
        plain out err
        harmless
    }
    each_name databases
else
    leave_out 'cox-lab' 'it is not built'
fi

# The kernel is the same in all calls, so its code is in the cache.
echo 'kernel void f(global uint *a) { a[get_global_id(0)] = B; }' >"$work/f.cl"
kernels() { # NUMBER
    clean
    name_is="name $1"
    case $name in -) return ;; esac
    cp "$work/f.cl" "./$name"
    gives "$name_is, a kernel" "$bin/cox-devices" --devices cpu --compile --options -DB=1 --output "$name.code" -- "$name"
    only "$name_is, a kernel" "$name" "$name.code"
    mkdir "./$name.d"
    echo '#define C 2' >"./$name.d/$name"
    gives "$name_is, headers" "$bin/cox-devices" --devices cpu --compile --options -DB=1 --headers "$name.d" -- "$name"
    harmless
}
each_name some kernels
finish
