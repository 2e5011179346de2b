#!/bin/sh
# The report of cox-lab: its figures compared with SQL, what it refuses, what a hostile database cannot do, and its
# layout in Chromium.
#   sh lab_report.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
verb=report
need sqlite3

# never FILE PATTERN...: no line matches, in upper or lower case.
never() {
    file=$1
    shift
    for pattern; do
        refute "'$pattern' in $file" grep -aiE -e "$pattern" "$file"
    done
}
no_odd_number() { never "$1" '(>|[^a-z-])-?(nan|inf)([^a-z]|$)'; }
smaller() { check "$1 has $(bytes "$1") bytes" [ "$(bytes "$1")" -lt "$2" ]; } # FILE BYTES
bytes() { wc -c <"$1"; }

# occurs NUMBER FILE PATTERN: the pattern occurs this often, counting several in a line.
occurs() { equal "$(grep -oE -e "$3" "$2" | wc -l)" "$1" "'$3' in $2"; }

# refused PATTERN WHAT DATABASE: status 1, the reason in one line, no page, no other file left
refused() {
    rm -rf refused
    mkdir refused
    echo "an older report" >refused/report.html
    denies 1 "$1" "$2" "$3" -o refused/report.html
    equal "$(wc -l <"$work/err")" 1 "lines on stderr"
    equal "$(cat refused/report.html)" "an older report"
    equal "$(ls -A refused)" report.html "left behind"
}

# changed NAME SQL: a copy of the session, NAME.db, changed by this SQL.
changed() {
    cp session.db "$1.db"
    sqlite3 "$1.db" "$2" >/dev/null
}

# --- A session to report on ------------------------------------------------------------------------------------------
expect_status 0 "a simulated session" "$lab" sim --scenario step-2 --seeds 1 \
    --policy adaptive,hguided,last-frame,mean10,single --record session.db

# --- Usage -----------------------------------------------------------------------------------------------------------
denies 2 Usage "no database"
run 2 "two databases" session.db session.db
run 2 "unknown option" session.db --fast
denies 2 "'0'" "no such number of a run" session.db --run 0
run 2 "a run that is no number" session.db --run one
run 2 "an empty name" session.db -o ""
prints 'Usage: cox-lab report' "help" --help
denies 1 'no run 9' "a run that is not there" session.db --run 9 -o nine.html
check "a page without a run" [ ! -e nine.html ]

# --- The page --------------------------------------------------------------------------------------------------------
run 0 "a page beside the database" session.db
check "no session.html" [ -s session.html ]
equal "$(cat "$work/out" "$work/err")" "" "words without need"
run 0 "to standard output" session.db -o -
same "$work/out" session.html
run 0 "the only run by its number" session.db --run 1 -o named.html
same named.html session.html
denies 1 'cannot be written: No space left' "no room" session.db -o /dev/full
denies 1 'nowhere/report.html: cannot be written' "no such folder" session.db -o nowhere/report.html

# alone FILE: the page loads nothing and runs nothing
alone() {
    occurs 1 "$1" "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\""
    sed 's|xmlns="http://www.w3.org/[0-9a-z/]*"||g' "$1" >bare.html
    never bare.html '(https?:)?//[a-z0-9]' '<(script|link|img|image|iframe|object|embed|base|form|use)[ />]'
    never bare.html '(url\(|@import|javascript:)' '<[^>]* (src|srcset|on[a-z]+|style)=' 'href="[^#]'
}

# sound FILE: well-formed, loads and runs nothing, and contains no invalid number.
sound() {
    is_xml "$1"
    alone "$1"
    no_odd_number "$1"
}

what="the page"
sound session.html
occurs 1 session.html '<!DOCTYPE html>'
# Each drawing comes in two widths: three charts of comparison, and one for each of six policies. Each has its own
# title and description.
occurs 9 session.html '<svg [^>]*class="wide" role="img"'
occurs 9 session.html '<svg [^>]*class="narrow" role="img"'
occurs 18 session.html '<svg [^>]*><title>[^<]+</title><desc>[^<]+</desc>'
occurs 6 session.html '<section class="policy">'
occurs 12 session.html '<path class="area d0"'
occurs 12 session.html '<path class="area d1"'
occurs 24 session.html '<path class="line d[01]"'
occurs 16 session.html '<table '
occurs 16 session.html '<caption>'
for policy in adaptive hguided last-frame mean10 single oracle; do
    contains session.html "<h3><svg[^>]*><rect[^>]*/></svg>$policy</h3>"
