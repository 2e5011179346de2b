#!/bin/sh
# cox-lab export: each format is read back by a reader that was written for the format. Also checks what is refused.
#   sh lab_export.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/lab.sh"
verb="export"
expect_status 0 "a simulated session" "$lab" sim --scenario step-2 --seeds 1 --frames 60 --in-flight 2 --policy adaptive,chunks --record s.db

# --- Usage -----------------------------------------------------------------------------------------------------------
prints "Usage: cox-lab export" "help" --help
run 2 "no database" --format paje -o t
denies 2 "csv, parquet, paje or perfetto" "no format" s.db -o t
denies 2 "'otf'" "another format" s.db --format otf -o t
denies 2 "-o FILE" "no output" s.db --format paje
denies 2 "-o FOLDER" "no folder" s.db --format csv
denies 2 "use the name of a folder" "tables on standard output" s.db --format csv -o -
run 2 "a run that is no number" s.db --format paje -o t --run one
denies 2 "the database itself" "the database as the output" s.db --format paje -o s.db
run 2 "what belongs to the database as the output" s.db --format paje -o s.db-wal
denies 1 "no run 99" "a run that is not there" s.db --format paje -o t --run 99
denies 1 "no frames of that policy" "a policy that is not there" s.db --format paje -o t --policy ewma
echo text >text.db
run 1 "no database" text.db --format perfetto -o t
check "a trace was left" [ ! -e t ]

# --- Paje: lines have the declared fields, containers exist, states end, time never goes back -------------------------
cat >paje.awk <<'AWK'
function wrong(text) { print NR ": " text ": " $0; bad = 1; exit 1 }
/^%EventDef/ { name[$3] = $2; event = $3; next }
/^%EndEventDef/ { next }
/^%/ { fields[event]++; field[event, fields[event]] = $2; next }
{
    line = $0
    gsub(/"[^"]*"/, "text", line)
    count = split(line, part, " ")
    if (!(part[1] in name)) wrong("no such event")
    if (count - 1 != fields[part[1]]) wrong("fields")
    what = name[part[1]]
    delete value
    for (i = 1; i < count; i++) value[field[part[1], i]] = part[i + 1]
    if ("Time" in value) {
        if (value["Time"] + 0 < time) wrong("time goes back")
        time = value["Time"] + 0
    }
    if (what == "PajeCreateContainer") {
        if (value["Container"] != "0" && !(value["Container"] in alive)) wrong("no container to be in")
        alive[value["Alias"]] = 1
    } else if (what == "PajeDestroyContainer") {
        if (depth[value["Name"]] > 0) wrong("a state that does not end")
        delete alive[value["Name"]]
    } else if ("Container" in value && !(value["Container"] in alive)) wrong("no container")
    if (what == "PajeDefineEntityValue") entity[value["Alias"]] = 1
    if ((what == "PajePushState" || what == "PajeNewEvent") && !(value["Value"] in entity)) wrong("no such value")
    if (what == "PajePushState") { depth[value["Container"]]++; states++; rows += value["Rows"] }
    if (what == "PajePushState" && depth[value["Container"]] > 1) wrong("two states at once")
    if (what == "PajePopState" && --depth[value["Container"]] < 0) wrong("no state to end")
    events += what == "PajeNewEvent"
    values += what == "PajeSetVariable"
}
END {
    for (container in alive) wrong("left: " container)
    if (!bad) print states, events, values, rows
}
AWK
reads() { # NAME: the trace of that name
    read=$1
    check "$1 cannot be read" eval 'awk -f paje.awk "$read" >"$read.read"'
}
run 0 "paje" s.db --format paje -o s.paje
reads s.paje
contains s.paje '^5 0\.000000000 t2 G t1 "adaptive"$' '"queue 0: .*\('
run 0 "standard output" s.db --format paje -o -
same "$work/out" s.paje
run 0 "one policy" s.db --format paje -o chunks.paje --policy chunks
reads chunks.paje
lacks chunks.paje '"adaptive"'
if command -v pj_dump >/dev/null; then
    expect_status 0 "pj_dump" pj_dump s.paje
    contains out '^State.*frame'
fi

