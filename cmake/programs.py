#!/usr/bin/env python3
# Make manual pages and completions from the programs' --help, so that they are always up to date.
#   programs.py man  -o FILE [--version V] NAME PROGRAM GUIDE.md...   synopsis, commands, options, guide text
#   programs.py page -o FILE [--version V] NAME TEXT GUIDE.md...      a page of section 7, from the guide only
#   programs.py bash|zsh -o FILE NAME PROGRAM                         completions of options
#   --library FILE: the programs' library, for programs that have no run path
# If a --help cannot be parsed, the exit status is 1, with a line on standard error.
#
# The format of --help: it begins with the usage. A line that begins with a dash in one of the first seven columns
# begins an option. Lines that are indented further belong to it. If a value is one of several words, the text lists
# them at its beginning or after a colon ("auto (default), on or off"), or explains them ("video: HDR10 frames; blur: a
# convolution").
# SPDX-License-Identifier: Apache-2.0
import argparse
import datetime
import os
import re
import subprocess
import sys

OPTION = re.compile(r" {0,6}(-\S+(?:, -\S+)*(?: [^\s-]\S*)?)(?: {2,}(.*))?$")
COMMAND = re.compile(r" {0,2}([a-z]+) {2,}(\S.*)$")
WORD = r"[a-z0-9][a-z0-9_.]*"
ITEM = WORD + r"(?:\[[^]]*\])?"
ENDS = r"(?=[,;:.]|$)"
ONE_OF = re.compile(r"(?:^|: |\bof )(%(item)s(?:, %(item)s)*,? or %(item)s%(ends)s|%(item)s(?:, %(item)s(?= or |[,;:.]|$)){2,})" %
                    {"item": ITEM, "ends": ENDS})
EXPLAINED = re.compile(r"(?:^|[;:] )(%s): " % WORD)
CHOICES = ("NAME", "NAMES", "NAME[:KEY=VALUE,...]", "WHICH", "KIND", "CURVE", "LIST", "BITS", "A")


def output_of(command):
    ran = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    if ran.returncode:
        sys.exit("programs.py: %s ends with status %d" % (" ".join(command), ran.returncode))
    return ran.stdout


def indent_of(line):
    return len(line) - len(line.lstrip())


class Option:
    def __init__(self, term, text):
        self.term, self.lines = term, [text] if text else []
        names, _, self.value = re.match(r"((?:-\S+, )*-\S+?)( (\S+))?$", term).groups()
        self.names = names.split(", ")

    def text(self):
        return " ".join(line.strip() for line in self.lines)

    def choices(self):
        """The words that are valid for the value, if the text lists them."""
        value, text = self.value or "", re.sub(r" ?\([^()]*\)", "", self.text())
        found = []
        if "|" in value or value.islower():
            found = [word for word in value.split("|") if re.fullmatch(r"[a-z0-9/]+", word)]
        elif value in CHOICES:
            for match in ONE_OF.finditer(text):
                found += re.split(r",? or |, ", match.group(1))
            if not found and value in ("NAME", "WHICH", "KIND"):
                found = EXPLAINED.findall(text)
        return list(dict.fromkeys(re.sub(r"\[.*", "", word) for word in found))

    def several(self):
        return self.value in ("LIST", "NAMES")


class Help:
    """The contents of a --help: usage, then parts in their order. A part is ("text" | "verbatim" | "heading", str),
    ("command", name, str) or an Option."""

    def __init__(self, command):
        lines = output_of(command + ["--help"]).rstrip("\n").split("\n")
        if not lines[0].startswith("Usage: "):
            sys.exit("programs.py: %s --help does not begin with its usage" % " ".join(command))
        self.usage, self.parts = [], []
        while lines and lines[0]:
            self.usage.append(re.sub(r"^(Usage:)? *", "", lines.pop(0)))
        option = None
        for line in lines:
            match, begins = OPTION.match(line), COMMAND.match(line)
            inward = indent_of(line)
            if not line:
                option = None
                self.parts.append(("text", ""))
            elif match:
                option = Option(*match.groups())
                self.parts.append(option)
            elif option and inward > 2:
                option.lines.append(line)
            elif begins:
                self.parts.append(("command",) + begins.groups())
            elif inward > 6 and self.parts and self.parts[-1][0] in ("command", "item"):
                kind, name, text = self.parts.pop()
                self.parts.append((kind, name, text + " " + line.strip()))
            elif re.match(r" {2}[A-Z]+ {2,}\S", line):
                self.parts.append(("item",) + tuple(re.split(r" {2,}", line.strip(), maxsplit=1)))
            elif inward:
                self.parts.append(("verbatim", line.strip()))
            else:
                self.parts.append(("heading" if line.endswith(":") else "text", line))

    def options(self):
        return [part for part in self.parts if isinstance(part, Option)]

    def commands(self):
        return [part[1:] for part in self.parts if not isinstance(part, Option) and part[0] == "command"]


