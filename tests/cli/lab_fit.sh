#!/bin/sh
# cox-lab fit: what it prints, writes and refuses.
#   sh lab_fit.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"

denies 2 "missing session database" "no database" fit
run 2 "two databases" fit a.db b.db
run 2 "an unknown option" fit --fast a.db
denies 2 "must be a number from 1" "run 0" fit --run 0 a.db
run 2 "no seeds" fit --seeds 0 a.db
prints "--model" "help" fit --help

denies 1 "none.db: No such file" "no such file" fit "$work/none.db"
echo "no database at all, but a text of more than some bytes" >"$work/text.db"
denies 1 "not an SQLite database" "a text" fit "$work/text.db"

db=$work/session.db
run 0 "recording" sim --scenario laptop-2 --policy ewma,last-frame,hguided --seeds 1 --record "$db"
run 0 "fit" fit --seeds 3 -o "$work/fitted.json" "$db"
contains out "^  device 1  iGPU: [0-9.]+ us \\+ [0-9.]+ us per row" "^  engine    [0-9.]+ us latency"
contains out "^1 frame in flight; forecast / measured" "^  ewma +[0-9.]+ +[0-9.]+ +(0\\.9|1\\.0)"
contains out "^order of the simple policies: "
run 0 "the scenario that it wrote" sim --scenario "$work/fitted.json" --policy ewma,last-frame --seeds 1
contains out "^fitted: like run 1 of "
run 0 "with a model of the levels" fit --seeds 1 --model -o "$work/model.json" "$db"
refute "a model has no traces" grep -q trace "$work/model.json"
lacks out "warning" "changed"
if [ -n "$sqlite" ]; then
    cp "$db" "$work/other.db"
    sqlite3 "$work/other.db" "UPDATE frame SET period_ns = 2 * period_ns WHERE session IN
        (SELECT session FROM session WHERE policy = 'ewma')"
    run 0 "a policy that was twice as slow" fit --seeds 2 "$work/other.db"
    contains out "^  ewma .* \\*\$" "^warning: the forecast of ewma is [45][0-9] % off; do not judge it by this scenario"
    lacks out "forecast of last-frame is"
    run 3 "the same with --check" fit --seeds 2 --check "$work/other.db"

    cp "$db" "$work/other.db"
    sqlite3 "$work/other.db" "UPDATE call SET answer = replace(answer, 'why=', 'why=9') WHERE kind = 'split' AND session IN
        (SELECT session FROM session WHERE policy = 'ewma')"
    run 0 "a policy that decided otherwise" fit --seeds 2 "$work/other.db"
    contains out "^  ewma .* changed\$" "^changed: the policy decides otherwise than when it was recorded"
    lacks out "^  last-frame .* changed"
fi

denies 1 "no run 9" "a run that is not there" fit --run 9 "$db"
denies 1 "No such file" "a file that cannot be written" fit --seeds 1 -o "$work/no/x.json" "$db"
run 0 "recording hardly anything" sim --scenario laptop-2 --policy ewma --seeds 1 --frames 4 --record "$db"
denies 1 "fewer than 16 frames" "too few frames" fit "$db"
finish
