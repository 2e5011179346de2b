#!/bin/sh
# cox-lab merge: nothing is lost or changed by it, what does not fit is refused whole, and a report compares the machines.
#   sh lab_merge.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
# shellcheck source=tests/support/lab.sh
. "$(dirname "$0")/../support/lab.sh"
verb=merge
cd "$work" || exit 1
"$lab" sim --scenario step-2 --seeds 1 --frames 50 --policy adaptive,chunks --record a.db >record.out 2>&1 &&
    "$lab" sim --scenario step-3 --seeds 2 --frames 60 --policy adaptive,ewma --record b.db >record.out 2>&1 ||
    { cat record.out; echo "FAILED: no simulated session"; exit 1; }
cp a.db a.before
cp b.db b.before

run 0 "help" --help
shows out "Usage: cox-lab merge"
run 2 "nothing" -o all.db
run 2 "no output" a.db
shows err "-o FILE"
run 2 "no such option" a.db -o all.db --fast

run 0 "two" a.db b.db -o all.db
shows out '^a.db: 1 run$'
run 0 "and one of them again" a.db -o all.db
cmp -s a.db a.before && cmp -s b.db b.before && pass || fail "a database that was read is not as before"

# figures DATABASE RUN: of a run, without what tells runs apart.
figures() {
    "$lab" report "$1" --run "$2" --json 2>"$work/err" | sed -E 's/"run": *[0-9]+/"run": 0/g; s/"database": *"[^"]*"/"database": ""/'
}
for pair in "a 1" "b 2" "a 3"; do
    what="figures of $pair"
    from=${pair% *}
    if [ -n "$(figures all.db "${pair#* }")" ] && [ "$(figures "$from.db" 1)" = "$(figures all.db "${pair#* }")" ]; then
        pass
    else
        fail "they have changed"
    fi
done
if command -v sqlite3 >/dev/null; then
    what='rows'
    rows() {
        for table in $(sqlite3 "$1" "SELECT name FROM sqlite_master WHERE type = 'table'"); do
            [ "$table" = reason ] || echo "$table $(sqlite3 "$1" "SELECT count(*) FROM \"$table\"")"
        done
    }
    { rows a.db; rows b.db; rows a.db; } | awk '{ n[$1] += $2 } END { for (t in n) print t, n[t] }' | sort >sum
    rows all.db | sort >all
    if [ "$(awk '$2 > 0' all | wc -l)" -gt 10 ] && cmp -s sum all; then pass; else fail "$(diff sum all)"; fi
    sqlite3 all.db "PRAGMA integrity_check; PRAGMA foreign_key_check" >sound
    [ "$(cat sound)" = ok ] && pass || fail "$(cat sound)"
    sqlite3 all.db "UPDATE run SET source = 'devices', host = CASE run WHEN 1 THEN 'alpha' ELSE '<b>eta' END"
    "$lab" report all.db -o all.html >"$work/out" 2>"$work/err" || fail 'no report'
    what='the report'
    grep -q '<td>alpha</td>' all.html && grep -q '<td>&lt;b&gt;eta</td>' all.html && pass || fail 'it does not name the machines'
    { cat "$source/examples/lab/store/schema.sql" "$source/examples/lab/store/schema_4.sql" &&
        echo "PRAGMA user_version = 4;"; } | sqlite3 old.db
    run 1 "an older version" b.db old.db -o new.db
    shows err 'old.db: is of version 4 of the schema'
    [ ! -e new.db ] && pass || fail 'a database was begun'
fi

# Refused, and nothing begun or added.
echo text >text.db
run 1 "no database" a.db text.db -o none.db
shows err 'text.db.*no SQLite database'
[ ! -e none.db ] && pass || fail 'a database was begun'
run 1 "one that is not there" missing.db -o none.db
run 1 "into itself" all.db -o all.db
shows err 'is the database that it is to be merged into'
ln -s all.db link.db
run 1 "into itself by a link" link.db -o all.db
"$lab" report all.db --json 2>/dev/null | grep -c '"run"' >count
run 0 "as before" b.db -o again.db
ended