done
fastest=$(sqlite3 -readonly session.db "SELECT policy FROM session JOIN frame USING (session) WHERE kind = 'policy' AND
    policy <> 'oracle' GROUP BY session ORDER BY avg(wall_ns) LIMIT 1")
contains session.html "<strong>$fastest</strong> was the fastest"

# --- Its figures, compared with SQL ----------------------------------------------------------------------------------
# One line for each row of the first table: frames|mean|p50|p99|...
sed -n '/<table class="headline/,/<\/table>/p' session.html | grep '<td' |
    sed -e 's|<tbody>||' -e 's|<tr[^>]*>||g' -e 's|<svg.*</svg>||' -e 's|</t[dh]>|;|g' -e 's|<[^>]*>||g' -e 's|;$||' \
        -e 's|^[^;]*;all frames|all frames|' >rows.html.txt
cat >rows.sql <<'SQL'
.mode list
.separator ;
CREATE TEMP TABLE policy AS SELECT session, policy FROM session WHERE kind = 'policy';
CREATE TEMP TABLE oracle AS SELECT frame, phase, wall_ns AS oracle_ns FROM frame
    WHERE session = (SELECT session FROM policy WHERE policy = 'oracle');
CREATE TEMP TABLE solo AS SELECT phase, min(ns) AS ns FROM
    (SELECT f.phase, avg(f.wall_ns) AS ns FROM session s JOIN frame f USING (session) WHERE s.kind = 'solo'
     GROUP BY s.session, f.phase) GROUP BY phase;
CREATE TEMP TABLE split AS SELECT session, frame,
    group_concat(CASE WHEN on_demand = 0 AND attempt = 0 THEN device || ':' || first_row || '+' || rows END) AS bands
    FROM (SELECT * FROM band ORDER BY session, frame, band) GROUP BY session, frame;
CREATE TEMP TABLE done AS SELECT session, frame, CASE WHEN count(*) > 1 THEN (max(t) - min(t)) / max(t) END AS spread FROM
    (SELECT session, frame, device, max(end_ns) * 1.0 AS t FROM band WHERE status = 0 AND end_ns > 0 GROUP BY 1, 2, 3)
    GROUP BY session, frame;
CREATE TEMP TABLE each AS SELECT f.session, f.frame, f.phase, f.wall_ns AS t, o.oracle_ns, s.ns AS solo_ns,
    ifnull(b.bands, '') <> lag(ifnull(b.bands, ''), 1, ifnull(b.bands, '')) OVER (PARTITION BY f.session ORDER BY f.frame)
        AS moved, d.spread, f.wall_ns * 1.0 / o.oracle_ns AS ratio
    FROM frame f JOIN policy USING (session) JOIN oracle o USING (frame) JOIN solo s ON s.phase = f.phase
    LEFT JOIN split b USING (session, frame) LEFT JOIN done d USING (session, frame);
CREATE INDEX temp.each_frame ON each(session, phase, frame);
CREATE TEMP TABLE eight AS SELECT e.session, e.phase, e.frame, e.ratio, count(*) AS n, sum(n.ratio <= 1.05) AS near
    FROM each e JOIN each n ON n.session = e.session AND n.phase = e.phase AND n.frame BETWEEN e.frame AND e.frame + 7
    GROUP BY e.session, e.phase, e.frame;
CREATE TEMP TABLE settled AS SELECT session, phase, min(frame) - (SELECT min(frame) FROM each e WHERE e.phase = eight.phase)
    AS frames FROM eight WHERE ratio <= 1.05 AND n >= 4 AND 4 * near >= 3 * n GROUP BY session, phase;
CREATE TEMP TABLE ranked AS SELECT session, phase, t, row_number() OVER (PARTITION BY session ORDER BY t) AS place,
    count(*) OVER (PARTITION BY session) AS n, row_number() OVER (PARTITION BY session, phase ORDER BY t) AS phase_place,
    count(*) OVER (PARTITION BY session, phase) AS phase_n FROM each;
CREATE TEMP TABLE row AS
SELECT v.session, v.phase, v.phase_text AS text, v.frames, v.mean_ms, v.p50_ms, v.p99_ms,
    (SELECT min(CASE WHEN 1000 * phase_place >= 999 * phase_n THEN t END) / 1e6 FROM ranked r
     WHERE r.session = v.session AND r.phase = v.phase) AS p999_ms,
    sum(e.t) * 1.0 / sum(e.oracle_ns) AS mean_oracle, v.p50_over_oracle AS p50_oracle, sum(e.t) / sum(e.solo_ns) AS mean_solo,
    v.p50_over_solo AS p50_solo, v.efficiency, avg(e.moved) * 100 AS moves, avg(e.spread) AS spread,
    ifnull(s.frames, 'never') AS settled
FROM summary v JOIN each e USING (session, phase) LEFT JOIN settled s USING (session, phase) GROUP BY v.session, v.phase;
CREATE TEMP TABLE whole AS SELECT r.session, -1, 'all frames', sum(r.frames),
    (SELECT avg(t) / 1e6 FROM each e WHERE e.session = r.session),
    (SELECT min(CASE WHEN 2 * place >= n THEN t END) / 1e6 FROM ranked e WHERE e.session = r.session),
    (SELECT min(CASE WHEN 100 * place >= 99 * n THEN t END) / 1e6 FROM ranked e WHERE e.session = r.session),
    (SELECT min(CASE WHEN 1000 * place >= 999 * n THEN t END) / 1e6 FROM ranked e WHERE e.session = r.session),
    (SELECT sum(t) * 1.0 / sum(oracle_ns) FROM each e WHERE e.session = r.session),
    sum(r.frames * r.p50_ms) / sum(r.frames * r.p50_ms / r.p50_oracle),
    (SELECT sum(t) / sum(solo_ns) FROM each e WHERE e.session = r.session),
    sum(r.frames * r.p50_ms) / sum(r.frames * r.p50_ms / r.p50_solo),
    sum(r.frames * r.p50_ms * r.efficiency) / sum(r.frames * r.p50_ms),
    (SELECT avg(moved) * 100 FROM each e WHERE e.session = r.session),
    (SELECT avg(spread) FROM each e WHERE e.session = r.session), '–' FROM row r GROUP BY r.session;
INSERT INTO row SELECT * FROM whole;
SELECT text, frames,
    printf(CASE WHEN mean_ms < 1 THEN '%.4f' WHEN mean_ms < 10 THEN '%.3f' WHEN mean_ms < 100 THEN '%.2f' ELSE '%.1f' END,
        mean_ms),
    printf(CASE WHEN p50_ms < 1 THEN '%.4f' WHEN p50_ms < 10 THEN '%.3f' WHEN p50_ms < 100 THEN '%.2f' ELSE '%.1f' END, p50_ms),
    printf(CASE WHEN p99_ms < 1 THEN '%.4f' WHEN p99_ms < 10 THEN '%.3f' WHEN p99_ms < 100 THEN '%.2f' ELSE '%.1f' END, p99_ms),
    printf(CASE WHEN p999_ms < 1 THEN '%.4f' WHEN p999_ms < 10 THEN '%.3f' WHEN p999_ms < 100 THEN '%.2f' ELSE '%.1f' END,
        p999_ms),
    printf('%.3f', mean_oracle), printf('%.3f', p50_oracle), printf('%.3f', mean_solo), printf('%.3f', p50_solo),
    printf('%.1f %%', 100 * efficiency), printf('%.1f', moves),
    CASE WHEN spread IS NULL THEN '–' ELSE printf('%.1f %%', 100 * spread) END, settled
FROM row r ORDER BY (SELECT mean_ms FROM row w WHERE w.session = r.session AND w.phase = -1), phase;
SQL
sqlite3 -readonly session.db <rows.sql >rows.sql.txt 2>sql.err || fail "the figures' SQL: $(cat sql.err)"
what="the figures"
check "$(wc -l <rows.sql.txt) rows from SQL instead of 24" [ "$(wc -l <rows.sql.txt)" -eq 24 ]
# A figure halfway between two rounded values may be rounded either way, so the last digit may differ by one.
check "not those of SQL" awk -F';' 'NR == FNR { rows[FNR] = $0; next }
    { n = split(rows[FNR], a, ";"); bad = n != NF
      for (i = 1; i <= NF && !bad; i++) {
          if (a[i] == $i) continue
          x = a[i]; y = $i; sub(/ %$/, "", x); sub(/ %$/, "", y)
          digits = length(y) - (index(y, ".") ? index(y, ".") : length(y))
          d = x - y; if (d < 0) d = -d
          if (x !~ /^-?[0-9.]+$/ || y !~ /^-?[0-9.]+$/ || !digits || d > 1.01 * 10 ^ -digits) bad = 1
      }
      if (bad) { print "    page: " rows[FNR]; print "    SQL:  " $0; failed = 1 } }
    END { exit failed || NR != 2 * FNR }' rows.html.txt rows.sql.txt

# The regret at the end of the chart, and the reasons with their counts.
what="regret"
sqlite3 -readonly session.db "WITH o AS (SELECT frame, wall_ns FROM frame WHERE session =
    (SELECT session FROM session WHERE policy = 'oracle')) SELECT printf('%.1f', sum(f.wall_ns - o.wall_ns) / 1e6)
    FROM frame f JOIN o USING (frame) WHERE session = (SELECT session FROM session WHERE policy = 'last-frame')" >regret.txt
