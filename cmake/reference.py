#!/usr/bin/env python3
# Make one HTML page of the public headers, for people: each declaration and its comment, as in the header.
#   reference.py [-o PAGE.html] [--site FOLDER] HEADER...
# --site writes the same as pages of Markdown for cmake/site/build.py: one for each header, and an index.
# A declaration without a comment, and a comment that names something undeclared, give exit status 1 and a line on
# standard error.
#
# The headers' comments are prose with little structure. Indented lines are a list, a word with a colon at the
# beginning of a line is a term, and names of the interface become links. A comment belongs to all declarations below
# it, up to a blank line. A comment with a blank line below it belongs to none. The first one describes the header.
# SPDX-License-Identifier: Apache-2.0
import argparse
import html
import os
import re
import sys

STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfb; --ink: #1b2027; --soft: #56606c; --rule: #e1e3e6; --shade: #f1f2f4; --accent: #0067b8; }
@media screen and (prefers-color-scheme: dark) {
    :root { --paper: #14171c; --ink: #e8eaed; --soft: #a3acb8; --rule: #2c323b; --shade: #1f242b; --accent: #58aef5; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
    font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif; }
main { max-width: 880px; margin: 0 auto; padding: 40px 24px 72px; }
h1 { font-size: 32px; margin: 0 0 8px; line-height: 1.2; }
h2 { font-size: 25px; margin: 72px 0 16px; padding-top: 28px; border-top: 1px solid var(--rule); line-height: 1.2; }
h3 { font: 600 17px/1.4 ui-monospace, SFMono-Regular, "DejaVu Sans Mono", Menlo, monospace; margin: 0 0 8px; }
section.item { margin: 44px 0 0; }
h3 + section.item { margin-top: 20px; }
p, dl { margin: 0 0 12px; }
code, pre { font: 14px/1.5 ui-monospace, SFMono-Regular, "DejaVu Sans Mono", Menlo, monospace; }
pre { background: var(--shade); border-radius: 6px; padding: 10px 14px; margin: 0 0 12px; overflow-x: auto; overflow-wrap: normal; }
dt { margin-top: 8px; }
dd { margin: 0 0 0 24px; }
ul { margin: 0 0 12px; }
.members { border-left: 3px solid var(--rule); padding-left: 14px; list-style: none; }
.members dd { color: var(--soft); }
.soft, .index { color: var(--soft); font-size: 15px; }
.index { columns: 260px; list-style: none; margin: 0; padding: 0; }
.index li { padding: 2px 0; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 5px; }
h3 a, pre a, code a, .index a { text-decoration: none; }
h3 a { color: inherit; }
:target { scroll-margin-top: 12px; background: var(--shade); }
@media (max-width: 600px) { main { padding: 24px 16px 48px; } dd { margin-left: 14px; } }
"""

problems = []


def text_of(comment):
    """A comment's lines, without its delimiters."""
    lines = re.sub(r"\s*\*/\s*$", "", comment.strip()).split("\n")
    lines = [re.sub(r"^\s*(/\*|\*) ?", "", lines[0])] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]]
    return [line.rstrip() for line in lines if "SPDX-License-Identifier" not in line]


def without_branches(text):
    """The branch for C of each #if, without include guard and includes."""
    kept, stack = [], []
    for line in text.split("\n"):
        if re.match(r"#\s*if", line):
            guard = re.match(r"#\s*ifndef COXSWAIN_\w+_H", line)
            # Code for C++ is left out. Of other conditions the last branch is kept, which is the usual one.
            stack.append(bool(guard) or not re.search(r"__cplusplus|_WIN32", line))
        elif re.match(r"#\s*(else|elif)", line):
            stack[-1] = not stack[-1]
        elif re.match(r"#\s*endif", line):
            stack.pop()
        elif all(stack) and not re.match(r"#\s*(include|pragma|define COXSWAIN_\w+_H)\b", line):
            kept.append(line)
    return "\n".join(kept)