def helps_of(program):
    """The program's help, and that of each command for which `PROGRAM COMMAND --help` prints another text."""
    main = Help([program])
    below = {}
    for name, text in main.commands():
        if not main.options() or "%s --help" % name in text:
            below[name] = Help([program, name])
    return main, below


# --- Manual pages ------------------------------------------------------------------------------------------------------
def roff(text):
    """Plain text, escaped for roff, on one line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def inline(text):
    """A line of Markdown: code and strong words in bold, emphasis in italics, links as their text."""
    text = re.sub(r"!?\[((?:[^]`]|`[^`]*`)*)\]\([^)]*\)", r"\1", text)
    made = []
    for piece in re.split(r"(`[^`]*`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*)", text):
        if piece.startswith("`"):
            made.append("\\fB%s\\fR" % roff(piece[1:-1]))
        elif piece.startswith("**") and len(piece) > 4:
            made.append("\\fB%s\\fR" % roff(piece[2:-2].replace("`", "")))
        elif piece.startswith("*") and len(piece) > 2:
            made.append("\\fI%s\\fR" % roff(piece[1:-1]))
        else:
            made.append(roff(re.sub(r"\\([\\|*_<>])", r"\1", piece)))
    text = "".join(made).strip()
    return "\\&" + text if re.match(r"[.']", text) else text


def verbatim(lines):
    while lines and not lines[-1].strip():
        lines.pop()
    return [".PP", ".RS 4", ".EX"] + [roff(line) or "\\&" for line in lines] + [".EE", ".RE"]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def table(lines):
    """Each row as a term, which is its first cell, and its other cells. If there are several, their heads name them."""
    head, made = cells(lines[0]), []
    for line in lines[2:]:
        row = cells(line)
        made += [".TP", inline(row[0]) or "\\&"]
        filled = [(name, cell) for name, cell in zip(head[1:], row[1:]) if cell]
        if not filled:
            made.append("\\&")
        for at, (name, cell) in enumerate(filled):
            made += [".br"] if at else []
            made.append(inline("%s: %s" % (name.rstrip(","), cell) if name and len(head) > 2 else cell))
    return made


def prose(path, title, depth=0):
    """A guide as roff. `title` replaces its title as the name of a section; without it there is no section."""
    with open(path, encoding="utf-8") as file:
        lines = re.sub(r" *<!--.*?-->\n?", "", file.read(), flags=re.S).split("\n")
    made, fresh = [".SH " + title] if title else [], True
    at = 0
    while at < len(lines):
        line = lines[at]
        begin = at
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            level, text = len(heading.group(1)) + depth, re.sub(r"`", "", heading.group(2))
            if len(heading.group(1)) > 1:
                made.append('.SH "%s"' % roff(text.upper()) if level == 2 else '.SS "%s"' % roff(text))
                fresh = True
            at += 1
            continue
        if not line.strip():
            at += 1
            continue
        if line.startswith("```"):
            at += 1
            while not lines[at].startswith("```"):
                at += 1
            block = verbatim(lines[begin + 1:at])
            at += 1
        elif line.startswith("    "):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            block = verbatim([text[4:] for text in lines[begin:at]])
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            block = table(lines[begin:at])
        elif re.match(r"!\[", line):
            at += 1
            continue
        else:
            item = re.match(r"(\*|-|\d+\.) +", line)
            at += 1
            while at < len(lines) and lines[at].strip() and not re.match(r"(\*|-|\d+\.) |#|```|\||    ", lines[at]):
                at += 1
            text = " ".join(text.strip() for text in lines[begin:at])
            if item:
                mark = item.group(1)
                block = [".IP %s 4" % ("\\(bu" if mark in "*-" else mark), inline(text[item.end():])]
            else:
                block = [".PP", inline(text)]
        made += block[1:] if fresh and block[0] == ".PP" else block
        fresh = False
    return made


def described(parts):
    """The parts of a help after its usage."""
    made = []
    for at, part in enumerate(parts):
        before = parts[at - 1] if at else None
        if isinstance(part, Option):
            made += [".TP", re.sub(r"(--?[\w-]+)", lambda found: "\\fB%s\\fR" % roff(found.group(1)), part.term)]
            # Among continuation lines, those that are indented less than the others begin a new line.
            inward = [indent_of(line) for line in part.lines]
            column, usual = min(inward[1:], default=0), max(inward[1:], default=0)
            text = [""]
            for number, line in enumerate(part.lines):
                if number and inward[number] == column < usual:
                    text.append("")
                text[-1] = (text[-1] + " " + re.sub(r" {2,}", "  ", line.strip())).strip()
            for number, line in enumerate(text):
                made += [".br"] if number else []
                made.append(roff(line) or "\\&")
        elif part[0] in ("command", "item"):
            made += [".TP", ("\\fB%s\\fR" if part[0] == "command" else "\\fI%s\\fR") % roff(part[1]), roff(part[2])]
        elif part[0] == "verbatim":
            again = not isinstance(before, Option) and before and before[0] == "verbatim"
            if again:
                del made[-2:]
            made += ([] if again else [".PP", ".RS 4", ".EX"]) + [roff(part[1]), ".EE", ".RE"]
        elif part[1]:
            again = not isinstance(before, Option) and before and before[0] == part[0] == "text" and before[1]
            made += ([] if again or not made else [".PP"]) + [roff(part[1])]
    return made


def head(name, section, version, text, sources):
    stamp = os.environ.get("SOURCE_DATE_EPOCH") or max(os.stat(path).st_mtime for path in sources)
    day = datetime.datetime.fromtimestamp(int(float(stamp)), datetime.timezone.utc).date()
    return ['.TH %s %d %s "coxswain %s"' % (name.upper(), section, day.isoformat(), version),
            ".SH NAME", "%s \\- %s" % (name, roff(text))]


def synopsis(usage):
    made = []
    for line in usage:
        words = line.split(" ")
        named = 2 if len(words) > 1 and re.fullmatch(r"[a-z|]+", words[1]) else 1
        made += [".br"] if made else []
        made.append(("\\fB%s\\fR %s" % (roff(" ".join(words[:named])), roff(" ".join(words[named:])))).strip())
    return made


def man(name, program, guides, version):
    main, below = helps_of(program)
    told = [part for part in main.parts if not isinstance(part, Option) and part[0] == "text" and part[1]]
    if not told:
        sys.exit("programs.py: %s --help does not say what it is for" % name)
    what = re.split(r", |\.$", told[0][1])[0]
    made = head(name, 1, version, what[0].lower() + what[1:], guides) + [".SH SYNOPSIS"] + synopsis(main.usage)
    made += [".SH DESCRIPTION"] + described(main.parts)
    for command, text in below.items():
        made += ['.SH "COMMAND %s"' % command.upper()] + synopsis(text.usage) + [".PP"] + described(text.parts)
    for guide in guides:
        with open(guide, encoding="utf-8") as file:
            title = file.readline().strip("# \n")
        made += prose(guide, "GUIDE" if title == name else '"%s"' % roff(title.upper()), 0 if title == name else 1)
    return made + [".SH SEE ALSO", ".BR coxswain (7)"]


def page(name, text, guides, version, programs):
    made = head(name, 7, version, text[0].lower() + text[1:], guides)
    for guide in guides:
        made += prose(guide, "DESCRIPTION")
    return made + [".SH SEE ALSO"] + [".BR %s (1)%s" % (program, "," if program != programs[-1] else "") for program in programs]


# --- Completions -------------------------------------------------------------------------------------------------------
def is_file(value):
    return value is not None and bool(re.search(r"FILE|DIR|DB|OUTPUT|OUT", value))


def choices_of(option, policies):
    """The values to offer. All programs share the names of policies and devices."""
    if "--policy" in option.names:
        return policies
    return option.choices() or (["cpu", "gpu", "all"] if "--devices" in option.names else [])


def bash_cases(options, policies, others):
    """Lines that complete one command: the values of options that need one, then option names, otherwise `others`."""
    made = ["    case $option in"]
    for option in options:
        found, names = choices_of(option, policies), "|".join(option.names)
        if option.value is None or any(other.names == option.names and not other.value for other in options):
            continue
        if found:
            made.append("    %s) __cox_words %s '%s'; return ;;" % (names, "several" if option.several() else "one", " ".join(found)))
        else:
            made.append("    %s) %sreturn ;;" % (names, "__cox_files; " if is_file(option.value) else ""))
    names = list(dict.fromkeys(name for option in options for name in option.names))
    return made + ["    esac", "    case $cur in", "    -*) __cox_words one '%s' ;;" % " ".join(names), "    *) %s ;;" % others,
                   "    esac"]


BASH = r"""# bash completion of %(name)s, made of its --help.
# shellcheck shell=bash
__cox_files()
{
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# __cox_words one|several WORDS: with commas between them if several may be given
__cox_words()
{
    local before=
    if [[ $1 = several && $cur = *,* ]]; then
        before=${cur%,*},
    fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$2" -- "${cur##*,}")
}

%(function)s()
{
    local cur=${COMP_WORDS[COMP_CWORD]} option=
    COMPREPLY=()
    ((COMP_CWORD < 1)) || option=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $cur = "=" ]]; then
        cur=
    elif [[ $option = "=" ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
"""


def bash(name, program, policies):
    main, below = helps_of(program)
    function = "_" + name.replace("-", "_")
    made = [BASH.replace("%(name)s", name).replace("%(function)s", function)]
    names = " ".join(command for command, _ in main.commands())
    if below:
        made += ["    case ${COMP_WORDS[1]} in"]
        for command, text in below.items():
            made += ["    %s)" % command, "        if ((COMP_CWORD > 1)); then"]
            made += ["        " + line for line in bash_cases(text.options(), policies, "__cox_files")]
            made += ["            return", "        fi", "        ;;"]
        made += ["    esac"]
    if main.options():
        made += bash_cases(main.options(), policies, "__cox_words one '%s'" % names if names else "__cox_files")
    else:
        made += ["    ((COMP_CWORD > 1)) || __cox_words one '%s --help --version'" % names]
    return made + ["} &&", "    complete -F %s %s" % (function, name)]


def zsh_quote(text):
    return "'%s'" % text.replace("'", "'\\''")


def zsh_options(options, policies):
    made = {}
    for option in options:
        text = re.sub(r"([][:\\])", r"\\\1", re.sub(r"[;.] .*", "", option.text()))
        action = ""
        if option.value is not None:
            found = choices_of(option, policies)
            if found:
                action = "_values -s , value %s" % " ".join(found) if option.several() else "(%s)" % " ".join(found)
            elif is_file(option.value):
                action = "_files"
            action = ":%s:%s" % (re.sub(r"([:\\])", r"\\\1", option.value), action)
        if any(other.names == option.names and not other.value for other in options):
            action = ":" + action # the value may be left out
        for name in option.names:
            made.setdefault(name, zsh_quote("*%s[%s]%s" % (name, text, action)))
    return list(made.values())


def zsh(name, program, policies):
    main, below = helps_of(program)
    made = ["#compdef %s" % name, "# zsh completion of %s, made of its --help." % name, ""]
    if main.commands():
        made += ["local -a commands=("] + ["    " + zsh_quote("%s:%s" % (command, text)) for command, text in main.commands()] + [")"]
        made += ["if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then", "    _describe command commands", "    return", "fi"]
        if below:
            made += ["case $words[2] in"]
            for command, text in below.items():
                made += ["%s)" % command, "    shift words", "    ((CURRENT--))", "    _arguments \\"]
                made += ["        %s \\" % line for line in zsh_options(text.options(), policies)] + ["        '*:file:_files'", "    return", "    ;;"]
            made += ["esac"]
    rest = zsh_options(main.options(), policies) or ["'--help[print this text]'", "'--version[the version]'"]
    return made + ["_arguments \\"] + ["    %s \\" % line for line in rest] + ["    '*:file:_files'"]


def policies_of(name, program):
    """The policies that the program takes: its answer to a name that is none."""
    command = ["run"] if name == "cox-lab" else []
    done = subprocess.run([program, *command, "--policy", "help"], capture_output=True, text=True)
    return re.findall(r"[a-z][a-z0-9-]*", done.stdout or done.stderr.partition("policies:")[2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("man", "page", "bash", "zsh"))
    parser.add_argument("-o", dest="output", required=True)
    parser.add_argument("--version", default="")
    parser.add_argument("--library")
    parser.add_argument("--see", action="append", default=[])
    parser.add_argument("name")
    parser.add_argument("program")
    parser.add_argument("guides", nargs="*")
    given = parser.parse_args()
    if given.library:
        paths = [os.path.dirname(given.library), os.environ.get("LD_LIBRARY_PATH")]
        os.environ["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    if given.kind == "man":
        made = man(given.name, given.program, given.guides, given.version)
    elif given.kind == "page":
        made = page(given.name, given.program, given.guides, given.version, given.see)
    else:
        made = {"bash": bash, "zsh": zsh}[given.kind](given.name, given.program, policies_of(given.name, given.program))
    with open(given.output, "w", encoding="utf-8") as file:
        file.write("\n".join(made) + "\n")


main()