contains session.html "<title>Regret over time</title>.*last-frame $(cat regret.txt)[,.]"
what="reasons"
sqlite3 -readonly -separator ';' session.db "SELECT r.text, count(*) FROM frame f JOIN reason r USING (reason) WHERE session =
    (SELECT session FROM session WHERE policy = 'adaptive') GROUP BY reason" >reasons.txt
check "only $(wc -l <reasons.txt) of them" [ "$(wc -l <reasons.txt)" -ge 2 ]
sed -n '/<h3>.*adaptive<\/h3>/,/<\/section>/p' session.html >adaptive.html
while IFS=';' read -r text frames; do
    contains adaptive.html "<th scope=\"row\">$text</th><td>$frames</td>"
done <reasons.txt

# --- Bad databases ---------------------------------------------------------------------------------------------------
refused 'gone.db' "no file" gone.db
: >empty.db
refused 'empty.db' "an empty file" empty.db
echo "no database at all, but a few words that are longer than the header of a database is, which has a hundred bytes" >text.db
refused 'text.db' "no database" text.db
sqlite3 foreign.db 'CREATE TABLE run(run INTEGER)'
refused 'foreign.db' "another program's database" foreign.db
changed version 'PRAGMA user_version = 6'
refused 'version' "another version" version.db
refused 'refused' "a folder" refused
sqlite3 new.db <"$source/examples/programs/lab/store/schema.sql" >new.out
refused 'no runs yet' "no run" new.db
changed frameless "DELETE FROM frame; DELETE FROM band"
refused 'no frames of a policy' "no frame" frameless.db
cp session.db short.db
truncate -s 65536 short.db
refused 'short.db' "half a database" short.db
cp session.db holes.db
size=$(($(wc -c <holes.db) / 4096))
dd if=/dev/zero of=holes.db bs=4096 seek=$((size / 3)) count=$((size / 3)) conv=notrunc 2>dd.err
refused 'holes.db' "a damaged database" holes.db
changed view "DROP TABLE reason; CREATE VIEW reason AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT i AS reason, 'for ever' AS text FROM n"
refused 'view.db' "a view that never ends" view.db

