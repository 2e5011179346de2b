# Running cox-lab and judging what it says: sourced by cli/lab_*.sh, with their arguments BIN_DIR SOURCE_DIR. `verb` is the
# command to run, if it is always the same; what was printed is in $work/out and $work/err; `passed` and `failed` count.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # what the tests use
lab=$(cd "$1" && pwd)/cox-lab
source=$(cd "$2" && pwd)
if [ ! -x "$lab" ]; then
    echo "skipped, because cox-lab is not built (Jansson or SQLite is missing)"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: >"$work/out"
: >"$work/err"
verb=
what=
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() { # TEXT
    failed=$((failed + 1))
    echo "FAILED: $what: $1"
    sed 's/^/    out: /' "$work/out" | head -n 30 | cut -c 1-300
    sed 's/^/    err: /' "$work/err" | head -n 20 | cut -c 1-300
}

# run STATUS NAME ARGS...: it ends with that status.
run() {
    expected=$1
    what=$2
    shift 2
    # shellcheck disable=SC2086 # no verb is no argument
    "$lab" $verb "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    if [ "$status" -eq "$expected" ]; then pass; else fail "status $status instead of $expected"; fi
}

# shows FILE PATTERN, lacks FILE PATTERN: whether a line matches.
shows() { if grep -qE -e "$2" "$work/$1"; then pass; else fail "no '$2' in its $1"; fi; }
lacks() { if grep -qaE -e "$2" "$work/$1"; then fail "'$2' in its $1"; else pass; fi; }

# ended: the last command of a test.
ended() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