class Declaration:
    def __init__(self, source, comment, header):
        self.source, self.comment, self.header = source, comment, header
        self.place = ""  # its anchor
        self.members = []  # (declaration, names, lines of its comment)
        bare = re.sub(r"/\*.*?\*/", " ", source, flags=re.S)
        if source.startswith("#"):
            self.kind, self.name = "macro", re.match(r"#\s*define (\w+)", source)[1]
        elif tagged := re.match(r"(?:typedef )?(struct|enum)\s*(\w*)\s*\{(.*)\}", bare, re.S):
            self.kind, self.name = tagged[1], tagged[2]
            self.read_members(source[source.index("{") + 1:source.rindex("}")])
            self.name = self.name or self.members[0][1][0]
        elif callback := re.match(r"typedef [\w\s*]*?(?:\(\*(\w+)\)|\b(\w+))\(", bare):
            self.kind, self.name = "callback", callback[1] or callback[2]
        elif opaque := re.match(r"typedef struct \w+ (\w+);", bare):
            self.kind, self.name = "type", opaque[1]
        elif function := re.search(r"\b(cox_\w+)\(", bare):
            self.kind, self.name = "function", function[1]
        else:
            self.kind, self.name = "unknown", bare.split()[0]
            problems.append(f"{header}: not understood: {' '.join(bare.split())[:80]}")

    def read_members(self, body):
        """Fields end with ; and enumerators with , or the end. A comment before one, or behind it on its line, is its own."""
        before = []
        body = re.sub(r"^\s*#.*$", "", body, flags=re.M)
        for name, numbers in re.findall(r"(COX_\w+_MAP)\((\w+)\)", body):
            entries = re.findall(r"X\((\w+), (-?\d+), (\".*?\")\)", maps.get(name, ""))
            self.members += [(f"{entry} = {value}", [entry], [text]) for entry, value, text in entries]
            body = body.replace(f"{name}({numbers})", "")
        token = re.compile(r"\s*(?:(/\*.*?\*/)|((?:[^;,/(]|\([^)]*\)|/(?!\*))+?)\s*(?:,|$|(?=/\*))[ \t]*(/\*.*?\*/)?)"
                           if self.kind == "enum" else
                           r"\s*(?:(/\*.*?\*/)|((?:[^;/]|/(?!\*)|/\*.*?\*/)+?);[ \t]*(/\*.*?\*/)?)", re.S)
        at = 0
        while match := token.match(body, at):
            at = match.end()
            if match[1]:
                before = text_of(match[1])
            elif match[2].strip():
                code = " ".join(match[2].split())
                if "{" in code:
                    problems.append(f"{self.header}: {self.name}: not understood: {code[:80]}")
                names = re.match(r"\w+", code)[0] if self.kind == "enum" else \
                    (re.search(r"\(\*(\w+)\)", code) or re.search(r"(\w+)(\[[^]]*\])*$", code))[1]
                self.members.append((code, [names], text_of(match[3]) if match[3] else before))
                before = []
        if body[at:].strip():
            problems.append(f"{self.header}: {self.name}: not understood: {' '.join(body[at:].split())[:80]}")

    def documented(self):
        return bool(self.comment) or any(comment for _, _, comment in self.members)


maps = {}  # of the X macros: their text


def ended(source):
    """Whether a declaration is there whole."""
    bare = re.sub(r"/\*.*?\*/", "", source, flags=re.S).strip()
    whole = bare.endswith(";") or bare.endswith("}") and "(" in bare.split("{")[0]  # the body of an inline function
    return "/*" not in bare and whole and bare.count("{") == bare.count("}")


def read(path):
    """The header's own comment, and what follows: texts (lists of lines) and groups of declarations that share a comment."""
    header = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        text = without_branches(file.read())
    for macro in re.finditer(r"#\s*define (COX_\w+_MAP)\(X\)(?:.*\\\n)*.*\n", text):
        maps[macro[1]] = macro[0]
    about, found, comment, group = None, [], [], None
    lines = iter(text.split("\n") + [""])
    for line in lines:
        source = line
        if not line.strip():
            if comment and not group:
                if about is None:
                    about = comment
                else:
                    found.append(comment)
            comment, group = [], None
        elif line.startswith("/*"):
            while "*/" not in source:
                source += "\n" + next(lines)
            if "clang-format" not in source:
                comment, group = text_of(source), None
        elif line.startswith("#"):
            while source.endswith("\\"):
                source += "\n" + next(lines)
        else:
            while not ended(source):
                source += "\n" + next(lines)
        if line.strip() and not line.startswith(("/*", "#undef", "extern", "}")):
            declared = Declaration(source.strip(), comment, header)
            if declared.name.endswith("_"):  # for a header's own functions
                continue
            if not group:
                group = []
                found.append(group)
            group.append(declared)
    return header, about or [], found