# --- What the run was measured with ------------------------------------------------------------------------------------
what="provenance"
for name in commit program_sha256 build_flags compiler scenario_sha256; do
    check "$name is not on the page" grep -qFe "$(sqlite3 -readonly session.db "SELECT value FROM setting WHERE name = '$name'")" session.html
done
changed earlier "DELETE FROM setting"
run 0 "a database of an earlier version" earlier.db
lacks earlier.html 'SHA-256' '<dt>Commit'
contains earlier.html '<dt>Recorded by'

# --- The database is never the output ---------------------------------------------------------------------------------
before=$(cksum <session.db)
ln session.db hard.db
ln -s session.db soft.db
: >session.db-wal
for page in session.db ./session.db hard.db soft.db session.db-wal session.db-journal; do
    denies 2 'the database itself' "the page over $page" session.db -o "$page"
done
rm -f session.db-wal hard.db soft.db
check "the database was changed" [ "$before" = "$(cksum <session.db)" ]

# --- Databases made by other programs ---------------------------------------------------------------------------------
cp session.db hostile.db
sqlite3 hostile.db <<'SQL'
UPDATE run SET kernel = '</style><script>alert(1)</script>', host = '"onload="alert(2)', command = '<img src=x onerror=alert(3)>',
    system = CAST(x'61ff62c0af63eda08064f4908080' AS TEXT), meter = ']]>&amp;&#0;<!--', started_at = char(8238) || 'abc' || char(27),
    columns = 9e999, granule = 'abc', in_flight = -1, deadline_ns = 9e999, finished = 'x';