# --- With telemetry, one source of which has an invalid name ----------------------------------------------------------
if [ "$sqlite" ]; then
    states=$(sqlite3 s.db "WITH p AS (SELECT session FROM session WHERE run = (SELECT max(run) FROM run) AND kind = 'policy')
        SELECT (SELECT count(*) FROM frame JOIN p USING (session)) + (SELECT count(*) FROM band JOIN p USING (session) WHERE wall_ns > 0)")
    equal "$(cut -d ' ' -f 1 s.paje.read)" "$states" "states"
    cp s.db t.db
    sqlite3 t.db "INSERT INTO telemetry_source SELECT max(run), 0, 'clock \"x\"' || char(27), 'clock', 'p', 'MHz', 'o' FROM run;
        INSERT INTO telemetry SELECT max(run), 0, 1000000, 3250.5 FROM run;
        INSERT INTO telemetry SELECT max(run), 0, 2000000, 'text' FROM run;
        INSERT INTO telemetry_session SELECT session, 5000000 * session FROM session"
    run 0 "telemetry" t.db --format paje -o t.paje
    reads t.paje
    contains t.paje '^10 0\.001000000 VA t3 3250\.500000$' "\"clock 'x'"
    run 0 "telemetry for perfetto" t.db --format perfetto -o t.pftrace
    cp s.db p.db
    sqlite3 p.db "UPDATE pass SET name = 'across'; INSERT INTO pass SELECT run, 1, NULL, rows, 1 FROM pass;
        UPDATE band SET pass = 1 WHERE band = 1;
        INSERT INTO frame_pass SELECT session, frame, 1, end_ns / 2, end_ns, 4, 7, 0, 0 FROM frame_pass;
        UPDATE frame_pass SET end_ns = end_ns / 2 WHERE pass = 0"
    run 0 "passes" p.db --format paje -o p.paje
    reads p.paje
    for band in 'across' 'across, on demand' 'pass 1' 'pass 1, failed'; do contains p.paje "^4 n[0-9]+ ST \"$band\" "; done
    lacks p.paje '"band"'
    contains p.paje '^5 0\.000000000 t[0-9]+ T t2 "passes 1"$'
    passes=$(sqlite3 p.db "SELECT $states + count(*) FROM frame_pass JOIN session USING (session)
        WHERE kind = 'policy' AND run = (SELECT max(run) FROM run)")
    equal "$(cut -d ' ' -f 1 p.paje.read)" "$passes" "states"
    run 0 "passes for perfetto" p.db --format perfetto -o p.pftrace
    check "no name of a pass" grep -aq "across, on demand" p.pftrace
    sqlite3 p.db "UPDATE frame_pass SET start_ns = -9223372036854775807, pass = pass + 70 WHERE frame = 5; UPDATE band SET pass = 99"
    run 0 "passes that cannot be" p.db --format paje -o q.paje
    reads q.paje
    cp s.db hostile.db
    sqlite3 hostile.db "UPDATE band SET wall_ns = 9223372036854775807, device = 7 WHERE band = 1;
        UPDATE frame SET start_ns = -9223372036854775807, reason = 1 WHERE frame = 3; UPDATE run SET in_flight = 1000000"
    run 0 "numbers that cannot be" hostile.db --format perfetto -o hostile.pftrace
    run 0 "numbers that cannot be, as text" hostile.db --format paje -o hostile.paje
fi

# --- Tables: each value is compared with the database -----------------------------------------------------------------
cat >tables.py <<'END'
"""Compare the tables in a folder with the database, value by value. Reads Parquet by its specification."""
import csv, sqlite3, struct, sys

database, folder, forms = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
where = sys.argv[4] if len(sys.argv) > 4 else "1"
TEXT = 6

class Thrift:
    """The compact protocol."""
    def __init__(self, data, at):
        self.data, self.at = data, at
    def byte(self):
        self.at += 1
        return self.data[self.at - 1]
    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    def value(self, kind):
        if kind in (5, 6):
            number = self.varint()
            return number >> 1 ^ -(number & 1)
        if kind == 8:
            length = self.varint()
            self.at += length
            return self.data[self.at - length:self.at].decode()
        if kind == 9:
            head = self.byte()
            count = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, kind
        return self.struct()
    def struct(self):
        fields, number = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            assert head >> 4, "fields ascend"
            number += head >> 4
            fields[number] = self.value(head & 15)

def page(data, at, kind, count):
    thrift = Thrift(data, at)
    header = thrift.struct()
    assert header[1] == 0 and header[2] == header[3] and header[5] == {1: count, 2: 0, 3: 3, 4: 3}, header
    at, end = thrift.at, thrift.at + header[2]
    length, = struct.unpack_from("<I", data, at)
    thrift = Thrift(data, at + 4)
    levels = []
    while thrift.at < at + 4 + length:
        run = thrift.varint()
        assert run & 1 == 0
        levels += [thrift.byte()] * (run >> 1)
    assert len(levels) == count and thrift.at == at + 4 + length
    at, present, values = thrift.at, sum(levels), []
    if kind == 0:
        values = [bool(data[at + i // 8] >> i % 8 & 1) for i in range(present)]
        at += (present + 7) // 8
    elif kind == TEXT:
        for _ in range(present):
            length, = struct.unpack_from("<I", data, at)
            values.append(data[at + 4:at + 4 + length].decode())
            at += 4 + length
    else:
        values = list(struct.unpack_from(f"<{present}{'q' if kind == 2 else 'd'}", data, at))
        at += 8 * present
    assert at == end
    values = iter(values)
    return [next(values) if level else None for level in levels], end

def parquet(path):
    data = open(path, "rb").read()
    assert data[:4] == data[-4:] == b"PAR1"
    length, = struct.unpack("<I", data[-8:-4])
    thrift = Thrift(data, len(data) - 8 - length)
    footer = thrift.struct()
    assert thrift.at == len(data) - 8 and footer[1] == 1
    names = [(element[4], element[1]) for element in footer[2][1:]]
    assert footer[2][0][5] == len(names) and all(element[3] == 1 for element in footer[2][1:])
    assert all((element.get(6), element.get(10)) == ((0, {1: {}}) if element[1] == TEXT else (None, None))
               for element in footer[2][1:])
    rows, at = [], 4
    for group in footer[4]:
        begin, columns = at, []
        for (name, kind), chunk in zip(names, group[1], strict=True):
            about = chunk[3]
            assert about[1] == kind and about[3] == [name] and about[4] == 0 and about[5] == group[3] and about[9] == at
            values, end = page(data, at, kind, group[3])
            assert about[6] == about[7] == end - at
            at = end
            columns.append(values)
        assert group[2] == at - begin
        rows += zip(*columns, strict=True)
    assert footer[3] == len(rows) and at == len(data) - 8 - length
    return [name for name, _ in names], rows, len(footer[4])

COMMON = {"run": "run.run", "source": "source", "host": "host", "kernel": "kernel", "columns": "run.columns",
          "in_flight": "run.in_flight", "reserve": "setting.value", "session": "session.session", "kind": "session.kind",
          "policy": "policy", "repeat": "repeat", "phase": "frame.phase", "phase_text": "phase.text", "frame": "frame.frame"}
ZERO_IS_NULL = {"deadline_ns", "predicted_ns", "alternative_ns", "kernel_ns"}
TABLES = {
    "frames": "rows start_ns wall_ns period_ns latency_ns deadline_ns predicted_ns alternative_ns reason pool_rows joules "
              "status",
    "bands": "band pass pass_name device device_name device_type first_row rows start_ns end_ns wall_ns queue_ns kernel_ns "
             "predicted_ns noticed_ns clock_error_ns on_demand attempt status"}
SOURCES = {"reason": "reason.text", "pass_name": "pass.name", "device_name": "device.name", "device_type": "device.type",
           "noticed_ns": "notice.noticed_ns", "clock_error_ns": "notice.clock_error_ns"}
JOINED = """FROM frame JOIN session USING (session) JOIN run USING (run) JOIN reason USING (reason)
    LEFT JOIN phase ON phase.run = run.run AND phase.phase = frame.phase
    LEFT JOIN setting ON setting.run = run.run AND setting.name = 'reserve' """
BANDS = """JOIN band ON band.session = frame.session AND band.frame = frame.frame
    LEFT JOIN pass ON pass.run = run.run AND pass.pass = band.pass
    LEFT JOIN device ON device.run = run.run AND device.device = band.device
    LEFT JOIN notice ON notice.session = band.session AND notice.frame = band.frame AND notice.band = band.band"""

db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
for table, names in TABLES.items():
    sources = dict(COMMON)
    for name in names.split():
        source = SOURCES.get(name, f"{table[:-1]}.{name}")
        sources[name] = f"nullif({source}, 0)" if name in ZERO_IS_NULL else source
    wanted = [tuple(row) for row in db.execute(
        f"SELECT {', '.join(sources.values())} {JOINED} {BANDS if table == 'bands' else ''} WHERE {where} "
        f"ORDER BY {'band.session, band.frame, band.band' if table == 'bands' else 'frame.session, frame.frame'}")]
    if "parquet" in forms:
        head, rows, groups = parquet(f"{folder}/{table}.parquet")
        assert head == list(sources), head
        for number, (row, want) in enumerate(zip(rows, wanted, strict=True)):
            assert row == want, (table, number, row, want)
        print(table, len(rows), groups)
    if "csv" in forms:
        data = open(f"{folder}/{table}.csv", newline="", encoding="utf-8").read()
        assert data.endswith("\r\n") and "\n" not in data.replace("\r\n", "")
        head, *rows = csv.reader(data.splitlines(keepends=True))
        assert head == list(sources), head
        show = lambda name, value: "" if value is None else ("true" if value else "false") if name == "on_demand" else str(value)
        for number, (row, want) in enumerate(zip(rows, wanted, strict=True)):
            for name, text, value in zip(head, row, want, strict=True):
                same = float(text) == value if isinstance(value, float) else text == show(name, value)
                assert same, (table, number, name, text, value)
END
compares() { # DATABASE FOLDER FORMS WHERE
    [ -z "$python" ] || expect_status 0 "the tables of $1" python3 tables.py "$@"
}
for form in csv parquet; do
    run 0 "$form" s.db --format $form -o tables
    denies 1 "no run 99" "$form of a run that is not there" s.db --format $form -o none --run 99
    denies 1 "no frames of that policy" "$form of another policy" s.db --format $form -o none --policy ewma
    run 1 "$form of no database" text.db --format $form -o none
    refute "a folder was left" [ -e none ]
    denies 1 "cannot make the folder" "$form into a folder of no folder" s.db --format $form -o none/none
    denies 1 "Not a directory" "$form into a file" s.db --format $form -o s.paje
    mkdir $form
    cp s.db $form/frames.$form
    denies 2 "the database itself" "$form over the database" $form/frames.$form --format $form -o $form
    run 0 "$form of one policy" s.db --format $form -o one --policy chunks
done
compares s.db tables csv,parquet
compares s.db one csv,parquet "policy = 'chunks'"
lacks one/frames.csv adaptive
contains tables/frames.csv '^1,simulation,.*,solo,single,'

# A disk that is full: an old table stays, and nothing else is left.
mkdir full
echo old >full/frames.csv
(
    trap '' XFSZ
    ulimit -f 1
    program s.db --format csv -o fresh >/dev/null 2>&1
    program s.db --format csv -o full >/dev/null 2>"$work/err"
)
equal $? 1 "the status on a full disk"
contains err 'full/frames.csv: '
equal "$(ls -A full):$(cat full/frames.csv)" "frames.csv:old" "the folder on a full disk"
refute "a new folder stays on a full disk" [ -e fresh ]

if [ "$sqlite" ]; then
    # Unknown values, names of many kinds, several row groups, and tables without a row.
    cp s.db odd.db
    sqlite3 odd.db "UPDATE device SET name = 'Gerät “Ω”, \"显卡\"', type = '' WHERE device = 0; UPDATE device SET name = NULL WHERE device = 1;
        UPDATE frame SET joules = frame / 7.0 WHERE frame % 3 = 0; UPDATE band SET on_demand = frame % 2, kernel_ns = 0 WHERE frame % 5 = 0;
        UPDATE frame SET deadline_ns = 1 << 60, latency_ns = -9223372036854775807 - 1 WHERE frame = 4;
        INSERT INTO notice SELECT session, frame, band, end_ns + 5, CASE WHEN frame % 2 THEN 7 END FROM band WHERE frame % 4 = 0;
        INSERT INTO setting SELECT run, 'reserve', 'a,b' FROM run"
    cp s.db none.db
    sqlite3 none.db 'DELETE FROM band; DELETE FROM frame'
    cp s.db long.db
    sqlite3 long.db "DELETE FROM band; WITH RECURSIVE n(i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 70000)
        INSERT INTO frame SELECT session, i, phase, rows, start_ns + i, wall_ns, period_ns, predicted_ns, alternative_ns, reason, pool_rows,
        status, latency_ns, deadline_ns, CASE WHEN i % 3 THEN i / 3.0 END FROM frame, n WHERE session = 1 AND frame = 0"
    for name in odd none long; do
        for form in csv parquet; do run 0 "$form of $name.db" $name.db --format $form -o $name; done
        compares $name.db $name csv,parquet
    done
    [ -z "$python" ] || contains out '^frames [0-9]+ 2$' # row groups
    # A control character could steer a terminal.
    cp s.db control.db
    sqlite3 control.db "UPDATE phase SET text = 'a' || char(27) || char(10) || 'b'"
    run 0 "control characters" control.db --format csv -o control
    contains control/frames.csv ',a\\x1b\\x0ab,'
fi

# --- Perfetto: read by field numbers ----------------------------------------------------------------------------------
run 0 "perfetto" s.db --format perfetto -o s.pftrace
if [ -z "$python" ]; then
    leave_out "the content of the binary form" "there is no python3"
    finish
fi
cat >read.py <<'END'
import struct, sys

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at

def fields(data):
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            assert wire == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found

packets = [fields(p) for p in fields(open(sys.argv[1], "rb").read())[1]]
names, categories, annotations, tracks, counters, depth = {}, {}, {}, {}, set(), {}
slices = instants = values = rows = 0
last = -1
assert packets[0][13] == [1] and all(p.get(13, [2]) == [2] for p in packets[1:]), "the state is cleared once"
for packet in packets:
    assert packet[10] == [1], packet
    for interned in packet.get(12, []):
        for kind, into in ((1, categories), (2, names), (3, annotations)):
            for entry in fields(interned).get(kind, []):
                entry = fields(entry)
                assert entry[1][0] not in into and entry[1][0] > 0
                into[entry[1][0]] = entry[2][0].decode()
    for track in map(fields, packet.get(60, [])):
        uuid = track[1][0]
        assert uuid not in tracks
        if 3 in track:
            tracks[uuid] = fields(track[3][0])[6][0].decode()
        else:
            assert track[5][0] in tracks
            tracks[uuid] = track[2][0].decode()
        if 8 in track:
            counters.add(uuid)
    for event in map(fields, packet.get(11, [])):
        time, kind, track = packet[8][0], event[9][0], event[11][0]
        assert time >= last and track in tracks
        last = time
        assert (kind == 4) == (track in counters)
        if kind in (1, 3):
            assert event[10][0] in names and event[3][0] in categories
            about = {annotations[fields(a)[1][0]]: fields(a)[4][0] for a in map(bytes, event[4])}
            assert "frame" in about
        if kind == 1:
            depth[track] = depth.get(track, 0) + 1
            assert depth[track] == 1, "slices overlap"
            slices, rows = slices + 1, rows + about["rows"]
        elif kind == 2:
            depth[track] -= 1
            assert depth[track] == 0
        elif kind == 3:
            instants += 1
        else:
            assert isinstance(event[44][0], float)
            values += 1
assert not any(depth.values()), "slices that do not end"
assert "scheduler" in tracks.values() and any(t.startswith("queue 0: ") for t in tracks.values()), tracks
print(slices, instants, values, rows)
END
for form in s t; do
    [ -e $form.pftrace ] || continue
    expect_status 0 "$form.pftrace" python3 read.py $form.pftrace
    same "$work/out" $form.paje.read "the forms differ"
done
finish