# --- HTML ------------------------------------------------------------------------------------------------------------
anchors = {}  # of every name: the place of its declaration
pages = {}  # of every place: its page, if there are several


def linked(text, own=()):
    """HTML of a piece of code or prose, whose names are links."""
    def link(part):
        before, name = part.split(" ") if " " in part else ("", part)
        target = anchors.get(part) or anchors.get(name)
        if target is None and "." in name:  # not a field, but the end of a sentence or a placeholder for several names
            head, _, field = name.partition(".")
            return linked(head, own) + html.escape("." + field)
        before += " " if before else ""
        return before + (name if target is None or target in own else f'<a href="{pages.get(target, "")}#{target}">{name}</a>')
    parts = re.split(r"((?:\bstruct )?\b(?:cox|COX)_\w+(?:\.[a-z]\w*)?)", text)
    return "".join(link(part) if i % 2 else html.escape(part, quote=False) for i, part in enumerate(parts))


def inline(text, own=()):
    parts = re.split(r"`([^`]*)`", text)
    return "".join(f"<code>{linked(part, own)}</code>" if i % 2 else linked(part, own) for i, part in enumerate(parts))


def indent_of(line):
    return len(line) - len(line.lstrip())


def definitions(items, attributes=""):
    """A list of <dt> and <dd>; without any <dd> it is a plain one."""
    items = "".join(items)
    if "<dd>" in items:
        return f"<dl{attributes}>{items}</dl>"
    return f"<ul{attributes}>{items.replace('<dt', '<li').replace('</dt>', '</li>')}</ul>"


def list_of(lines, own):
    """A list: TERM, two spaces or more, TEXT; what is as far in as TEXT goes on with it, what is less far in is a list within."""
    least = min(map(indent_of, lines))
    out, item = [], None

    def put():
        if item:
            term, words, inner, _ = item
            nested = list_of(inner, own) if inner else ""
            out.append(f"<dt><code>{linked(term, own)}</code></dt><dd>{inline(' '.join(words), own)}{nested}</dd>" if words or nested
                       else f"<dt>{inline(term.removeprefix('- '), own)}</dt>")
    for line in lines:
        if indent_of(line) == least and not (item and not item[1] and item[0].count("(") > item[0].count(")")):
            match = re.match(r"(\s*)(.*?\S)(\s{2,})(\S.*)$", line)
            sentence = item and not item[1] and not match and item[0].count(" ") > 3 and item[0][-1] not in ".:;"
            if sentence and re.match(r"\s*[a-z]+ ", line):  # it goes on
                item[0] += " " + line.strip()
                continue
            if item and not item[1] and item[0].endswith(","):  # a term of two lines
                item[0] += " " + (match[2] if match else line.strip())
                item[1] += [match[4]] if match else []
                item[3] = match.start(4) if match else item[3]
                continue
            put()
            item = [match[2], [match[4]], [], match.start(4)] if match else [line.strip(), [], [], least + 1]
        elif not item[1]:
            item[0] += " " + line.strip()
        elif indent_of(line) >= item[3] or not item[2] and indent_of(line) == least + 1:
            (item[2] if item[2] else item[1]).append(line if item[2] else line.strip())
        else:
            item[2].append(line)
    put()
    return definitions(out)


LABEL = re.compile(r"(Thread-safety|Errors(?:[ ,][^:.()]*)?|Blocks|Source|Cost|mapping|analysis|COX_[A-Z_]+):(?=\s|$)")


def prose(lines, own=()):
    """Paragraphs, lists where lines are indented, and a new line for each label."""
    out, words, block = [], [], []

    def end_words():
        if words:
            text = " ".join(words)
            text = re.sub(r"(?<=[.)] )(?=(?:Thread-safety|Errors[^:.()]*|Blocks|Cost|Source):)", "\0", text)
            for part in text.split("\0"):
                label = LABEL.match(part)
                out.append(f"<p><b>{inline(label[0], own)}</b>{inline(part[label.end():], own)}</p>" if label else f"<p>{inline(part, own)}</p>")
            words.clear()

    def end_block():
        least = min(map(indent_of, block), default=0)
        if least >= 4:  # code
            out.append("<pre>" + linked("\n".join(line[least:] for line in block), own) + "</pre>")
        elif block:
            out.append(list_of(block, own))
        block.clear()
    for line in lines + [""]:
        if not line or indent_of(line) < 2:
            end_block()
            # If the next word would have fitted on a line, the line ends a paragraph.
            if not line or LABEL.match(line) or words and len(words[-1]) + len(line.split()[0]) < 90:
                end_words()
            if line:
                words.append(line.strip())
        else:
            end_words()
            block.append(line)
    end_block()
    return "\n".join(out)


