#!/bin/sh
# The harness of every test script. Source it first, with the script's own arguments:
#
#   . "$(dirname "$0")/../support/harness.sh"
#   need ffmpeg                                  # or the test is skipped
#   expect_status 0 'help' "$bin/cox-lab" --help
#   contains out '^Usage' '--json'
#   finish                                       # the last line of every script
#
# Variables and files for the script:
#   $source $bin    the source folder, and the first argument if it is a folder
#   $COX_TEST_DIR, $COX_TEST_LAYER_DIR   the test programs and the layers; default: in the folders next to $bin
#   $work           a temporary folder for caches, configuration and TMPDIR; it stays only if COX_KEEP=1
#   $work/d         the working directory, empty; `clean` empties it again
#   $work/out, err  the output of the last `expect_status` or `start`
#   $what           the subject of the last check; messages of failures begin with it
#
# The working directory has changed, so use $source to source more files: . "$source/tests/support/setups.sh".
# A script runs with set -u, LC_ALL=C, TZ=UTC, an empty standard input and default signal actions, even under nohup.
#
# Checks, each counted as passed or failed. WHAT is for the message.
#   check WHAT COMMAND...                 the command succeeds; refute: it fails
#   expect_status STATUS WHAT COMMAND...  it ends with this status, which is also in $status; sets $what
#   run STATUS WHAT ARGS...               the same for `program`, a function that the script defines
#   prints PATTERN WHAT ARGS...           the same with status 0, and a line of standard output matches
#   denies STATUS PATTERN WHAT ARGS...    the same with this status, and a line of standard error matches
#   contains FILE PATTERN...              each pattern (grep -E) matches a line of the file, or of out or err;
#                                         lacks: no pattern does
#   counts NUMBER FILE PATTERN            the pattern matches NUMBER lines
#   equal ACTUAL EXPECTED [WHAT]          two strings are equal;  differ: they are not
#   same FILE FILE [WHAT]                 two files are equal
#   pass, fail TEXT                       for other checks
#
# Processes in the background. All are killed at the end of the script.
#   start COMMAND...                      start a process: its number is $pid, its output is in out and err. Before you
#                                         send a signal, wait for an effect of the process, or the signal may be lost
#   owned PID                             also kill this process at the end, which was started in another way
#   wait_until SECONDS WHAT COMMAND...    until the command succeeds. Fails after SECONDS (use 60 or more), or if the
#                                         started process ends before
#   ends PID SECONDS                      the process ends in time; its exit status is in $status. Else kill it and fail
#   stop PID...                           kill the process and wait for it
#   catches PID SIGNAL                    whether it has a handler for this signal number
#   gone PID                              whether a process that this script started has ended
#
# Skips, for what the machine lacks:
#   skip WHY                              skip the rest, with status 77 unless something failed before
#   leave_out WHAT WHY                    skip one part
#   need PROGRAM...                       skip if a program is not installed;  need_device: if there is no OpenCL device
#   at_exit COMMAND                       run this at the end: a string for eval
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # scripts use these variables
set -u

