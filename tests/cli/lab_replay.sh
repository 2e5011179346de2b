#!/bin/sh
# The session database from outside: what cox-lab replay prints and refuses; the queries of docs/reference/session-db.md work; an
# interrupted recording is kept.   sh lab_replay.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"

run 2 "no database" replay
shows err "one session database is needed"
run 2 "two databases" replay a.db b.db
run 2 "an unknown option" replay --fast a.db
run 2 "an unknown policy" replay --policy fastest a.db
shows err "no policy 'fastest'"
run 2 "no policy at all" replay --policy , a.db
for number in 0 -1 x 1x ''; do
    run 2 "run '$number'" replay --run "$number" a.db
    shows err "run must be a number from 1 to 2147483647, not '$number'"
done
run 0 "help" replay --help
shows out "--decisions"

run 1 "no such file" replay "$work/none.db"
shows err "none.db: No such file"
[ ! -e "$work/none.db" ] && pass
run 1 "a folder" replay "$work"
shows err "it is a directory"
echo "no database at all, but a text of more than some bytes" >"$work/text.db"
run 1 "a text" replay "$work/text.db"
shows err "no SQLite database"
run 1 "recording into a text" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/text.db"
shows err "no SQLite database"
grep -q "no database at all" "$work/text.db" && pass
run 1 "recording where there is no folder" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/no/x.db"
shows err "No such file"

db=$work/session.db
run 0 "recording a simulation" sim --scenario step-2,energy-2 --policy adaptive,last-frame,hguided --seeds 1 --record "$db"
run 0 "replay" replay --run 1 "$db"
shows out "^run 1, step-2: what 3 sessions of all policies met"
shows out "^  device 1  iGPU: [0-9.]+ us \\+ [0-9.]+ us a row"
shows out "^ewma +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +- +- +-$"
shows out "^last-frame( +[0-9.]+){6} +(0\\.9[5-9]|1\\.0[0-4])[0-9]$"
lacks out "splits refused"
lacks out "not to be relied"
run 0 "replay of chosen policies" replay --run 1 --policy hguided,last-frame --base last-frame --csv "$db"
shows out "^run,base,policy,frames,mean_us"
shows out "^1,last-frame,hguided,400,"
shows out "^1,last-frame,last-frame,400,.*,(0\\.99|1\\.00)[0-9]*,(0\\.99|1\\.00)[0-9]*,0$"
lacks out adaptive
run 0 "replay as JSON" replay --run 1 --policy adaptive --json "$db"
shows out '"fidelity": (0\.9[5-9]|1\.0[0-4])'
shows out '"policy": "adaptive"'
run 0 "the last run is the default" replay --policy adaptive "$db"
shows out "^run 2, energy-2"
run 1 "a run that is not there" replay --run 9 "$db"
shows err "there is no run 9"
run 1 "a base that was not recorded" replay --base mean10 "$db"
shows err "run 2 has no session of policy 'mean10'"
for run_number in 1 2; do
    run 0 "the same decisions" replay --run $run_number --decisions "$db"
    shows out "adaptive: 400 splits, [0-9]+ grants: all the same"
    shows out "hguided: 400 splits, [0-9]+ grants: all the same"
done
run 0 "decisions as CSV" replay --run 1 --decisions --csv --policy last-frame "$db"
shows out "^[0-9]+,last-frame,1,1,400,0,0$"
run 0 "decisions as JSON" replay --run 1 --decisions --json "$db"
shows out '"policy": "hguided", "taped": true, "complete": true, "splits": 400'
"$lab" replay --csv "$db" >/dev/full 2>"$work/err"
status=$?
what="a full disk"
if [ $status -eq 1 ]; then pass; else fail "status $status instead of 1"; fi
shows err "cannot be written"
ln -s session.db "$work/link.db"
run 0 "reading through a link" replay --policy single "$work/link.db"
run 1 "recording through a link" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/link.db"
shows err "symbolic link"

if ! command -v sqlite3 >/dev/null; then
    echo "skipped, because there is no sqlite3: the queries of docs/reference/session-db.md, interrupted recording"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] || exit 1
    exit 0
fi

# Every query of the page has an answer, of at least one row.
awk -v work="$work" '/^```sql$/ {n++; on = 1; next} /^```$/ {on = 0} on {print >(work "/query" n ".sql")}' \
    "$source/docs/reference/session-db.md"
queries=0
for query in "$work"/query*.sql; do
    what="$(head -n 1 "$query")"
    queries=$((queries + 1))
    if sqlite3 -readonly "$db" <"$query" >"$work/out" 2>"$work/err" && [ -s "$work/out" ] && [ ! -s "$work/err" ]; then
        pass
    else
        fail "no answer"
    fi