def signature(declaration):
    """The declaration as code; what does not fit in a line has an argument on each."""
    bare = re.sub(r"/\*.*?\*/", " ", declaration.source, flags=re.S)
    if declaration.kind == "macro":
        name = re.match(r"#\s*define (\w+(?:\([^)]*\))?)", bare)[1]
        value = " ".join(bare.replace("\\\n", " ").split(name, 1)[1].split())
        return f"#define {name}" + (f" {value}" if value and len(value) < 60 else "")
    bare = " ".join(re.sub(r"\s*\{.*\}$", ";", bare.replace("COX_API", ""), flags=re.S).split())
    match = re.match(r"(.*?\w)\((.*)\);$", bare)
    if len(bare) <= 60 or not match:
        return bare
    arguments = re.split(r", (?![^(]*\))", match[2])
    return f"{match[1]}(\n    " + ",\n    ".join(arguments) + ");"


def render(group, site=False):
    first = group[0]
    shown = [d for d in group if d.kind != "macro" or not d.name.endswith("_MAP") or len(group) == 1]
    own = {d.place for d in group}
    headings = []
    for d in group:
        tag = f"{d.kind} " if d.kind in ("struct", "enum") and d.name.islower() else ""
        headings.append(f"{tag}{d.name}" if site else f'<a id="{d.place}" href="#{d.place}">{tag}{d.name}</a>')
    if site:
        marks = "".join(f'<span id="{d.place}"></span>' for d in group)
        parts = [f"\n## {', '.join(headings)}\n", f'<div class="item">{marks}']
    else:
        parts = ['<section class="item">', f"<h3>{'<br>'.join(headings)}</h3>"]
    parts.append(prose(first.comment, own))
    for d in shown:
        if d.kind in ("struct", "enum"):
            rows = []
            for code, names, comment in d.members:
                ids = anchors[names[0] if d.kind == "enum" else f"{d.name}.{names[0]}"]
                mark = "" if ids == d.place else f' id="{ids}"'  # the heading has the id
                rows.append(f"<dt{mark}><code>{linked(code, set(names))}</code></dt>"
                            + (f"<dd>{prose(comment)}</dd>" if comment else ""))
            parts.append(definitions(rows, ' class="members"'))
        else:
            parts.append(f"<pre>{linked(signature(d), own)}</pre>")
    parts.append("</div>\n" if site else "</section>")
    return "\n".join(parts)


def link_list(places):
    entries = (f'<li><a href="{pages.get(place, "")}#{place}">{name}</a></li>' for name, place in sorted(places))
    return f'<ul class="index">{"".join(entries)}</ul>'


def declarations(found):
    return [d for entry in found if isinstance(entry[0], Declaration) for d in entry]


def place_all(headers):
    """Give each declaration its anchor."""
    functions = {d.name for _, _, found in headers for d in declarations(found) if d.kind == "function"}
    for _, _, found in headers:
        for d in declarations(found):
            # A struct may have the name of a function. The word `struct` in front of it tells them apart.
            if d.kind == "struct" and d.name in functions:
                d.place = anchors[f"struct {d.name}"] = f"struct-{d.name}"
            else:
                d.place = anchors[d.name] = d.name
            for _, names, _ in d.members:
                place = names[0] if d.kind == "enum" else f"{d.name}.{names[0]}"
                anchors.setdefault(place, place)
    for h, _, _ in headers:
        anchors.setdefault(h, h)


def summary_of(about):
    return linked(re.split(r"(?<=\.) ", " ".join(" ".join(about).split()))[0])


def index_lists(headers):
    """Of each kind of name: its title, and links."""
    everything = [d for _, _, found in headers for d in declarations(found)]
    kinds = (("Functions", ("function",)), ("Types", ("struct", "enum", "type", "callback")), ("Macros", ("macro",)))
    for title, wanted in kinds:
        of_kind = [d for d in everything if d.kind in wanted]
        yield title, link_list([(d.name, d.place) for d in of_kind if d.kind == "macro" or d.name.islower()])
    yield "Constants", link_list([(names[0], names[0]) for d in everything if d.kind == "enum" for _, names, _ in d.members])


