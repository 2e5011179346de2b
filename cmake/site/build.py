#!/usr/bin/env python3
# Build the web site of the documents:  build.py OUTDIR   (./setup site)
#
# The pages are the repository's Markdown files and those that cmake/reference.py makes of the public headers. Their copies have
# links that suit the site. Sphinx turns them into HTML. A warning is an error. .ci/check-site checks the result.
# SPDX-License-Identifier: Apache-2.0
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
out = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp()
source = os.path.join(work, "source")

# README's four doors: title, what the page says, pictures, and the pages as patterns. A page belongs to the first pattern that
# matches it. Patterns without a page are skipped, so a new page needs no change here.
DOORS = [
    ("start", "Start", "", [], ["guide/packages", "guide/programs", "guide/faq", "guide/troubleshooting", "reference/limits"]),
    ("library", "Use the library", "Split your own kernels over all devices of a machine.", [],
     ["guide/api", "guide/python", "interface/index", "interface/*", "guide/device-profiles", "guide/faults", "guide/filters", "guide/video", "guide/interop",
      "reference/interface", "reference/security"]),
    ("convert", "Convert HDR", "Turn HDR films and pictures into SDR with `cox-tonemap`, in a pipe, or in GStreamer.",
     [("docs/results/before-after.png", "One picture twice: clipped on the left, tone-mapped by cox-tonemap on the right"),
      ("docs/results/local.jpg", "The same picture by the operators hable and local")],
     ["guide/cox-tonemap", "guide/from-ffmpeg", "guide/pictures", "guide/pieces", "guide/gstreamer", "guide/cox-devices", "reference/video-formats",
      "reference/stats"]),
    ("experiments", "Run experiments", "Compare policies in a simulator and on your devices with `cox-lab`, and measure with `cox-bench`.",
     [("docs/guide/lab-report.png", "A report of cox-lab with plots of frame times and splits"),
      ("docs/guide/cluster.png", "A page of cox-lab cluster: seconds and the part of the ideal over 1 to 1000 machines")],
     ["guide/cox-lab*", "guide/pandas", "guide/r", "reference/cox-lab*", "reference/scenarios", "reference/session-db", "reference/clusters", "*bench*", "reference/fault-layer",
      "reference/audit", "results/*"]),
    ("internals", "Internals", "How the library works, why, and how to change it.", [],
     ["internals/architecture", "internals/glossary", "internals/*", "contributing", "changelog"]),
]
LAST = "library"  # the door of a page that no pattern matches


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(name, text):
    path = os.path.join(source, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- Pages -----------------------------------------------------------------------------------------------------------
def below(folder, ending):
    """The files below a folder of the repository, by their paths in it."""
    paths = (os.path.join(at, name) for at, _, names in os.walk(os.path.join(root, folder)) for name in names if name.endswith(ending))
    return sorted(os.path.relpath(path, root) for path in paths)


staged = {"README.md": "index", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
for name in below("docs", ".md"):
    staged[name] = name[len("docs/"):-len(".md")]


def adapt(name, page):
    """The Markdown of a file, with links to where the site has their targets."""
    up = "../" * page.count("/")

    def link(match):
        text, target = match["text"], match["target"]
        if not text or re.match(r"[a-z][a-z0-9+.-]*:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), path))
        if path in staged:
            return f"{text}({up}{staged[path]}.md{'#' + anchor if anchor else ''})"
        if path == "include/coxswain" or path.startswith("include/coxswain/") and path.endswith(".h"):
            return f"{text}({up}interface/{os.path.basename(path)[:-2] if path.endswith('.h') else 'index'}.md)"
        if path.endswith((".png", ".jpg")):
            copy(path, source)
            return f"{text}({up}{path})"
        if os.path.isdir(os.path.join(root, path)):
            return text.strip("![]")
        copy(path, os.path.join(work, "extra/source"), ".txt")
        return f'<a href="{up}source/{path}.txt">{text[1:-1]}</a>'
    # Code is passed over.
    links = re.compile(r"^```.*?^```|(?<!`)`[^`\n]+`(?!`)(?!\]\()|(?P<text>!?\[(?:[^]`]|`[^`]*`)*\])\((?P<target>[^)\s]+)\)", re.M | re.S)
    return links.sub(link, read(os.path.join(root, name)))


def copy(path, to, ending=""):
    target = os.path.join(to, path + ending)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(root, path), target)


def about(page):
    """Title, and the first two sentences."""
    text = read(os.path.join(source, page + ".md"))
    title = re.search(r"^# (.*)$", text, re.M)[1]
    first = re.search(r"^# .*\n+(?P<text>(?!```)[^\n#|<!\s][^\n]*(?:\n[^\n]+)*)", text)
    words = re.sub(r"!?\[([^]]*)\]\([^)]*\)|</?a\b[^>]*>", r"\1", " ".join(first["text"].split())) if first else ""
    return title, " ".join(re.findall(r"\S.*?\.(?=\s|$)", words)[:2])


def toctree(pages, caption=""):
    lines = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return "\n```{toctree}\n" + "\n".join(lines) + "\n\n" + "\n".join(pages) + "\n```\n"


for name, page in staged.items():
    write(page + ".md", adapt(name, page))
headers = [os.path.join(root, name) for name in below("include/coxswain", ".h")]
subprocess.check_call([sys.executable, os.path.join(root, "cmake/reference.py"), "--site", os.path.join(source, "interface"), *headers])

# --- Navigation ------------------------------------------------------------------------------------------------------
pages = sorted(os.path.relpath(os.path.join(folder, name), source)[:-len(".md")]
               for folder, _, names in os.walk(source) for name in names if name.endswith(".md"))
pages.remove("index")
doors = {key: [] for key, *_ in DOORS}
for key, _, _, _, patterns in DOORS:
    for pattern in patterns:
        for page in fnmatch.filter(pages, pattern):
            if not any(page in found for found in doors.values()):
                doors[key].append(page)
doors[LAST] += [page for page in pages if not any(page in found for found in doors.values())]
headers_of = [page for page in doors["library"] if re.match(r"interface/(?!index)", page)]
write("interface/index.md", read(os.path.join(source, "interface/index.md")) + toctree(os.path.basename(page) for page in headers_of))
doors["library"] = [page for page in doors["library"] if page not in headers_of]

trees = ""
for key, title, says, pictures, _ in DOORS:
    if not says:  # pages before the doors
        trees += toctree(doors[key])
        continue
    text = f"# {title}\n\n{says}\n\n"
    for page in doors[key]:
        name, words = about(page)
        text += f"* [{name}]({page}.md)" + (f": {words}" if words else "") + "\n"
    for path, words in [picture for picture in pictures if os.path.exists(os.path.join(root, picture[0]))]:
        copy(path, source)
        text += f"\n![{words}]({path})\n\n*{words}.*\n"
    write(key + ".md", text)
    trees += toctree([f"Overview <{key}>"] + doors[key], title)
write("index.md", read(os.path.join(source, "index.md")) + trees)

# --- HTML ------------------------------------------------------------------------------------------------------------
version = re.search(r'COX_VERSION_STRING "([^"]*)"', read(os.path.join(root, "include/coxswain/version.h")))[1]
shutil.rmtree(out, ignore_errors=True)
status = subprocess.call(["sphinx-build", "-q", "-W", "--keep-going", "-j", "auto", "-c", here, "-d", os.path.join(work, "doctrees"),
                          "-D", f"html_title=Coxswain {version}", "-D", f"html_extra_path={os.path.join(work, 'extra')}", source, out])
shutil.rmtree(work)
sys.exit(status)