# --- Signals ---------------------------------------------------------------------------------------------------------
# A shell that starts with a signal ignored, as SIGHUP under nohup, cannot restore its default action. Its
# background processes also ignore SIGINT. Another program can restore both.
with_default_signals() { # COMMAND...: replaces this shell
    if env --default-signal=HUP true 2>/dev/null; then
        exec env --default-signal=HUP,INT,QUIT,TERM,PIPE "$@"
    elif command -v perl >/dev/null; then
        exec perl -e '$SIG{$_} = "DEFAULT" for qw(HUP INT QUIT TERM PIPE); exec { $ARGV[0] } @ARGV or exit 127' "$@"
    fi
    exec python3 -c 'import os, signal, sys
for name in ("HUP", "INT", "QUIT", "TERM", "PIPE"):
    signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
if [ "${COX_HARNESS:-}" != $$ ]; then
    COX_HARNESS=$$ # exec keeps the process number; a script that this one starts has another number
    export COX_HARNESS
    with_default_signals "${BASH:-sh}" "$0" "$@"
fi

# --- The environment -------------------------------------------------------------------------------------------------
source=$(cd "$(dirname "$0")/../.." && pwd)
bin=
[ ! -d "${1:-}" ] || bin=$(cd "$1" && pwd)
work=$(mktemp -d) || exit 1
: "${COX_TEST_DIR:=$bin/../tests}"
: "${COX_TEST_LAYER_DIR:=$COX_TEST_DIR/layers}"
export COX_TEST_DIR COX_TEST_LAYER_DIR
# Caches of compiled kernels are keyed by content and may be shared. Everything else belongs to this run.
: "${POCL_CACHE_DIR:=${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/pocl}"
: "${MESA_SHADER_CACHE_DIR:=${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/mesa}"
mkdir -p "$POCL_CACHE_DIR" 2>/dev/null || POCL_CACHE_DIR=$work/cache/pocl
# Mesa does not create its folder.
mkdir -p "$MESA_SHADER_CACHE_DIR" 2>/dev/null || MESA_SHADER_CACHE_DIR=$work/cache/mesa
XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config TMPDIR=$work/tmp LC_ALL=C TZ=UTC
export POCL_CACHE_DIR MESA_SHADER_CACHE_DIR XDG_CACHE_HOME XDG_CONFIG_HOME TMPDIR LC_ALL TZ
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES POCL_AFFINITY CDPATH
mkdir -p "$work/cache/mesa" "$work/config" "$work/tmp" "$work/d"
: >"$work/out"
: >"$work/err"
cd "$work/d" || exit 1
exec </dev/null
what=
status=0
passed=0
failed=0
started=
running=
cleanups=
ended=

# --- The end ---------------------------------------------------------------------------------------------------------
h_leave() {
    h_status=$?
    trap - EXIT
    # shellcheck disable=SC2086 # one word each
    stop $started
    eval "$cleanups"
    cd /
    if [ -n "${COX_KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
    if [ -z "$ended" ]; then
        echo "FAILED: the script did not come to its end (status $h_status)"
        [ $h_status -ne 0 ] || h_status=1
    fi
    exit $h_status
}
trap h_leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

at_exit() { cleanups="$1; $cleanups"; }

finish() {
    ended=yes
    echo "$passed passed, $failed failed"
    [ $((passed + failed)) -gt 0 ] || echo "FAILED: nothing was checked"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
    exit
}

skip() { # WHY
    ended=yes
    echo "skipped, because $1"
    [ $((passed + failed)) -eq 0 ] || echo "$passed passed, $failed failed"
    [ $failed -eq 0 ] || exit 1
    exit 77
}

leave_out() { echo "$1: skipped, because $2"; }

need() { # PROGRAM...
    for h_program; do
        command -v "$h_program" >/dev/null || skip "$h_program is missing"
    done
}

need_device() {
    "$bin/cox-devices" >"$work/out" 2>"$work/err" || ! grep -q 'no OpenCL' "$work/err" ||
        skip "this machine has no OpenCL device"
}

clean() {
    cd "$work" || exit 1
    rm -rf d
    mkdir d
    cd d || exit 1
}

# --- Checks ----------------------------------------------------------------------------------------------------------
pass() { passed=$((passed + 1)); }

fail() { # TEXT
    failed=$((failed + 1))
    echo "FAILED: ${what:+$what: }$1"
    for h_stream in out err; do
        sed "s/^/    $h_stream: /" "$work/$h_stream" | head -n 30 | cut -c 1-300
    done
}

check() { # WHAT COMMAND...
    h_about=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        pass
    else
        fail "$h_about"
        sed 's/^/    /' "$work/log" | head -n 20 | cut -c 1-300
    fi
}

refute() { # WHAT COMMAND...
    h_about=$1
    shift
    if "$@" >"$work/log" 2>&1; then fail "$h_about"; else pass; fi
}

expect_status() { # STATUS WHAT COMMAND...
    h_expected=$1
    what=$2
    shift 2
    status=0
    "$@" >"$work/out" 2>"$work/err" || status=$?
    if [ "$status" -eq "$h_expected" ]; then pass; else fail "status $status instead of $h_expected"; fi
}

run() { # STATUS WHAT ARGS...
    h_expected=$1
    h_about=$2
    shift 2
    expect_status "$h_expected" "$h_about" program "$@"
}

prints() { # PATTERN WHAT ARGS...
    h_line=$1
    h_about=$2
    shift 2
    expect_status 0 "$h_about" program "$@"
    contains out "$h_line"
}

denies() { # STATUS PATTERN WHAT ARGS...
    h_expected=$1
    h_why=$2
    h_about=$3
    shift 3
    expect_status "$h_expected" "$h_about" program "$@"
    contains err "$h_why"
}

h_file() { # NAME: sets h_path
    case $1 in
    out | err) h_path=$work/$1 ;;
    *) h_path=$1 ;;
    esac
}