UPDATE device SET name = '<b>' || char(1) || printf('%.*c', 100000, 'w'), driver = NULL, platform = x'00ff';
UPDATE phase SET text = '</text></svg><script>', end_frame = 9e999 WHERE phase = 1;
INSERT INTO phase VALUES (1, 7, 'x', 'y', NULL);
UPDATE session SET policy = '<i>' || policy || '''"' WHERE kind = 'policy' AND policy <> 'oracle';
UPDATE frame SET period_ns = 9e999 WHERE frame = 5;
UPDATE frame SET period_ns = 'text' WHERE frame = 6;
UPDATE frame SET period_ns = -1 WHERE frame = 7;
UPDATE frame SET reason = 9223372036854775807, predicted_ns = -9e999 WHERE frame = 8;
UPDATE frame SET reason = -3, phase = 99 WHERE frame = 9;
UPDATE frame SET joules = 9e999 WHERE frame = 10;
UPDATE frame SET status = -5 WHERE frame = 11;
UPDATE band SET rows = -5, end_ns = 9e999 WHERE frame = 12;
UPDATE band SET device = 77 WHERE frame = 13;
UPDATE reference SET ns = 9e999 WHERE phase = 1;
UPDATE reference SET ratios = '[<script>';
INSERT INTO disturbance VALUES (1, 0, '<u>', '</table>', -5, 9e999, 0, x'ff');
UPDATE reason SET text = '"><script>' WHERE reason = 5;
UPDATE setting SET value = '<script>alert(4)</script>' WHERE name = 'commit';
UPDATE setting SET value = x'ff00' WHERE name = 'program_sha256';
UPDATE setting SET value = '"onload="' || printf('%.*c', 100000, 'w') WHERE name = 'build_flags';
SQL
run 0 "a hostile database" hostile.db -o hostile.html
sound hostile.html
never hostile.html '<(b|u|script|img)>'
contains hostile.html '&lt;/style&gt;&lt;script&gt;alert\(1\)' '1 frame failed and is excluded'
contains hostile.html 'Artificial disturbance|bands of unknown devices'
smaller hostile.html 2000000

changed two "INSERT INTO run SELECT 2, source, started_at, version, host, system, command, kernel, columns, rows, granule,
    in_flight, frames, objective, deadline_ns, meter, NULL, NULL, 0 FROM run; INSERT INTO session VALUES (1000, 2, 'policy', 'mine', NULL,
    NULL, 0); INSERT INTO frame SELECT 1000, frame, 0, rows, start_ns, wall_ns, period_ns, 0, 0, 0, 0, 0, 0, 0, 0.25 FROM frame
    WHERE session = (SELECT min(session) FROM session WHERE kind = 'policy') AND frame < 3"
run 0 "two runs, the second interrupted in its third frame, without devices, phases and references" two.db
sound two.html
occurs 2 two.html '<article '
occurs 2 two.html '<a href="#run-'
contains two.html 'was not finished' '<td>3</td>' '<td( class="best")?>0.25</td>'
run 0 "the second alone" two.db --run 2 -o second.html
occurs 1 second.html '<article '
contains second.html 'No oracle was measured'
never second.html 'Regret over time'
sound second.html

changed passes "UPDATE pass SET name = 'a<b'; INSERT INTO pass SELECT run, 1, NULL, rows, 1 FROM pass;
    UPDATE band SET pass = 1 WHERE band = 1; INSERT INTO frame_pass SELECT session, frame, 1, 0, 2500000, 4, 7, 0, 0 FROM frame_pass;
    INSERT INTO pass SELECT run, 70, 'seventy', 1, 1 FROM pass"
run 0 "two passes" passes.db
sound passes.html
contains passes.html 'granule [0-9]+ rows; its passes: a&lt;b, pass 1</dd>'
contains passes.html 'Rows of each device in a&lt;b, per cent; it takes [0-9.]+ ms</text>'
contains passes.html 'Rows of each device in pass 1, per cent; it takes 2.500 ms</text>'
occurs 24 passes.html '<path class="area d0"'
never session.html 'Rows of each device in|its passes'
never passes.html 'seventy'

changed failed "UPDATE frame SET status = -5; DELETE FROM phase; DELETE FROM device; DELETE FROM reason"
run 0 "every frame failed" failed.db
sound failed.html
contains failed.html 'adaptive: no valid frames'
no_odd_number failed.html
for change in "UPDATE frame SET period_ns = 1" "UPDATE frame SET period_ns = 9007199254740991" "UPDATE frame SET frame = 9007199254740000 WHERE
    frame = 399" "DELETE FROM frame WHERE frame > 0" "DELETE FROM band" "UPDATE frame SET predicted_ns = 1, alternative_ns = 9e15"; do
    changed odd "$change"
    run 0 "$change" odd.db
    sound odd.html
    smaller odd.html 1000000
done

# --- While it grows, and after the recorder was killed ---------------------------------------------------------------
cp session.db growing.db
sqlite3 growing.db <<SQL >growing.out
PRAGMA journal_mode = WAL;
PRAGMA wal_autocheckpoint = 0;
UPDATE run SET host = 'in the log', source = 'devices';
BEGIN IMMEDIATE;
UPDATE run SET host = 'not yet there';
.system "$lab" report growing.db -o growing.html
COMMIT;
UPDATE run SET host = 'killed';
.system cp growing.db killed.db
.system cp growing.db-wal killed.db-wal
SQL
what="a growing database"
contains growing.html 'in the log'
never growing.html 'not yet there'
check "no log was left behind" [ -s killed.db-wal ]
run 0 "a log left behind" killed.db
contains killed.html 'on killed'
check "the log was written back by a reader" [ -s killed.db-wal ]

changed zero 'UPDATE frame SET wall_ns = 0, period_ns = 0'
run 0 "frames of no time" zero.db
no_odd_number zero.html

# --- Many frames -----------------------------------------------------------------------------------------------------
sqlite3 large.db <"$source/examples/programs/lab/store/schema.sql" >large.out
sqlite3 large.db <<'SQL'
PRAGMA synchronous = OFF;
BEGIN;
INSERT INTO run VALUES (1, 'devices', '2026-01-01T00:00:00Z', '0', 'host', 'system', 'command', 'work', 100, 1024, 8, 2, 10000,
    'throughput', 0, NULL, 1.25, 1, 1);
INSERT INTO device VALUES (1, 0, 'first', 'p', 'd', 'cpu', 'shared'), (1, 1, 'second', 'p', 'd', 'gpu', 'staged'),
    (1, 2, 'third', 'p', 'd', 'gpu', 'staged');
INSERT INTO phase VALUES (1, 0, 0, 10000, 'all of it');
INSERT INTO reference VALUES (1, 0, 'oracle', NULL, 1.2e6, NULL, NULL, 9, NULL), (1, 0, 'solo', 0, 4e6, 4e6, NULL, 9, NULL),
    (1, 0, 'solo', 1, 3e6, 3e6, NULL, 9, NULL);
INSERT INTO session WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
    SELECT i, 1, 'policy', 'policy ' || i, NULL, NULL, 0 FROM n;
INSERT INTO frame WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
    SELECT session, i, 0, 1024, i * 1500000, 1200000 + (i * 7919 + session * 104729) % 700001, 1200000 + (i * 7919 + session * 104729) % 700001,
        1200000 + (i * 104729) % 600007, 1300000, (i * 31 + session) % 19, 0, 0, 1500000, 0, NULL FROM session, n;
INSERT INTO band SELECT f.session, f.frame, d.device, d.device, 256 * d.device, 256 + 8 * ((f.frame * 13 + d.device) % 9), 0,
    f.wall_ns - d.device * 1000 * (f.frame % 97), f.wall_ns, 0, 0, 0, 0, 0, 0 FROM frame f, device d;
COMMIT;
SQL
run 0 "ten policies of ten thousand frames" large.db
sound large.html
smaller large.html 2000000
contains large.html '<td>10000</td>' '<p class="busy"><strong>The machine was busy: other programs used 1.25 processors'
contains large.html 'Other programs</dt><dd>used 1.25 processors'
never session.html 'machine was busy'
contains large.html '<th scope="colgroup" colspan="2">T ÷ T<sub>oracle'

# --- Telemetry -------------------------------------------------------------------------------------------------------
cp session.db telemetry.db
cat >telemetry.sql <<'SQL'
BEGIN;
INSERT INTO telemetry_session SELECT session, 1000000 * session FROM session;
INSERT INTO telemetry_source VALUES (1, 0, 'clock of the P cores', 'clock', 'P cores', 'MHz', 'cpu0 and 5 more'),
    (1, 1, 'clock of the E cores', 'clock', 'E cores', 'MHz', 'cpu12'), (1, 2, 'clock of GPU card1', 'clock', 'GPU card1', 'MHz', 'card1'),
    (1, 3, 'temperature of the package', 'temperature', 'package', '°C', 'zone'), (1, 4, 'power of package-0', 'power', 'package-0', 'W', 'rapl'),
    (1, 5, 'power from BAT0', 'power', 'BAT0', 'W', 'battery'), (1, 6, 'governor of the P cores', 'setting', 'P cores', '', 'governor'),
    (1, 7, 'power of nothing', 'power', 'nothing', 'W', 'none'), (1, 8, 'throttling of the package', 'throttling', 'package', 'events', 'count');
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n;
INSERT INTO telemetry SELECT 1, 0, i * 1000000, 4200 - i * 0.09 + i * 7919 % 101 FROM n;
INSERT INTO telemetry SELECT 1, 1, i * 20000000, 2800 - i + i * 7919 % 61 FROM n WHERE i < 500;
INSERT INTO telemetry SELECT 1, 2, i * 20000000, 1500 + i * 31 % 400 FROM n WHERE i < 500;
INSERT INTO telemetry SELECT 1, 3, i * 1000000, 55 + i * 0.0035 FROM n;
INSERT INTO telemetry SELECT 1, 4, i * 1000000, 28 + i * 7919 % 13 FROM n;
INSERT INTO telemetry SELECT 1, 5, i * 1000000000, 35.5 FROM n WHERE i < 10;
INSERT INTO telemetry SELECT 1, 8, i * 20000000, i / 100 FROM n WHERE i < 500;
INSERT INTO telemetry VALUES (1, 6, 0, 'powersave'), (1, 6, 500000000, 'perform<b>ance');
COMMIT;
SQL
sqlite3 telemetry.db <telemetry.sql
run 0 "telemetry" telemetry.db
sound telemetry.html
# One more drawing for each policy, and one next to the split.
occurs 16 telemetry.html '<svg [^>]*class="wide" role="img"'
occurs 16 telemetry.html '<svg [^>]*class="narrow" role="img"'
occurs 32 telemetry.html '<svg [^>]*><title>[^<]+</title><desc>[^<]+</desc>'
occurs 1 telemetry.html '<h2 class="part">Clocks, temperatures, power</h2>'
contains telemetry.html '<td colspan="5" class="text">powersave, perform&lt;b&gt;ance</td>'
contains telemetry.html 'power from BAT0</th><td>10</td><td>35.5</td><td>35.5</td><td>35.5</td><td class="text">W</td>'
contains telemetry.html 'throttling of the package</th><td>500</td><td>0.0</td><td>2.0</td><td>4.0</td><td class="text">events'
contains telemetry.html 'power of nothing</th><td>0</td><td>–</td>'
never session.html 'Clocks, temperatures'
# The means over the frames of a session, and of a device alone. A reading counts if it lies within a frame.
what="means of telemetry"
for source_of in "0 clock of the P cores" "3 temperature of the package" "4 power of package-0"; do
    mean=$(sqlite3 -readonly telemetry.db "SELECT avg(m) FROM (SELECT avg(v.value) AS m FROM session s JOIN telemetry_session o USING (session)
        JOIN frame f USING (session) JOIN telemetry v ON v.run = 1 AND v.source = ${source_of%% *} AND v.at_ns BETWEEN o.start_ns + f.start_ns
        AND o.start_ns + f.start_ns + f.wall_ns WHERE s.policy = 'hguided' GROUP BY f.frame)")
    page=$(sed -n "s/.*while hguided ran<\/title><desc>Means: [^<]*${source_of#* } \([0-9.]*\) .*/\1/p" telemetry.html | head -n 1)
    check "${source_of#* }: $page on the page, $mean by SQL" awk -v a="$mean" -v b="${page:-none}" \
        'BEGIN { exit !(b + 0 > 0 && (a - b) ^ 2 <= (b < 1000 ? 0.06 : 0.6) ^ 2) }'
done
# Implausible contents.
cp telemetry.db strange.db
sqlite3 strange.db "UPDATE telemetry_source SET kind = 'clock', name = x'ff', part = '</svg><script>' WHERE source = 5; UPDATE telemetry_source SET
    unit = x'41', origin = x'00' WHERE source = 1; UPDATE telemetry SET value = 9e999 WHERE source = 1; UPDATE telemetry SET value = 'text' WHERE
    source = 2; UPDATE telemetry SET value = 9e15 WHERE source = 3 AND at_ns < 50000000; UPDATE telemetry SET at_ns = at_ns - 9000000000000000 WHERE
    source = 4; UPDATE telemetry_session SET start_ns = -9e18 WHERE session = 3; DELETE FROM telemetry_session WHERE session = 4;
    UPDATE telemetry_source SET source = -3 WHERE source = 8; INSERT INTO telemetry_source SELECT 1, 100 + i, 'n' || i, 'power', 'p', 'W', 'o'
    FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT i FROM n)"
run 0 "strange telemetry" strange.db
sound strange.html
never strange.html '<script'

# --- In a browser ----------------------------------------------------------------------------------------------------
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$chromium" ]; then
    leave_out "how the page looks" "there is no Chromium"
    finish
fi

# browse ARGS...: Chromium with its own home folder
browse() {
    HOME=$work timeout 600 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" "$@"
}

# A script that is not part of the page. It measures the page's layout and writes the result into the page. Contrast is
# against the page, or for text in a chart against the shade of a phase. It counts letters that overlap or leave their
# chart.
cat >measure.html <<'HTML'
<pre id="layout"></pre><script>//<![CDATA[
const rgb = text => text.match(/[\d.]+/g).slice(0, 3).map(Number);
const light = c => { const l = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
const contrast = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const paper = getComputedStyle(document.body).backgroundColor;
const shade = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
shade.innerHTML = '<rect class="phase"/>';
document.body.append(shade);
const shaded = getComputedStyle(shade.firstChild).fill;
shade.remove();
const shown = [...document.querySelectorAll('svg[role=img]')].filter(s => s.getClientRects().length);
let least = 99, outside = [], overlaps = [], marks = 99;
for (const e of document.querySelectorAll('h1,h2,h3,p,li,th,td,caption,dt,dd,a,span,strong,i'))
    if (e.getClientRects().length) least = Math.min(least, contrast(getComputedStyle(e).color, paper));
for (const svg of shown) {
    const whole = svg.getBoundingClientRect(), boxes = [];
    for (const text of svg.querySelectorAll('text')) {
        const style = getComputedStyle(text), b = text.getBoundingClientRect();
        least = Math.min(least, contrast(style.fill, paper), contrast(style.fill, shaded));
        if (b.left < whole.left - 1 || b.right > whole.right + 1 || b.top < whole.top - 1 || b.bottom > whole.bottom + 1)
            outside.push(text.textContent);
        for (const o of boxes) if (b.left < o.right - 1 && o.left < b.right - 1 && b.top < o.bottom - 4 && o.top < b.bottom - 4)
            overlaps.push(text.textContent);
        boxes.push(b);
    }
    for (const line of svg.querySelectorAll('.line, .oracle'))
        marks = Math.min(marks, contrast(getComputedStyle(line).stroke, paper));
    for (const area of svg.querySelectorAll('.fill, .area'))
        marks = Math.min(marks, contrast(getComputedStyle(area).fill, paper));
}
document.getElementById('layout').textContent = [
    'charts=' + shown.length, 'kinds=' + [...new Set(shown.map(s => s.getAttribute('class')))].join('+'),
    'wide=' + (document.documentElement.scrollWidth > innerWidth), 'text=' + (least >= 4.5), 'marks=' + (marks >= 3),
    'dark=' + (light(rgb(paper)) < 0.2), 'outside=' + outside.length, 'overlaps=' + overlaps.length,
    'letters=' + Math.min(...shown.map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width * 11)) .toFixed(0),
    'least=' + least.toFixed(2), 'marks_least=' + marks.toFixed(2), outside.concat(overlaps).slice(0, 6).join(' / ')].join('\n');
//]]></script>
HTML

# laid_out PAGE WIDTH light|dark CHARTS KIND LETTERS
laid_out() {
    what="$1, $2 wide, $3"
    scheme=1
    [ "$3" = dark ] && scheme=0
    sed -e 's|<meta http-equiv="Content-Security-Policy"[^>]*>||' -e '/<\/main><\/body>/,$d' "$1" >measured.html
    cat measure.html >>measured.html
    # A window is at least 500 pixels wide, but a frame in it can be narrower.
    printf '<!DOCTYPE html><body style="margin:0"><iframe id="f" style="border:0;width:%spx;height:9000px" src="measured.html">' \
        "$2" >frame.html
    printf '</iframe><script>f.onload = () => { document.body.append(f.contentDocument.getElementById("layout").textContent); }</script>' \
        >>frame.html
    browse --allow-file-access-from-files --blink-settings=preferredColorScheme=$scheme --window-size=1300,900 \
        --virtual-time-budget=5000 --dump-dom "file://$work/d/frame.html" >dom.txt 2>chromium.err
    for fact in "charts=$4" "kinds=$5" wide=false text=true marks=true dark="$([ "$3" = dark ] && echo true || echo false)" \
        outside=0 overlaps=0; do
        check "not $fact: $(sed -n '/charts=/,$p' dom.txt | tr '\n' ' ' | cut -c 1-300)" grep -q -- "$fact\$" dom.txt
    done
    letters=$(sed -n 's/^letters=//p' dom.txt)
    check "letters of ${letters:-no} pixels" [ "${letters:-0}" -ge "$6" ]
}
changed names "UPDATE session SET policy = 'adaptive:no-pool' WHERE policy = 'mean10'; UPDATE session SET policy = 'a policy of my
    own making, much improved' WHERE policy = 'single'; UPDATE device SET name = 'A long vendor''s name with many words, device ' ||
    device; UPDATE phase SET text = text || ' while the whole of the machine was at work' WHERE phase = 1"
run 0 "long names" names.db
for page in session names; do
    laid_out $page.html 1280 light 9 wide 12
    laid_out $page.html 1280 dark 9 wide 12
    laid_out $page.html 400 light 9 narrow 10
    laid_out $page.html 400 dark 9 narrow 10
done
laid_out large.html 1280 light 13 wide 12
laid_out telemetry.html 1280 light 16 wide 12
laid_out telemetry.html 1280 dark 16 wide 12
laid_out telemetry.html 400 light 16 narrow 10
laid_out telemetry.html 400 dark 16 narrow 10

# The unchanged page with its policy: the browser refuses nothing because of it, and can draw the page.
what="a screenshot"
browse --enable-logging=stderr --window-size=1280,1600 --screenshot="$work/d/shot.png" "file://$work/d/session.html" \
    >chromium.out 2>chromium.err
check "none was made" [ -s shot.png ]
never chromium.err 'Refused to|net::ERR|Uncaught'

finish
