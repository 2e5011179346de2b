#!/bin/sh
# cox-lab fit: what it prints, writes and refuses.   sh lab_fit.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"

run 2 "no database" fit
shows err "needs a session database"
run 2 "two databases" fit a.db b.db
run 2 "an unknown option" fit --fast a.db
run 2 "run 0" fit --run 0 a.db
shows err "must be a number from 1"
run 2 "no seeds" fit --seeds 0 a.db
run 0 "help" fit --help
shows out "--model"

run 1 "no such file" fit "$work/none.db"
shows err "none.db: No such file"
echo "no database at all, but a text of more than some bytes" >"$work/text.db"
run 1 "a text" fit "$work/text.db"
shows err "no SQLite database"

db=$work/session.db
run 0 "recording" sim --scenario laptop-2 --policy ewma,last-frame,hguided --seeds 1 --record "$db"
run 0 "fit" fit --seeds 3 -o "$work/fitted.json" "$db"
shows out "^  device 1  iGPU: [0-9.]+ us \\+ [0-9.]+ us a row"
shows out "^  engine    [0-9.]+ us late"
shows out "^1 frame in flight; forecast over measured"
shows out "^  ewma +[0-9.]+ +[0-9.]+ +(0\\.9|1\\.0)"
shows out "^the order of the simple policies: "
run 0 "the scenario that it wrote" sim --scenario "$work/fitted.json" --policy ewma,last-frame --seeds 1
shows out "^fitted: like run 1 of "
run 0 "with a model of the levels" fit --seeds 1 --model -o "$work/model.json" "$db"
grep -q trace "$work/model.json" && fail "a model has no traces" || pass
run 1 "a run that is not there" fit --run 9 "$db"
shows err "there is no run 9"
run 1 "a file that cannot be written" fit --seeds 1 -o "$work/no/x.json" "$db"
shows err "No such file"
run 0 "recording hardly anything" sim --scenario laptop-2 --policy ewma --seeds 1 --frames 4 --record "$db"
run 1 "too few frames" fit "$db"
shows err "fewer than 16 frames"
ended
