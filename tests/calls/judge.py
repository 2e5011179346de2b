"""What may be left after a call has failed, or after a kill.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import copy
import hashlib
import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

Result = collections.namedtuple("Result", "status out err root")

# Messages that say nothing, or the contrary.
EMPTY_MESSAGE = re.compile(r"Success|not an error|undocumented|\(null\)|no error|Inappropriate ioctl|: *$", re.M)

# Other device properties or compiler options give other entries of the cache.
CACHED = re.compile(r"coxswain(/films)?(/[0-9a-f]{64}\.[a-z]+)?")
# What outfile_finish calls a finished file that could not get its name.
KEPT = re.compile(r"\.kept-[0-9]+$")
# Kinds of files that SQLite writes.
BASES = ("base", "recording")
TEMPORARY = re.compile(r"coxswain/tmp-[0-9a-f]{16}")


def film_content(path):
    """The frames of a film, their times, and its texts. Containers also hold random numbers."""
    commands = (["ffmpeg", "-v", "error", "-nostdin", "-i", path, "-map", "0", "-f", "framemd5", "-"],
                ["ffprobe", "-v", "error", "-show_chapters", "-show_entries", "stream=codec_name,color_transfer:stream_tags",
                 "-show_entries", "format_tags", path])
    outputs = (subprocess.run(command, capture_output=True, text=True) for command in commands)
    return [output.stdout + output.stderr for output in outputs]


def base_content(path):
    """The number of rows of each table, and whether the database is sound. Opening it completes what a killed program has
    left, so this opens a copy."""
    with tempfile.TemporaryDirectory() as folder:
        for part in path.parent.glob(path.name + "*"):
            shutil.copy(part, folder)
        return opened_content(f"{folder}/{path.name}")


def opened_content(path):
    base = sqlite3.connect(path)
    try:
        sound = base.execute("pragma quick_check").fetchone()[0]
        names = [row[0] for row in base.execute("select name from sqlite_master where type = 'table' order by 1")]
        varies = ("measurement", "telemetry", "gauge")
        return sound, [(name, base.execute(f"select count(*) from {name}").fetchone()[0]) for name in names
                       if not any(word in name for word in varies)]
    except sqlite3.Error as error:
        return str(error), []
    finally:
        base.close()


def recorded_frames(path):
    """What a run records in any case: the frames of its policies, a session of each device alone, and that the bands
    of each frame are complete. Times decide about the other splits that it tries, and about the bands."""
    base = sqlite3.connect(path)
    try:
        sound = base.execute("pragma quick_check").fetchone()[0]
        frames = base.execute("select session, frame, phase, frame.rows, status from frame join session using (session)"
                              " where kind = 'policy' order by 1, 2").fetchall()
        alone = base.execute("select device from session where kind = 'solo' order by 1").fetchall()
        return sound, frames, alone, uncovered(base), base.execute("select finished from run").fetchall()
    except sqlite3.Error as error:
        return str(error)
    finally:
        base.close()


def uncovered(base):
    """The passes of frames whose good bands do not cover each row once."""
    bands = collections.defaultdict(list)
    rows = "select session, frame, pass, first_row, rows from band where status = 0 order by 1, 2, 3, 4"
    for session, frame, step, first, count in base.execute(rows):
        bands[session, frame, step].append((first, count))
    heights = base.execute("select session.session, pass, pass.rows from pass join session using (run)").fetchall()
    frames = base.execute("select session, frame from frame where status = 0").fetchall()
    wrong = []
    for session, step, height in heights:
        for frame in [frame for owner, frame in frames if owner == session]:
            row = 0
            for first, count in bands[session, frame, step]:
                row = row + count if first == row else height + 1
            if row != height:
                wrong.append((session, frame, step))
    return wrong


def content(path, kind):
    """What must be equal between runs."""
    if kind == "film":
        return film_content(path)
    if kind == "base":
        return base_content(path)
    if kind == "recording":
        return recorded_frames(path)
    if kind == "json":
        try:
            return sorted(json.loads(path.read_bytes()))
        except ValueError as error:
            return str(error)
    if kind == "any":
        return path.stat().st_size > 0
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def printed(data):
    """Output without figures, and what is found by measuring: they differ from run to run."""
    return re.sub(rb'[0-9.]+|(?<="host_memory": )"[a-z]+"', b"0", data)


def least_rows(rows, kind):
    """What the next run adds in any case: times decide how much else a recording has."""
    sound, counts = rows
    return sound, [(name, count) for name, count in counts if kind == "base" or name in ("run", "device", "pass", "phase")]


class Undisturbed:
    """What a run makes that nothing disturbs."""

    def __init__(self, case, result):
        work = result.root / "work"
        self.names, self.cached = names_in(work), names_in(result.root / "cache")
        self.temporary = names_in(result.root / "tmp")
        self.content = {name: content(work / name, kind) for name, kind in case.makes.items()}
        self.rows = {name: least_rows(base_content(work / name), kind) for name, kind in case.makes.items() if kind in BASES}
        self.out = result.out


def leftovers(case, result, undisturbed):
    """Files that an undisturbed run does not leave. SQLite completes a database from its own, when it is next opened.
    A finished file that could not get its name stays under another one, if the message tells it."""
    bases = [name for name, kind in case.makes.items() if kind in BASES]
    own = {name + "-shm" for name in bases}
    if result.status != 0:
        own |= {name + end for name in bases for end in ("-wal", "-journal")}
        own |= {name for name in names_in(result.root / "work") if KEPT.search(name) and Path(name).name in result.err}
    found = sorted(names_in(result.root / "work") - undisturbed.names - own)
    found += sorted("cache/" + name for name in names_in(result.root / "cache") - undisturbed.cached
                    if not CACHED.fullmatch(name))
    found += sorted("tmp/" + name for name in names_in(result.root / "tmp") - undisturbed.temporary)
    return [f"left behind: {', '.join(found)}"] if found else []


def grown_base(name, now, before):
    """A database may have some rows of a run that failed, but it is sound and has the rows of before."""
    if now[0] != "ok":
        return [f"{name} is damaged: {now}"]
    counts = dict(now[1])
    if any(counts.get(table, 0) < rows for table, rows in (before[1] if before else [])):
        return [f"{name}: rows of before are gone"]
    return []


def whole_or_absent(case, result, undisturbed, inputs):
    """Each file is whole, is the one of before, or is absent where there was none before."""
    complaints = []
    for name, kind in case.makes.items():
        path = result.root / "work" / name
        older = inputs / case.before[name] if name in case.before else None
        if not path.exists():
            if older:
                complaints.append(f"{name}: the good file of before is gone")
        elif kind in BASES:
            complaints += grown_base(name, base_content(path), older and base_content(older))
        elif name not in case.grows and content(path, kind) != undisturbed.content[name]:
            if not older or content(path, kind) != content(older, kind):
                complaints.append(f"{name}: neither whole nor as before")
    return complaints


def right(case, result, undisturbed):
    """Everything is there, as in an undisturbed run."""
    complaints = []
    for name, kind in case.makes.items():
        path = result.root / "work" / name
        if not path.exists():
            complaints.append(f"status 0, but {name} is missing")
        elif content(path, kind) != undisturbed.content[name]:
            complaints.append(f"status 0, but {name} is wrong")
    # cox-devices goes on without a platform or a device, and says so.
    tells = b"clGetDevice" in result.out and b"clGetDevice" not in undisturbed.out
    if case.prints and printed(result.out) != printed(undisturbed.out) and not tells:
        complaints.append("status 0, but it prints something else")
    return complaints


def message(result):
    said = result.err.strip()
    if not said:
        return [f"status {result.status} without a message"]
    if EMPTY_MESSAGE.search(said):
        return [f"an empty message: {said[-300:]}"]
    return []


def ended(result):
    if result.status is None:
        return ["it hangs"]
    if result.status < 0:
        return [f"signal {-result.status}: {result.err.strip()[-300:]}"]
    return []


def failed(case, result, undisturbed, inputs):
    """Complaints about a run in which one call failed."""
    complaints = ended(result)
    if complaints:
        return complaints
    if result.status == 0:
        complaints += right(case, result, undisturbed)
    else:
        complaints += message(result) + whole_or_absent(case, result, undisturbed, inputs)
        if result.status not in (1, 3):
            complaints.append(f"status {result.status}: {result.err.strip()[-300:]}")
    return complaints + leftovers(case, result, undisturbed)


def killed(case, result, undisturbed, inputs, struck):
    """Complaints about a run that was killed."""
    if result.status is None or struck and result.status != -9:
        return [f"status {result.status} after the kill"]
    return whole_or_absent(case, result, undisturbed, inputs)


def repeated(case, result, undisturbed):
    """Complaints about the run after the killed one, in the same folder. The cache removes old temporary files later."""
    undisturbed.cached |= {name for name in names_in(result.root / "cache") if TEMPORARY.fullmatch(name)}
    complaints = ended(result)
    if not complaints and result.status not in (0, case.again):
        complaints.append(f"the next run fails with status {result.status}: {result.err.strip()[-300:]}")
    for name, rows in undisturbed.rows.items():
        complaints += grown_base(name, base_content(result.root / "work" / name), rows)
    case = copy.copy(case)
    case.makes = {name: kind for name, kind in case.makes.items() if kind not in BASES}  # the killed run may have added rows
    return complaints + right(case, result._replace(out=undisturbed.out), undisturbed) + leftovers(case, result, undisturbed)