done
what="docs/reference/session-db.md"
if [ "$queries" -ge 8 ]; then pass; else fail "$queries queries instead of 8 or more"; fi
# It names every table and column.
for name in $(sqlite3 "$db" "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'
    UNION SELECT c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')"); do
    if grep -qw "$name" "$source/docs/reference/session-db.md"; then pass; else fail "$name is not described"; fi
done

# What a database says is made fit for a terminal.
cp "$db" "$work/steers.db"
sqlite3 "$work/steers.db" "UPDATE device SET name = char(27) || ']0;x' || char(7) || x'ff'; UPDATE run SET kernel = 'k' || char(27, 155);
    UPDATE session SET policy = 'p' || char(27) WHERE policy = 'last-frame';
    UPDATE call SET answer = answer || char(27) || '[2J' WHERE kind = 'split'"
for way in "" --csv --json --decisions "--base p"; do
    # shellcheck disable=SC2086 # words, or none
    "$lab" replay --run 1 $way "$work/steers.db" >"$work/out" 2>"$work/err"
    what="control bytes of a database, '$way'"
    if LC_ALL=C grep -q '[^ -~]' "$work/out" "$work/err"; then fail "they reach the terminal"; else pass; fi
done
"$lab" replay --run 1 "$work/steers.db" >"$work/out" 2>"$work/err"
shows out 'x1b]0;x.x07.xff'
sqlite3 "$work/steers.db" "UPDATE call SET frame = -1"
run 1 "a tape of a frame below none" replay --run 1 "$work/steers.db"
if grep -q ifnull "$work/err"; then fail "SQL in a message"; else pass; fi

# What cannot be replayed is named, and the rest is replayed.
cp "$db" "$work/holes.db"
sqlite3 "$work/holes.db" "DELETE FROM frame WHERE frame BETWEEN 1 AND 398 AND session IN (SELECT session FROM session WHERE run = 1
    AND policy = 'last-frame'); DELETE FROM frame WHERE session IN (SELECT session FROM session WHERE run = 1 AND policy = 'hguided')"
run 0 "a session of few frames and one of none" replay --run 1 "$work/holes.db"
shows out "^run 1, step-2: what 1 session of all policies met"
shows out "^adaptive( +[0-9.]+){7}"
shows err "holes.db: session [0-9]+, last-frame, is left out: it has 2 frames, of which the last is frame 399"
shows err "holes.db: session [0-9]+, hguided, is left out: it has no frame"
what="one line for each"
if [ "$(wc -l <"$work/err")" -eq 2 ]; then pass; else fail "$(wc -l <"$work/err") lines"; fi
run 0 "what is left out, as CSV" replay --run 1 --csv "$work/holes.db"
lacks out "left out"
run 0 "decisions of what is left out" replay --run 1 --decisions "$work/holes.db"
shows out "last-frame: 400 splits, 0 grants: all the same"
run 1 "nothing but what is left out" replay --run 1 --base last-frame "$work/holes.db"
shows err "run 1 has no session of policy 'last-frame' to be replayed"

# A changed measurement changes decisions, and is told.
cp "$db" "$work/changed.db"
sqlite3 "$work/changed.db" "UPDATE call SET wall_ns = wall_ns * 3 WHERE kind = 'observe' AND frame = 50 AND device = 0"
run 3 "changed measurements" replay --run 1 --decisions --policy last-frame "$work/changed.db"
shows out "different, first in frame 51"
shows out "recorded: why="
sqlite3 "$work/changed.db" "PRAGMA user_version = 7"
run 1 "another version" replay "$work/changed.db"
shows err "version 7, this program knows version 5"
run 1 "recording into another version" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/changed.db"
shows err "version 7, this program knows version 5"
sqlite3 "$work/other.db" "CREATE TABLE t(x)"
run 1 "another program's database" sim --scenario constant-2 --seeds 1 --frames 5 --record "$work/other.db"
shows err "another program"
head -c 60000 "$db" >"$work/half.db"
run 1 "half a database" replay "$work/half.db"
shows err "damaged"

# Killed in the middle: what was recorded can be read while it runs, and afterwards.
what="a recording that is killed"
"$lab" sim --scenario many-32 --record "$work/killed.db" >/dev/null 2>&1 --seeds 1 --first-seed 3 &
pid=$!
seen=0
for _ in $(seq 1 2400); do
    frames=$(sqlite3 -readonly "$work/killed.db" "SELECT count(*) FROM frame" 2>/dev/null)
    if [ "${frames:-0}" -gt 0 ]; then
        seen=1
        break
    fi
    sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null
if [ $seen -eq 1 ]; then pass; else fail "nothing to be seen while it runs"; fi
# It may have come to a policy's session or not.
"$lab" replay --policy last-frame "$work/killed.db" >"$work/out" 2>"$work/err"
status=$?
what="replay of what is left of it"
if [ $status -le 1 ]; then pass; else fail "status $status"; fi
after=$(sqlite3 "$work/killed.db" "SELECT count(*) FROM frame WHERE EXISTS (SELECT 1 FROM band WHERE band.session =
    frame.session AND band.frame = frame.frame)")
what="what is left of it"
if [ "${after:-0}" -ge "$frames" ]; then pass; else fail "$after frames instead of $frames or more"; fi
if [ "$(sqlite3 "$work/killed.db" 'PRAGMA quick_check; SELECT max(finished) FROM run')" = "ok
0" ]; then pass; else fail "damaged, or finished"; fi

ended
