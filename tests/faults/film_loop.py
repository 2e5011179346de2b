"""Map a film in a loop, in real time, while its devices are lost and come back every minute.

  python3 film_loop.py BIN_DIR LAYER [--minutes N] [--rate FRAMES_PER_SECOND]

cox-tonemap reads the film, ten seconds long, over and over from a pipe. Each frame that comes out is compared with the
same frame of a run without faults. Every minute the script prints the memory, descriptors and threads of cox-tonemap.
It fails if a frame is wrong or missing, if no device was lost, or if descriptors or threads grew.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WIDTH, HEIGHT, FILM = 256, 144, 240
FRAME_BYTES = WIDTH * HEIGHT * 3
MARK = b"FRAME\n"


def make_film():
    """The header, and each frame as it stands in the stream."""
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=24,trim=end_frame={FILM},format=yuv420p10"
    film = subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-strict", "-1", "-f", "yuv4mpegpipe", "-"],
                          stdout=subprocess.PIPE, check=True).stdout
    start = film.index(b"\n") + 1
    length = len(MARK) + FRAME_BYTES
    return film[:start], [film[at:at + length] for at in range(start, len(film), length)]


class Program:
    """cox-tonemap between two pipes."""

    def __init__(self, bin_dir, folder, **environment):
        self.errors = open(folder / "errors", "w+b")
        command = [bin_dir / "cox-tonemap", "-", "-o", "-", "--to", "p010", "--peak", "1000",
                   "--devices", "cpu:2x1", "--policy", "static", "--no-cache"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env={**os.environ, **environment})

    def digests(self):
        while frame := self.process.stdout.read(FRAME_BYTES):
            yield hashlib.md5(frame).digest() if len(frame) == FRAME_BYTES else b"cut"

    def feed(self, header, frames):
        with self.process.stdin as stdin:
            stdin.write(header)
            for frame in frames:
                stdin.write(frame)

    def end(self):
        status = self.process.wait()
        self.errors.seek(0)
        return status, self.errors.read().decode()

    def usage(self):
        """Resident memory in KiB, descriptors, threads."""
        folder = Path("/proc") / str(self.process.pid)
        status = dict(line.split(":\t") for line in (folder / "status").read_text().splitlines())
        return int(status["VmRSS"].split()[0]), len(os.listdir(folder / "fd")), int(status["Threads"])


def plan(rate):
    """Each device is lost twice a minute, at different times. Each starts one kernel for every frame."""
    half = 30 * rate
    return "\n".join([f"clEnqueueNDRangeKernel device=0.1 from={half} every={2 * half} vanish for=500ms",
                      f"clEnqueueNDRangeKernel device=0.1 from={half + half // 2} every={2 * half} status=CL_OUT_OF_RESOURCES",
                      f"clEnqueueNDRangeKernel device=0.0 from={2 * half} every={2 * half} status=CL_OUT_OF_RESOURCES",
                      f"clEnqueueNDRangeKernel device=0.0 from={half + 2 * half // 3} every={2 * half} vanish for=500ms"]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("layer", type=Path)
    parser.add_argument("--minutes", type=float, default=240)
    parser.add_argument("--rate", type=int, default=24)
    arguments = parser.parse_args()

    header, film = make_film()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = Program(arguments.bin_dir, folder)
        threading.Thread(target=whole.feed, args=(header, film)).start()
        right = list(whole.digests())
        status, errors = whole.end()
        if status != 0 or len(right) != FILM:
            sys.exit(f"the film does not run without faults: status {status}, {len(right)} frames\n{errors}")

        (folder / "plan").write_text(plan(arguments.rate))
        report = folder / "report"
        program = Program(arguments.bin_dir, folder, OPENCL_LAYERS=str(arguments.layer.resolve()),
                          COX_FAULT_PLAN=str(folder / "plan"), COX_FAULT_REPORT=str(report))
        count = int(arguments.minutes * 60 * arguments.rate)
        began = time.monotonic()

        def in_time():
            for number in range(count):
                time.sleep(max(0, began + number / arguments.rate - time.monotonic()))
                yield film[number % FILM]

        threading.Thread(target=program.feed, args=(header, in_time()), daemon=True).start()
        usages, wrong, came = [], 0, 0
        for digest in program.digests():
            wrong += digest != right[came % FILM]
            came += 1
            if came % (60 * arguments.rate) == 0:
                usages.append(program.usage())
                print(f"minute {len(usages)}: {came} frames, {wrong} wrong, {usages[-1][0]} KiB, "
                      f"{usages[-1][1]} descriptors, {usages[-1][2]} threads", flush=True)
        status, errors = program.end()
        faults = report.read_text()
        print(errors, faults, sep="")
        print(f"{came} of {count} frames, {wrong} wrong, status {status}, {time.monotonic() - began:.0f} s")
        grew = len(usages) > 10 and any(usages[-1][i] > max(usage[i] for usage in usages[:10]) for i in (1, 2))
        if len(usages) > 10:
            print(f"memory: {usages[-1][0] / usages[9][0]:.4f} of that after ten minutes")
        lost = re.search("struck [1-9]", faults)
        sys.exit(1 if status or wrong or came != count or grew or not lost else 0)


if __name__ == "__main__":
    main()
