"""Let each call of each program fail once, or kill the program there, and check what is left.

  python3 sweep.py BIN_DIR LAYER_DIR [OPTION...]

A run of a case (cases.py) is disturbed at one call of one site (sites.h): at the first, at the last, and at one drawn
between. With OpenCL calls it is the first three, the last two and one between. Prints a table of calls and programs,
and a line for each finding. The exit status is 1 if there are findings.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import concurrent.futures
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cases
import judge
from table import read_sites

# Calls that change files. A kill is tried at these, not at those that fill the buffers of stdio.
CHANGES = re.compile("open(?!_memstream)|^p?write|fflush|close|sync|ftruncate|rename|link|mkdir|fchmod|flock|utimens")
OPENCL_ERRORS = {"create": "CL_OUT_OF_HOST_MEMORY", "build": "CL_OUT_OF_HOST_MEMORY"}

Strike = collections.namedtuple("Strike", "case call where how environment key")


class Bench:
    """A folder with the inputs and with caches that are filled."""

    def __init__(self, bin_dir, layer_dir, folder, seconds):
        self.bin, self.layers, self.folder, self.seconds = bin_dir, layer_dir, folder, seconds
        self.inputs, self.warm = folder / "inputs", folder / "warm"
        self.environment = dict(os.environ, LC_ALL="C", TZ="UTC")
        for name in ("OPENCL_LAYERS", "LD_PRELOAD", "OCL_ICD_VENDORS"):
            self.environment.pop(name, None)
        self.environment.setdefault("POCL_CACHE_DIR", str(folder / "pocl"))
        for path in (self.inputs, self.warm, Path(self.environment["POCL_CACHE_DIR"])):
            path.mkdir(parents=True, exist_ok=True)

    def prepare(self, chosen):
        if any(case in cases.CARELESS for case in chosen):
            cases.prepare_careless(self.inputs)
            return
        if not any(case.inputs or case.before for case in chosen):
            return

        def program(name, *arguments):
            environment = dict(self.environment, XDG_CACHE_HOME=str(self.warm))
            subprocess.run([self.bin / name, *arguments], cwd=self.inputs, env=environment, check=True,
                           stdout=subprocess.DEVNULL)
        cases.prepare(self.inputs, program)

    def lay_out(self, case):
        """A new folder for a run of the case."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        work = root / "work"
        for path in [work, root / "tmp", *(work / name for name in case.folders)]:
            path.mkdir()
        for name in case.inputs:
            shutil.copy(self.inputs / name, work / name)
        for name, other in case.before.items():
            shutil.copy(self.inputs / other, work / name)
        if case.cold:
            (root / "cache").mkdir()
        else:
            shutil.copytree(self.warm, root / "cache")
        return root

    def start(self, case, root, more=()):
        """Run the case's command; the result has its status, output and errors."""
        environment = dict(self.environment, XDG_CACHE_HOME=str(root / "cache"), HOME=str(root), TMPDIR=str(root / "tmp"))
        environment.update(more)
        command = [str(self.bin / case.command[0]), *case.command[1:]]
        with open(root / "out", "wb") as out, open(root / "err", "wb") as err:
            process = subprocess.Popen(command, cwd=root / "work", env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, start_new_session=True)
            try:
                status = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                status = None
        return judge.Result(status, (root / "out").read_bytes(), (root / "err").read_text(errors="replace"), root)


def preloaded(bench, root, strike=None):
    more = {"LD_PRELOAD": str(bench.layers / "calls.so"), "COX_CALLS_TABLE": str(root / "table")}
    if strike:
        more["COX_CALLS_STRIKE"] = strike
    return more


def some(count, name, first, last):
    """Numbers of occurrences from 1 to count: the first ones, the last ones, one between."""
    chosen = set(range(1, min(count, first) + 1)) | set(range(max(1, count - last + 1), count + 1))
    between = range(first + 1, count - last + 1)
    if between:
        chosen.add(random.Random(name).choice(between))
    return sorted(chosen)


def system_strikes(bench, case, hows):
    root = bench.lay_out(case)
    result = bench.start(case, root, preloaded(bench, root))
    if result.status != 0:
        sys.exit(f"{case.name}: status {result.status} under the preloaded library: {result.err}")
    for site in read_sites(root / "table", bench.bin / case.command[0]):
        for how in hows:
            if how not in ("fail", "ever") and (not CHANGES.search(site.call) or how == "half" and "write" not in site.call):
                continue
            for number in some(site.calls, f"{site.where}{how}", 1, 1):
                key = f"{site.key:x}:{number}:{how}"
                yield Strike(case, site.call, f"{number} of {site.calls} in {site.where}", how, key, site.key)
    shutil.rmtree(root)


def opencl_plan(bench, lines, report):
    return {"OPENCL_LAYERS": str(bench.layers / "layer_fault.so"), "COX_FAULT_PLAN": "plan: " + "; ".join(lines),
            "COX_FAULT_REPORT": str(report)}


def opencl_strikes(bench, case):
    """The OpenCL calls that the case makes, from the fault layer's report."""
    plan_h = (Path(__file__).parent / "../faults/plan.h").read_text()
    calls = dict(re.findall(r"X\((cl\w+), FAULT_(\w+)\)", plan_h))
    root = bench.lay_out(case)
    # The layer stops counting a line once it has struck, so each strikes far away.
    bench.start(case, root, opencl_plan(bench, [f"{call} at=4000000000 error=-5" for call in calls], root / "report"))
    counts = re.findall(r"matched (\d+) .*: (cl\w+) ", (root / "report").read_text()) if (root / "report").exists() else []
    for count, call in counts:
        error = OPENCL_ERRORS.get(calls[call].lower(), "CL_OUT_OF_RESOURCES")
        for number in some(int(count), call, 3, 2):
            yield Strike(case, call, f"{number} of {count}", "opencl", f"{call} at={number} error={error}", 0)
    shutil.rmtree(root)


