#!/bin/sh
# Tests of the session database. They check what cox-lab replay prints and refuses. The queries in
# docs/reference/session-db.md must work, and an interrupted recording must be kept. Usage:
#   sh lab_replay.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/lab.sh"

denies 2 "one session database is needed" "no database" replay
run 2 "two databases" replay a.db b.db
run 2 "an unknown option" replay --fast a.db
denies 2 "unknown policy 'fastest'" "an unknown policy" replay --policy fastest a.db
run 2 "no policy at all" replay --policy , a.db
for number in 0 -1 x 1x ''; do
    denies 2 "run '$number': must be a number from 1 to 2147483647" "run '$number'" replay --run "$number" a.db
done
prints "--decisions" "help" replay --help

denies 1 "none.db: No such file" "no such file" replay "$work/none.db"
check "a database was made" [ ! -e "$work/none.db" ]
denies 1 "is a directory" "a folder" replay "$work"
echo "no database at all, but a text of more than some bytes" >"$work/text.db"
denies 1 "not an SQLite database" "a text" replay "$work/text.db"
denies 1 "not an SQLite database" "recording into a text" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/text.db"
contains "$work/text.db" "no database at all"
run 1 "recording where there is no folder" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/no/x.db"
contains err "No such file"

db=$work/session.db
run 0 "recording a simulation" sim --scenario step-2,energy-2 --policy adaptive,last-frame,hguided --seeds 1 --record "$db"
run 0 "replay" replay --run 1 "$db"
contains out "^run 1, step-2: conditions of 3 sessions of all policies" "^  device 1  iGPU: [0-9.]+ us \\+ [0-9.]+ us per row"
contains out "^ewma +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +- +- +-$" "^last-frame( +[0-9.]+){6} +(0\\.9[5-9]|1\\.0[0-4])[0-9]$"
lacks out "splits invalid" "unreliable"
run 0 "replay of chosen policies" replay --run 1 --policy hguided,last-frame --base last-frame --csv "$db"
contains out "^run,base,policy,frames,mean_us" "^1,last-frame,hguided,400,"
contains out "^1,last-frame,last-frame,400,.*,(0\\.99|1\\.00)[0-9]*,(0\\.99|1\\.00)[0-9]*,0$"
lacks out adaptive
run 0 "replay as JSON" replay --run 1 --policy adaptive --json "$db"
contains out '"fidelity": (0\.9[5-9]|1\.0[0-4])' '"policy": "adaptive"'
prints "^run 2, energy-2" "the last run is the default" replay --policy adaptive "$db"
denies 1 "no run 9" "a run that is not there" replay --run 9 "$db"
denies 1 "run 2 has no session of policy 'mean10'" "a base that was not recorded" replay --base mean10 "$db"
for run_number in 1 2; do
    run 0 "the same decisions" replay --run $run_number --decisions "$db"
    contains out "adaptive: 400 splits, [0-9]+ grants: all the same" "hguided: 400 splits, [0-9]+ grants: all the same"
done
prints "^[0-9]+,last-frame,1,1,400,0,0$" "decisions as CSV" replay --run 1 --decisions --csv --policy last-frame "$db"
run 0 "decisions as JSON" replay --run 1 --decisions --json "$db"
contains out '"policy": "hguided", "taped": true, "complete": true, "splits": 400'
what="a full disk"
"$lab" replay --csv "$db" >/dev/full 2>"$work/err"
equal $? 1 "status"
contains err "standard output: No space left on device"
ln -s session.db "$work/link.db"
run 0 "reading through a link" replay --policy single "$work/link.db"
denies 1 "symbolic link" "recording through a link" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/link.db"

if [ -z "$sqlite" ]; then
    leave_out "the queries of docs/reference/session-db.md, an interrupted recording" "there is no sqlite3"
    finish
fi

# Every query of the page returns at least one row.
awk -v work="$work" '/^```sql$/ {n++; on = 1; next} /^```$/ {on = 0} on {print >(work "/query" n ".sql")}' \
    "$source/docs/reference/session-db.md"
queries=0
for query in "$work"/query*.sql; do
    queries=$((queries + 1))
    # shellcheck disable=SC2094
    expect_status 0 "$(head -n 1 "$query")" sqlite3 -readonly "$db" <"$query"
    check "no answer" [ -s "$work/out" ]
    equal "$(cat "$work/err")" ""
