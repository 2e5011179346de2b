#!/usr/bin/env python3
# Find the commands in the code blocks of Markdown pages, for tests/cli/guides.sh.
#   guides.py FOLDER PAGE...
#
# A block is indented by four columns, or is in ``` without a language or with `sh`. A group of lines without an empty line
# between them holds commands if its first line, apart from comments, begins with a program of PROGRAMS, or with `$ `. With
# `$ `, its other lines are output. Without, each line is a command. Other groups are output or text.
#
# Comments in the lines before a block, which no reader of the page sees, hold for all commands of the block:
#   <!-- not run: REASON -->       why no test can run it
#   <!-- exit status 0 or 3 -->    other statuses than 0, which the page names as "status 3"
#   <!-- prints these lines -->    the lines of output that the block shows come from its last command, in this order
#
# Without a marker of the first kind, programs that change the machine or use a network are refused.
#
# For each command, FOLDER gets NUMBER.sh, and NUMBER.shows if its output is known. A line of standard output describes it:
# number, page, line, statuses, programs, reason, with tabs between; - if empty. The exit status is 1 if a page is wrong.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shlex
import sys

PROGRAMS = re.compile(r"""(?:\./|build/bin/|packaging/|/usr/bin/)?(?:cox-[a-z-]+|hello|player|setup|build-deb|test-deb)|
    (?:/usr/bin/)?(?:apt|apt-get|autopkgtest|cat|cc|cd|cmake|cp|ctest|docker|echo|export|ffmpeg|ffplay|ffprobe|g\+\+|gcc|gdb|git|
    gst-inspect-1\.0|gst-launch-1\.0|ldconfig|ls|lspci|make|meson|mkdir|mpirun|ninja|parallel|pip|pkg-config|podman|python3|rm|
    sbatch|sh|sqlite3|srun|ssh|sudo|time|unset|usermod|wget|curl)$""", re.X)
CHANGES_THE_MACHINE = re.compile(r"""(?:\./|packaging/)?(?:setup|build-deb|test-deb)|apt|apt-get|autopkgtest|cmake|curl|docker|git|
    ldconfig|make|meson|ninja|parallel|pip|podman|sbatch|srun|ssh|sudo|usermod|wget""", re.X)
SHELL = {"cd", "echo", "export", "unset"}
MARKER = re.compile(r"\s*<!-- (not run: (?P<reason>.*?)|exit status (?P<status>[0-9]+(?: or [0-9]+)*)|(?P<prints>prints these lines)) -->$")
faults = []


def fault(page, line, words):
    faults.append(f"{page}:{line}: {words}")