contains() { # FILE PATTERN...
    h_file "$1"
    h_name=$1
    shift
    for h_pattern; do
        if grep -aqE -e "$h_pattern" "$h_path"; then pass; else fail "no '$h_pattern' in its $h_name"; fi
    done
}

lacks() { # FILE PATTERN...
    h_file "$1"
    h_name=$1
    shift
    [ -r "$h_path" ] || fail "there is no $h_name"
    for h_pattern; do
        if grep -aqE -e "$h_pattern" "$h_path"; then
            fail "'$h_pattern' in its $h_name: $(grep -aoE -e ".{0,60}$h_pattern.{0,60}" "$h_path" | head -n 2)"
        else
            pass
        fi
    done
}

counts() { # NUMBER FILE PATTERN
    h_file "$2"
    h_found=$(grep -acE -e "$3" "$h_path")
    if [ "${h_found:-0}" -eq "$1" ]; then pass; else fail "'$3' matches $h_found lines instead of $1 of its $2"; fi
}

equal() { # ACTUAL EXPECTED [WHAT]
    if [ "$1" = "$2" ]; then pass; else fail "${3:+$3: }'$1' is not '$2'"; fi
}

differ() { # ONE OTHER [WHAT]: the strings differ, and the first is not empty
    if [ "$1" != "$2" ] && [ -n "$1" ]; then pass; else fail "${3:+$3: }both are '$1'"; fi
}

same() { # FILE FILE [WHAT]
    if cmp -s "$1" "$2"; then pass; else fail "${3:+$3: }$(cmp "$1" "$2" 2>&1)"; fi
}

# --- Processes -------------------------------------------------------------------------------------------------------
owned() { started="$started $1"; } # PID

start() { # COMMAND...
    (with_default_signals "$@") >"$work/out" 2>"$work/err" &
    pid=$!
    running=$pid
    owned $pid
}

# Whether this is a child of this shell and has not ended. The number of an old child may belong to another process
# now.
h_runs() { grep -q "^PPid:[^0-9]*$$\$" "/proc/$1/status" 2>/dev/null && ! grep -qs '^State:[^A-Z]*Z' "/proc/$1/status"; }
gone() { ! h_runs "$1"; }

wait_until() { # SECONDS WHAT COMMAND...
    h_tries=$(($1 * 20))
    h_awaited=$2
    shift 2
    until "$@" >"$work/log" 2>&1; do
        if [ -n "$running" ] && gone "$running" && ! "$@" >"$work/log" 2>&1; then
            fail "the program has ended before this: $h_awaited"
            return 1
        elif [ $h_tries -eq 0 ]; then
            fail "timed out waiting for this: $h_awaited"
            return 1
        fi
        h_tries=$((h_tries - 1))
        sleep 0.05
    done
    pass
}

ends() { # PID SECONDS
    running= # the end is what this waits for
    wait_until "$2" "the end of process $1" gone "$1" || kill -KILL "$1"
    status=0
    wait "$1" 2>/dev/null || status=$?
}

stop() { # PID...
    for h_pid; do
        ! h_runs "$h_pid" || kill -KILL "$h_pid"
        wait "$h_pid" 2>/dev/null
        [ "$running" != "$h_pid" ] || running=
    done
}

# This shell has signal handlers, which a child process keeps until it runs the program.
catches() { # PID SIGNAL
    [ "$(readlink "/proc/$1/exe")" != "$(readlink "/proc/$$/exe")" ] || return 1
    h_mask=$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$1/status" 2>/dev/null)
    [ $((0x${h_mask:-0} >> ($2 - 1) & 1)) -eq 1 ]
}