def all_strikes(bench, case, hows):
    found = list(system_strikes(bench, case, [how for how in hows if how != "opencl"]))
    return found + (list(opencl_strikes(bench, case)) if "opencl" in hows else [])


def disturb(bench, strike, undisturbed):
    """Run the case with this strike. Returns whether it struck, and the complaints."""
    root = bench.lay_out(strike.case)
    try:
        if strike.how == "opencl":
            result = bench.start(strike.case, root, opencl_plan(bench, [strike.environment], root / "report"))
            report = (root / "report").read_text() if (root / "report").exists() else "struck 1"
            struck = "struck 0" not in report
        else:
            result = bench.start(strike.case, root, preloaded(bench, root, strike.environment))
            struck = any(site.struck for site in read_sites(root / "table"))
        if strike.how in ("fail", "ever", "opencl"):
            case = copy.copy(strike.case)
            case.prints = case.prints and not cases.FALLBACKS.search(f"{strike.call} {strike.where}")
            return struck, judge.failed(case, result, undisturbed, bench.inputs)
        complaints = judge.killed(strike.case, result, undisturbed, bench.inputs, struck)
        return struck, complaints + judge.repeated(strike.case, bench.start(strike.case, root), undisturbed)
    finally:
        shutil.rmtree(root)


def undisturbed_run(bench, case):
    """The result of the case alone. A second run must give the same, or the case is useless."""
    results = []
    for _ in range(2):
        result = bench.start(case, bench.lay_out(case))
        if result.status != 0:
            sys.exit(f"{case.name}: status {result.status} without a fault: {result.err}")
        results.append(judge.Undisturbed(case, result))
    complaints = judge.failed(case, result, results[0], bench.inputs)
    if complaints:
        sys.exit(f"{case.name}: two undisturbed runs differ: {complaints}")
    return results[0]


def select(strikes, arguments):
    """The strikes that the options name. With --each N: N of each program, call and kind, and those that have found
    mistakes."""
    strikes = [s for s in strikes if re.search(arguments.call, s.call) and re.search(arguments.where, s.where)]
    if not arguments.each:
        return strikes

    groups = collections.defaultdict(list)
    for strike in strikes:
        groups[strike.case.command[0], strike.call, strike.how].append(strike)
    chosen = list(cases.found_before(strikes))
    for name, group in sorted(groups.items()):
        chosen += random.Random(f"{arguments.seed}{name}").sample(group, min(len(group), arguments.each))
    return list(dict.fromkeys(chosen))


def report(runs):
    """Print the table: for each call the runs and the findings of each program."""
    programs = sorted({strike.case.command[0] for strike, _, _ in runs})
    cells = collections.defaultdict(lambda: [0, 0])
    for strike, struck, complaints in runs:
        for call in (strike.call, "all"):
            cells[call, strike.case.command[0]][0] += struck
            cells[call, strike.case.command[0]][1] += bool(complaints)
    calls = sorted({strike.call for strike, _, _ in runs})
    print("runs (findings)".ljust(32) + "".join(name.rjust(16) for name in programs))
    for call in [*calls, "all"]:
        row = [cells[call, name] for name in programs]
        print(call.ljust(32) + "".join((f"{n} ({bad})" if bad else f"{n}" if n else "-").rjust(16) for n, bad in row))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("layer_dir", type=Path)
    parser.add_argument("--case", default="", help="cases whose name this expression matches")
    parser.add_argument("--call", default="", help="calls that it matches")
    parser.add_argument("--where", default="", help="functions that it matches")
    parser.add_argument("--how", default="fail,opencl", help="fail, ever, opencl, before, after, half; by commas")
    parser.add_argument("--each", type=int, help="only so many runs of each call and program, drawn with --seed")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--careless", action="store_true", help="the cases of the selftest")
    parser.add_argument("--seconds", type=int, default=120, help="after these a run hangs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    hows = arguments.how.split(",")

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.bin_dir.resolve(), arguments.layer_dir.resolve(), Path(folder), arguments.seconds)
        known = cases.CARELESS if arguments.careless else cases.CASES
        chosen = [case for case in known if re.search(arguments.case, case.name)]
        bench.prepare(chosen)
        runs = []
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            undisturbed = dict(zip((case.name for case in chosen), pool.map(lambda c: undisturbed_run(bench, c), chosen)))
            found = pool.map(lambda case: all_strikes(bench, case, hows), chosen)
            strikes = select([strike for some in found for strike in some], arguments)
            waiting = {pool.submit(disturb, bench, strike, undisturbed[strike.case.name]): strike for strike in strikes}
            for done in concurrent.futures.as_completed(waiting):
                strike = waiting[done]
                struck, complaints = done.result()
                runs.append((strike, struck, complaints))
                for complaint in complaints:
                    print(f"FOUND: {strike.case.name}: {strike.call} ({strike.how}) {strike.where}: {complaint}", flush=True)

    report(runs)
    struck = sum(struck for _, struck, _ in runs)
    found = sum(bool(complaints) for _, _, complaints in runs)
    print(f"{len(runs)} runs, {struck} disturbed, {found} findings")
    sys.exit(1 if found or not struck else 0)


if __name__ == "__main__":
    main()
