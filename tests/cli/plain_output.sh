#!/bin/sh
# Text from elsewhere with escape sequences in it: options, files, metadata, databases, compilers. Nothing that a program
# prints, and no report, contains a character that controls a terminal.
#   sh plain_output.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
. "$source/tests/support/hostile_names.sh"
need_device
clip 8 4 2 tiny
tiny=$work/tiny.y4m
fast='--devices cpu'
# A title and a colour for the terminal. The same with one byte of control. A deletion, a byte that is not UTF-8, and
# text that is written from right to left.
evil=$(printf 'a\033]0;title\007\033[31m\302\2330m\177\377\342\200\256b')

# shows PATTERN WHAT COMMAND...: it prints a line with the pattern, and nothing of the above
shows() {
    h_line=$1
    what=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    cat "$work/out" "$work/err" >"$work/both"
    [ -z "$h_line" ] || contains "$work/both" "$h_line"
    plain out err
}
escaped='a\\x1b\]0;title\\x07\\x1b\[31m\\xc2\\x9b0m\\x7f\\xff\\xe2\\x80\\xaeb'

# --- Options, also those that the C library refuses ---
# shellcheck disable=SC2086
for program in tonemap lab devices bench; do
    [ -x "$bin/cox-$program" ] || continue
    shows 'a\\x1b' "cox-$program, an option" "$bin/cox-$program" "--$evil"
    shows '' "cox-$program, an argument" "$bin/cox-$program" "$evil"
done
shows "$escaped" 'devices' "$tonemap" "$tiny" -o null: --devices "$evil"
shows "$escaped" 'a policy' "$tonemap" "$tiny" -o null: --policy "$evil"
shows "$escaped" 'devices of cox-devices' "$bin/cox-devices" --devices "$evil"
shows "$escaped" 'devices of cox-bench' "$bin/cox-bench" overhead --devices "$evil"

# --- Films and scenes ---
film() { # HEADER
    { printf '%s\n' "$1" && tail -n +2 "$tiny"; } >film.y4m
}
film "YUV4MPEG2 W8 H4 F25:1 C$evil"
shows 'a\\x1b' 'a colour space' "$tonemap" film.y4m -o null:
film "YUV4MPEG2 W8 H$evil F25:1 C420p10"
shows 'film.y4m' 'a height' "$tonemap" film.y4m -o null:
# shellcheck disable=SC2086
{
    expect_status 0 'analyse' "$tonemap" analyse "$tiny" -o tiny.part $fast
    expect_status 0 'steer' "$tonemap" steer tiny.part -o tiny.scene
    sed "1s/.*/coxswain-scenes 1 $evil/" tiny.scene >evil.scene
    shows 'version a\\x1b' 'a version' "$tonemap" map "$tiny" --scene evil.scene -o null: $fast
    sed "s/^operator .*/operator $evil/" tiny.scene >evil.scene
    shows 'evil.scene' 'a value' "$tonemap" map "$tiny" --scene evil.scene -o null: $fast
    sed "1s/.*/$evil/" tiny.part >evil.part
    shows 'evil.part' 'a part' "$tonemap" steer evil.part -o evil.scene --overwrite
}

if command -v ffmpeg >/dev/null && ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=24 -f lavfi -i sine -t 0.1 -pix_fmt yuv420p10le \
    -c:v ffv1 -color_trc smpte2084 -metadata title="$evil" -metadata:s:v language="$evil" -metadata:s:a title="$evil" \
    -metadata "$evil=$evil" film.mkv 2>/dev/null && "$tonemap" film.mkv -o null: -q 2>/dev/null; then
    # shellcheck disable=SC2086
    {
        shows 'written' 'metadata' "$tonemap" film.mkv -o out.mkv --encoder ffv1 -v --stats stats.json --trace trace.json $fast
        plain stats.json trace.json
        shows "$escaped" 'an encoder' "$tonemap" film.mkv -o more.mkv --encoder "$evil" $fast
        shows 'a\\x1b' "an encoder's option" "$tonemap" film.mkv -o more.mkv --encoder "ffv1:$evil=$evil" $fast
    }
else
    leave_out 'metadata' 'ffmpeg or libavformat is missing'
fi

# --- Kernels: compilers quote them ---
printf '#error %s\nkernel void f(global uint *%s) {}\n' "$evil" "$evil" >evil.cl
shows '1[bB]' 'a kernel' "$bin/cox-devices" --compile evil.cl --devices cpu
check 'the log is one line' [ "$(wc -l <"$work/err")" -gt 1 ]
printf '{"kernel": "%s", "columns": 64, "rows": 96, "buffers": []}' "a\\u001b[31m\\u009b" >evil.json
if [ -x "$bin/cox-lab" ]; then
    lab=$bin/cox-lab
    shows 'evil' 'a kernel of the lab' "$lab" run --kernel evil.cl -o run.db --devices cpu

    # --- Databases: every text that may be changed ---
    expect_status 0 'a recording' "$lab" sim --scenario constant-2 --policy ewma,last-frame --frames 20 --seeds 1 --record evil.db
    if command -v sqlite3 >/dev/null; then
        sqlite3 evil.db "SELECT 'UPDATE OR IGNORE \"' || m.name || '\" SET \"' || c.name || '\" = \"' || c.name ||
            '\" || char(27) || ''[31m'' || char(155) || char(7) || char(8238) WHERE typeof(\"' || c.name || '\") = ''text'';'
            FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'" >"$work/sql"
        sqlite3 evil.db <"$work/sql" 2>/dev/null
        check 'nothing was changed' [ "$(sqlite3 evil.db 'SELECT count(*) FROM device WHERE name LIKE char(37) || char(27) || char(37)')" -gt 0 ]
        for command in 'report -o evil.html' 'report --csv' 'report --json' 'export --format paje -o evil.paje' 'replay' 'replay --csv' \
            'replay --json' 'replay --decisions' 'fit --seeds 1 -o fit.json' 'merge -o all.db'; do
            # shellcheck disable=SC2086
            shows '' "cox-lab $command" "$lab" $command evil.db
            case $command in *--json)
                ! command -v python3 >/dev/null || [ ! -s "$work/out" ] || check 'the JSON' python3 -m json.tool "$work/out"
                ;;
            esac
        done
        check 'no page' [ -s evil.html ]
        plain evil.html evil.paje
    else
        leave_out 'databases' 'sqlite3 is missing'
    fi
    printf '{"machines": "%s"}' "$evil" >cluster.json
    shows 'cluster.json' 'a cluster' "$lab" cluster cluster.json
    printf '{"name": "%s"}' 'a\u001b[31m' >scenario.json
    shows 'scenario.json' 'a scenario' "$lab" sim --scenario ./scenario.json
fi
finish
