#!/bin/sh
# cox-lab merge loses and changes nothing. An input that does not fit is refused completely. A report compares the
# machines.
#   sh lab_merge.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
verb=merge
expect_status 0 "a session" "$lab" sim --scenario step-2 --seeds 1 --frames 50 --policy adaptive,chunks --record a.db
expect_status 0 "another session" "$lab" sim --scenario step-3 --seeds 2 --frames 60 --policy adaptive,ewma --record b.db
cp a.db a.before
cp b.db b.before

prints "Usage: cox-lab merge" "help" --help
run 2 "nothing" -o all.db
denies 2 "-o FILE" "no output" a.db
run 2 "no such option" a.db -o all.db --fast

prints '^a.db: 1 run$' "two" a.db b.db -o all.db
run 0 "and one of them again" a.db -o all.db
same a.db a.before
same b.db b.before

# figures DATABASE RUN: the figures of a run, without the numbers that differ between runs.
figures() {
    "$lab" report "$1" --run "$2" --json 2>"$work/err" | sed -E 's/"run": *[0-9]+/"run": 0/g; s/"database": *"[^"]*"/"database": ""/'
}
for pair in "a 1" "b 2" "a 3"; do
    what="figures of $pair"
    from=${pair% *}
    figures all.db "${pair#* }" >figures.all
    figures "$from.db" 1 >figures.from
    check "there are none" [ -s figures.all ]
    same figures.from figures.all
done
if [ "$sqlite" ]; then
    what='rows'
    rows() {
        for table in $(sqlite3 "$1" "SELECT name FROM sqlite_master WHERE type = 'table'"); do
            [ "$table" = reason ] || echo "$table $(sqlite3 "$1" "SELECT count(*) FROM \"$table\"")"
        done
    }
    { rows a.db; rows b.db; rows a.db; } | awk '{ n[$1] += $2 } END { for (t in n) print t, n[t] }' | sort >sum
    rows all.db | sort >all
    check "tables with rows" [ "$(awk '$2 > 0' all | wc -l)" -gt 10 ]
    check "rows are lost" diff sum all
    equal "$(sqlite3 all.db "PRAGMA integrity_check; PRAGMA foreign_key_check")" ok
    sqlite3 all.db "UPDATE run SET source = 'devices', host = CASE run WHEN 1 THEN 'alpha' ELSE '<b>eta' END"
    expect_status 0 "the report" "$lab" report all.db -o all.html
    contains all.html '<td>alpha</td>' '<td>&lt;b&gt;eta</td>'
    cp a.db other.db
    sqlite3 other.db "PRAGMA user_version = 4"
    denies 1 'other.db: has session database version 4' "another version" b.db other.db -o new.db
    check 'a database was begun' [ ! -e new.db ]
    cp a.db orphans.db
    sqlite3 orphans.db "DELETE FROM session"
    denies 1 'b.db: UNIQUE constraint failed: frame.session' "frames without sessions" orphans.db b.db -o new.db
fi

# Refused, and nothing created or added.
echo text >text.db
denies 1 'text.db.*not an SQLite database' "no database" a.db text.db -o none.db
check 'a database was begun' [ ! -e none.db ]
run 1 "one that is not there" missing.db -o none.db
denies 1 'is both an input and the output' "into itself" all.db -o all.db
ln -s all.db link.db
run 1 "into itself by a link" link.db -o all.db
"$lab" report all.db --json 2>/dev/null | grep -c '"run"' >count
run 0 "as before" b.db -o again.db
finish