def page(headers, version):
    """All of it."""
    out = ["<!doctype html>", '<html lang="en">', '<head><meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           f"<title>Coxswain {version}: the interface</title>", f"<style>{STYLE}</style></head>", "<body><main>",
           f"<h1>Coxswain {version}</h1>", '<p class="soft">The interface, from the comments of its headers.</p>', "<nav>"]
    for h, about, found in headers:
        if declarations(found):
            out.append(f'<p><a href="#{h}"><b>coxswain/{h}</b></a><br><span class="soft">{summary_of(about)}</span></p>')
    out.append('<p><a href="#index"><b>Index</b></a></p></nav>')
    for h, about, found in headers:
        if not declarations(found):
            continue
        out.append(f'<h2 id="{h}">coxswain/{h}</h2>')
        out.append(prose(about))
        for entry in found:
            out.append(render(entry) if isinstance(entry[0], Declaration) else prose(entry))
    out.append('<h2 id="index">Index</h2>')
    for title, links in index_lists(headers):
        out.append(f"<h3>{title}</h3>{links}<p></p>")
    out.append("</main></body></html>")
    return "\n".join(out) + "\n"


def write_site(headers, folder):
    """Markdown whose blocks are HTML: a blank line would end such a block."""
    def put(name, parts):
        with open(os.path.join(folder, name + ".md"), "w", encoding="utf-8") as file:
            file.write("\n".join(parts) + "\n")

    for h, _, found in headers:
        pages[h] = f"{h[:-2]}.html"
        for d in declarations(found):
            pages[d.place] = pages[h]
            pages.update((anchors[names[0] if d.kind == "enum" else f"{d.name}.{names[0]}"], pages[h]) for _, names, _ in d.members)
    os.makedirs(folder, exist_ok=True)
    listed = []
    for h, about, found in headers:
        bodies = [render(entry, True) if isinstance(entry[0], Declaration) else f"<div>{prose(entry)}</div>\n" for entry in found]
        put(h[:-2], [f"# coxswain/{h}\n", f'<div><span id="{h}"></span>{prose(about)}</div>\n', *bodies])
        listed.append(f'<dt><a href="{pages[h]}"><code>coxswain/{h}</code></a></dt><dd>{summary_of(about)}</dd>')
    out = ["# The interface\n", "Functions, types and macros, from the comments of the headers. For programmers who use the library.\n",
           f"<dl>{''.join(listed)}</dl>\n"]
    for title, links in index_lists(headers):
        out += [f"## {title}\n", links + "\n"]
    put("index", out)


def complain(headers):
    """Declarations without a comment, and names in comments that no header declares."""
    for header, about, found in headers:
        if not about:
            problems.append(f"{header}: no comment says what the header is for")
        comments = [about]
        for entry in found:
            if not isinstance(entry[0], Declaration):
                comments.append(entry)
                continue
            for d in entry:
                comments += [d.comment] + [comment for _, _, comment in d.members]
                if not d.documented():
                    problems.append(f"{header}: {d.name}: no comment")
        for comment in comments:
            for name in re.findall(r"(?<![\w./-])(?:cox|COX)_\w+(?!\w|\.\.\.|…|\*)", "\n".join(comment)):
                if name not in anchors and not name.endswith("_"):
                    problems.append(f"{header}: a comment names {name}, which no header declares")


arguments = argparse.ArgumentParser()
arguments.add_argument("-o", dest="output")
arguments.add_argument("--site")
arguments.add_argument("headers", nargs="+")
options = arguments.parse_args()
read_headers = [read(path) for path in sorted(options.headers)]
numbers = {d.name: d.source.split()[-1].strip('"') for _, _, found in read_headers for entry in found
           if isinstance(entry[0], Declaration) for d in entry if d.name == "COX_VERSION_STRING"}
place_all(read_headers)
made = page(read_headers, numbers.get("COX_VERSION_STRING", ""))
complain(read_headers)
if options.output:
    with open(options.output, "w", encoding="utf-8") as output:
        output.write(made)
if options.site:
    write_site(read_headers, options.site)
for problem in dict.fromkeys(problems):
    print(problem, file=sys.stderr)
sys.exit(bool(problems))
