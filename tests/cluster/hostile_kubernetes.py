"""Run the commands of kubernetes.yaml as a container would, with hostile file names in its ConfigMap. `cox-tonemap` in PATH
notes its arguments.

    python3 hostile_kubernetes.py KUBERNETES_YAML NAMES NOTED

NAMES has names that end in NUL. NOTED is where the arguments appear, each with a NUL, after them "end".
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess
import sys

import yaml

manifest, names, noted = sys.argv[1:]
with open(names, "rb") as file:
    names = file.read().split(b"\0")[:-1]
with open(manifest, encoding="utf-8") as file:
    text = file.read()
failed = used = 0


def quoted(text):
    """A JSON string that YAML reads the same way: it has no pairs of \\u for one character."""
    return '"' + "".join(one if one > "\uffff" else json.dumps(one)[1:-1] for one in text) + '"'


def run(config, jobs):
    """The arguments of each program that the jobs start, with completion index 7."""
    open(noted, "wb").close()
    for job in jobs:
        for container in job["spec"]["template"]["spec"]["containers"]:
            assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
            subprocess.run(container["command"] + container["args"], check=True, stdin=subprocess.DEVNULL,
                           env={**os.environ, **config["data"], "JOB_COMPLETION_INDEX": "7"})
    with open(noted, "rb") as file:
        return [one.split(b"\0")[:-1] for one in file.read().split(b"end\0")[:-1]]


for name in names:
    try:
        film = os.path.join(os.getcwd(), name.decode())
    except UnicodeDecodeError:
        continue  # the manifest is UTF-8
    used += 1
    pieces, output = film + ".pieces", film + "2"
    os.makedirs(pieces, exist_ok=True)

    # A person writes the names into the manifest.
    written = text
    for old, new in ("/film/movie.mkv", film), ("/film/pieces", pieces), ("/film/movie-sdr.mkv", output):
        assert written.count(f'"{old}"') == 1
        written = written.replace(f'"{old}"', quoted(new))
    config, *jobs = yaml.safe_load_all(written)

    scene = pieces + "/film.scene"
    expected = [
        ["analyse", film, "--share", "8/64", "-o", pieces + "/7.part"],
        ["steer", pieces + "/7.part", "-o", scene],
        ["map", film, "--scene", scene, "--share", "8/64", "-o", pieces + "/piece-7.mkv"],
        ["join", pieces + "/piece-7.mkv", "--scene", scene, "--source", film, "-o", output, "--overwrite"],
    ]
    got = run(config, jobs)
    if got != [[word.encode() for word in words] for words in expected]:
        print("FAILED:", ascii(name), got)
        failed += 1

print(f"{used} names, {failed} failed")
sys.exit(failed > 0 or used == 0)