done
what="docs/reference/session-db.md"
check "$queries queries instead of 3 or more" [ "$queries" -ge 3 ]
# The page names every table and column.
for name in $(sqlite3 "$db" "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'
    UNION SELECT c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')"); do
    check "$name is not described" grep -qw "$name" "$source/docs/reference/session-db.md"
done

# Texts from a database are made safe for a terminal.
cp "$db" "$work/steers.db"
sqlite3 "$work/steers.db" "UPDATE device SET name = char(27) || ']0;x' || char(7) || x'ff'; UPDATE run SET kernel = 'k' || char(27, 155);
    UPDATE session SET policy = 'p' || char(27) WHERE policy = 'last-frame';
    UPDATE call SET answer = answer || char(27) || '[2J' WHERE kind = 'split'"
for way in "" --csv --json --decisions "--base p"; do
    "$lab" replay --run 1 $way "$work/steers.db" >"$work/out" 2>"$work/err"
    what="control bytes of a database, '$way'"
    refute "they reach the terminal" LC_ALL=C grep -q '[^ -~]' "$work/out" "$work/err"
done
"$lab" replay --run 1 "$work/steers.db" >"$work/out" 2>"$work/err"
contains out 'x1b]0;x.x07.xff'
sqlite3 "$work/steers.db" "UPDATE call SET frame = -1"
run 1 "a tape of a frame below none" replay --run 1 "$work/steers.db"
refute "SQL in a message" grep -q ifnull "$work/err"

# What cannot be replayed is named, and the rest is replayed.
cp "$db" "$work/holes.db"
sqlite3 "$work/holes.db" "DELETE FROM frame WHERE frame BETWEEN 1 AND 398 AND session IN (SELECT session FROM session WHERE run = 1
    AND policy = 'last-frame'); DELETE FROM frame WHERE session IN (SELECT session FROM session WHERE run = 1 AND policy = 'hguided')"
run 0 "a session of few frames and one of none" replay --run 1 "$work/holes.db"
contains out "^run 1, step-2: conditions of 1 session of all policies" "^adaptive( +[0-9.]+){7}"
contains err "holes.db: session [0-9]+, last-frame: skipped, because it has only 2 frames up to frame 399"
contains err "holes.db: session [0-9]+, hguided: skipped, because it has no frames"
what="one line for each"
equal "$(wc -l <"$work/err")" 2
run 0 "what is left out, as CSV" replay --run 1 --csv "$work/holes.db"
lacks out "skipped"
run 0 "decisions of what is left out" replay --run 1 --decisions "$work/holes.db"
contains out "last-frame: 400 splits, 0 grants: all the same"
run 1 "nothing but what is left out" replay --run 1 --base last-frame "$work/holes.db"
contains err "run 1 has no session of policy 'last-frame' that can be replayed"

# A changed measurement changes decisions, and replay says so.
cp "$db" "$work/changed.db"
sqlite3 "$work/changed.db" "UPDATE call SET wall_ns = wall_ns * 3 WHERE kind = 'observe' AND frame = 50 AND device = 0"
run 3 "changed measurements" replay --run 1 --decisions --policy last-frame "$work/changed.db"
contains out "different, first in frame 51" "recorded: why="
sqlite3 "$work/changed.db" "PRAGMA user_version = 7"
denies 1 "version 7; this program supports version 1" "another version" replay "$work/changed.db"
run 1 "recording into another version" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/changed.db"
contains err "version 7; this program supports version 1"
sqlite3 "$work/other.db" "CREATE TABLE t(x)"
denies 1 "another program" "another program's database" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/other.db"
head -c 60000 "$db" >"$work/half.db"
denies 1 "damaged" "half a database" replay "$work/half.db"

# Killed in the middle. The recorded frames can be read while it runs and afterwards.
db=$work/killed.db
frames() { sqlite3 -readonly "$db" "SELECT count(*) FROM frame$1"; }
recorded() { [ "$(frames '')" -gt 0 ]; }
what="a recording that is killed"
start "$lab" sim --scenario step-2 --record "$db" --seeds 1 --first-seed 3 --frames 8000
wait_until 300 "frames to be seen while it runs" recorded
seen=$(frames '')
stop "$pid"
# A policy's session may have begun by then, or not.
"$lab" replay --policy last-frame "$db" >"$work/out" 2>"$work/err"
status=$?
check "replay of what is left of it: status $status" [ $status -le 1 ]
after=$(frames " WHERE EXISTS (SELECT 1 FROM band WHERE band.session = frame.session AND band.frame = frame.frame)")
check "$after frames instead of $seen or more" [ "${after:-0}" -ge "$seen" ]
holds 'PRAGMA quick_check; SELECT max(finished) FROM run' "ok
0"
finish