def words_of(command):
    """The words of each simple command, without assignments before it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    parts = [[]]
    for word in lexer:
        if re.fullmatch(r"[|&;]+", word):
            parts.append([])
        elif parts[-1] or not re.match(r"[A-Z_]+=", word):
            parts[-1].append(word)
    return [part for part in parts if part]


def begins_command(line):
    found = re.match(r"(?:[A-Z_]+=(?:\"[^\"]*\"|\S*) +)*(\S+)", line)
    return bool(found and PROGRAMS.match(found[1]) and PROGRAMS.fullmatch(found[1]))


def blocks_of(text):
    """The code blocks: their markers, and their lines as (number, text) without the indentation."""
    markers, block, fence, inside = {}, [], None, 0
    for number, line in enumerate(text.split("\n") + ["end"], 1):
        if fence is not None:
            if line.strip() == "```":
                if fence in ("", "sh"):
                    yield markers, block
                markers, block, fence = {}, [], None
            else:
                block.append((number, line[inside:]))
            continue
        begin = len(line) - len(line.lstrip())
        item = re.match(r" *(?:[*-]|\d+\.) +", line)
        if block and (not line.strip() or begin >= inside + 4):
            block.append((number, line[inside + 4:]))
            continue
        if block:
            yield markers, block
            markers, block = {}, []
        marker, code = MARKER.match(line), re.match(r"\s*```(.*)$", line)
        if marker:
            markers.update({key: (number, value) for key, value in marker.groupdict().items() if value})
        elif "<!-- not run" in line or "<!-- exit" in line or "<!-- prints" in line:
            yield {"wrong": (number, line.strip())}, []
        elif code:
            fence, inside = code[1], begin
        elif line.strip() and begin >= inside + 4:
            block.append((number, line[inside + 4:]))
        elif line.strip():
            if markers:
                yield markers, []
                markers = {}
            # The text of a list's item is indented, and so is code inside it.
            inside = len(item[0]) if item else min(inside, begin)


def groups_of(block):
    group = []
    for number, line in block + [(0, "")]:
        if line.strip():
            group.append((number, line))
        elif group:
            yield group
            group = []


def commands_of(page, block):
    """The commands as [line, text, lines of output]."""
    found = []
    for group in groups_of(block):
        bare = [line for _, line in group if not line.startswith("#")]
        prompt = bool(bare) and bare[0].startswith("$ ")
        if not bare or not prompt and not begins_command(bare[0]):
            if found:
                found[-1][2] += [line for _, line in group]
            continue
        end, more = None, False
        for number, line in group:
            if end is not None or more:
                found[-1][1] += "\n" + line
                end = None if line == end else end
            elif line.startswith("#"):
                continue
            elif prompt and not line.startswith("$ "):
                found[-1][2].append(line)
                continue
            else:
                text = line[2:] if prompt else line
                # A line that is continued may have assignments only.
                if not begins_command(text) and not re.fullmatch(r"([A-Z_]+=\S* +)+\\", text):
                    fault(page, number, f"neither a command with a program that tests/support/guides.py knows nor output: {line}")
                    continue
                found.append([number, text, []])
                here = re.search(r"<<-?'?(\w+)", text)
                end = here[1] if here else None
            more = end is None and line.endswith("\\")
    return found


folder, number = sys.argv[1], 0
for path in sys.argv[2:]:
    page = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for markers, block in blocks_of(text):
        if "wrong" in markers:
            fault(page, markers["wrong"][0], "this marker is none that tests/support/guides.py knows")
            continue
        commands = commands_of(page, block)
        if markers and not commands:
            fault(page, min(line for line, _ in markers.values()), "a marker without commands below it")
        statuses = markers["status"][1].split(" or ") if "status" in markers else ["0"]
        for status in statuses:
            if status != "0" and not re.search(rf"status\w*\W+(?:is |\d+ or )?{status}\b", re.sub(r"<!--.*?-->", "", text)):
                fault(page, markers["status"][0], f"the page does not say what exit status {status} means")
        for line, command, shown in commands:
            number += 1
            with open(os.path.join(folder, f"{number}.sh"), "w", encoding="utf-8") as file:
                file.write(command + "\n")
            if "prints" in markers and shown:
                with open(os.path.join(folder, f"{number}.shows"), "w", encoding="utf-8") as file:
                    file.write("\n".join(shown) + "\n")
            used = []
            for words in words_of(re.sub(r"<<-?'?(\w+).*", "", command.replace("\\\n", " "), flags=re.S)):
                name = words[0]
                used += [os.path.basename(name) if "build/bin/" in name else name] if name not in SHELL else []
                if name == "gst-launch-1.0":  # its elements
                    used += ["gst:" + word for before, word in zip(words, words[1:])
                             if before in ("gst-launch-1.0", "!") and re.fullmatch(r"[a-z][a-z0-9]*", word)]
            for name in used if "reason" not in markers else []:
                if CHANGES_THE_MACHINE.fullmatch(name):
                    fault(page, line, f"{name} changes the machine or uses a network, so the block needs a marker: <!-- not run: ... -->")
            print(number, page, line, ",".join(statuses), ",".join(dict.fromkeys(used)) or "-",
                  markers["reason"][1] if "reason" in markers else "-", sep="\t")
print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
sys.exit(1 if faults else 0)
