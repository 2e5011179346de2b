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
denies 2 "paje or --format perfetto" "no format" s.db -o t
denies 2 "'otf'" "another format" s.db --format otf -o t
denies 2 "-o FILE" "no output" s.db --format paje
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
