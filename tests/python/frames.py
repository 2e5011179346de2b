"""Frames under way: futures, callbacks in Python, reports, exceptions with their lines of the log.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import concurrent.futures
import gc
import io
import logging
import pickle
import threading
import weakref

import coxswain as cox
import numpy as np

import support
from support import INVERT, SCALE

ROWS, COLUMNS = 48, 64

COUNT_AND_MAP = """
kernel void count(global const uchar *in, global uint *histogram, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        atomic_inc(&histogram[in[y * columns + x]]);
}
kernel void map(global const uchar *in, global uchar *out, int columns, int rows, uint most)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * columns + x] = in[y * columns + x] == most;
}"""


class Frames(support.OnDevices):
    def setUp(self):
        self.a = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)

    def session(self, source=SCALE, **params):
        return self.runtime.session(source, shape=(ROWS, COLUMNS), **params)

    def test_futures_come_in_order_and_have_results(self):
        session = self.session(in_flight=3)
        order = []
        frames = [session.submit(self.a, factor=i, more=0) for i in range(12)]
        for frame in frames:
            frame.add_done_callback(lambda frame: order.append(frame.number))
        for i, frame in enumerate(frames):
            self.assertTrue((frame.result() == i * self.a).all())
        self.assertEqual([frame.number for frame in frames], list(range(12)))
        self.assertIsInstance(frames[0], concurrent.futures.Future)
        session.close()
        self.assertEqual(order, sorted(order))

    def test_frames_can_be_awaited(self):
        session = self.session()

        async def wait():
            return await asyncio.gather(*(asyncio.wrap_future(session.submit(self.a, factor=i, more=1)) for i in range(4)))

        results = asyncio.run(wait())
        self.assertTrue(all((result == i * self.a + 1).all() for i, result in enumerate(results)))

    def test_a_frame_keeps_its_arrays(self):
        gate = support.Gate()
        self.addCleanup(gate.open.set)
        session = self.session(cox.Pass(INVERT, done=gate), warmup="none")
        array = np.zeros((ROWS, COLUMNS), np.uint32)
        alive = weakref.ref(array)
        frame = session.submit(array)
        del array
        gc.collect()
        self.assertTrue(gate.entered.wait(600))
        self.assertIsNotNone(alive())
        gate.open.set()
        frame.result()
        session.wait()
        session.close()
        self.assertIsNone(alive(), "and lets go of them")

    def test_a_chain_of_frames_through_one_array_is_ordered(self):
        session = self.session(in_flight=4)
        a, b = self.a.copy(), np.empty_like(self.a)
        for _ in range(5):
            session.submit(a, b, factor=1, more=1)
            session.submit(b, a, factor=1, more=1)
        session.wait()
        self.assertTrue((a == self.a + 10).all())

    def test_callbacks_may_use_the_library(self):
        session = self.session()
        other = self.session()
        found = []
        done = threading.Event()

        def then(frame):
            found.append(other.run(frame.result(), factor=2, more=0))
            done.set()

        session.submit(self.a, factor=3, more=0).add_done_callback(then)
        self.assertTrue(done.wait(300))
        self.assertTrue((found[0] == 6 * self.a).all())

    def test_many_threads_use_one_session(self):
        session = self.session(in_flight=2)

        def work(i):
            run = session.run if i % 2 else lambda *a, **n: session.submit(*a, **n).result()
            return all((run(self.a, factor=i, more=k) == i * self.a + k).all() for k in range(5))

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            self.assertEqual(list(pool.map(work, range(6))), [True] * 6)

    def test_a_session_with_all_frames_under_way_is_busy(self):
        gate = support.Gate()
        self.addCleanup(gate.open.set)
        session = self.session(cox.Pass(INVERT, done=gate), in_flight=1, warmup="none")
        array = np.zeros((ROWS, COLUMNS), np.uint32)
        frame = session.submit(array)
        self.assertTrue(gate.entered.wait(600))
        with self.assertRaises(cox.BusyError):
            session.submit(array, nowait=True)
        with self.assertRaisesRegex(TimeoutError, "1 frames are still under way"):
            session.wait(0.01)
        session.cancel()
        gate.open.set()
        self.assertIsInstance(frame.exception(), (cox.CancelledError, type(None)))

    def test_merges_and_what_runs_between_passes(self):
        seen = {}

        def between(buffers, constants):
            seen.update({name: (array.dtype, array.flags.writeable) for name, array in buffers.items()})
            constants["most"] = buffers["histogram"].argmax()

        passes = [cox.Pass(COUNT_AND_MAP, "count", done=between), cox.Pass(kernel="map")]
        for merge in ("add", np.add, lambda into, part: np.add(into, part, out=into)):
            session = self.session(
                passes, buffers=[{"name": "in"}, cox.BufferLayout("histogram", bytes=1024, merge=merge), {"name": "out"}]
            )
            values = np.random.default_rng(1).integers(0, 200, (ROWS, COLUMNS), np.uint8)
            values[:10] = 99
            histogram, out = session.run(values, most=0)
            self.assertTrue((histogram == np.bincount(values.ravel(), minlength=256)).all())
            self.assertTrue((out == (values == 99)).all())
        self.assertEqual(seen["histogram"], (np.dtype("u4"), False))

    def test_what_a_callback_raises_is_raised_by_its_frame(self):
        def wrong(buffers, constants):
            raise ZeroDivisionError("between passes")

        session = self.session([cox.Pass(COUNT_AND_MAP, "map", done=wrong)])
        values = np.zeros((ROWS, COLUMNS), np.uint8)
        with self.assertRaisesRegex(ZeroDivisionError, "between passes"):
            session.run(values, most=0)
        with self.assertRaisesRegex(ZeroDivisionError, "between passes"):
            session.submit(values, most=0).result()

    def test_policies_and_their_options(self):
        session = self.session(policy="static", policy_options={"ratios": [0.75, 0.25]}, reports=True)
        session.run(self.a, factor=1, more=0)
        bands = session.reports().bands
        self.assertEqual([(b["device"], b["rows"]) for b in bands if not b["warmup"]], [(0, 36), (1, 12)])
        self.assertEqual(session.info.policy, "static")
        with self.assertRaisesRegex(cox.NotFoundError, "policies: adaptive, chunks, static, single"):
            self.session(policy="best")

    def test_reports_are_struct_arrays(self):
        session = self.session(reports=True, warmup="none")
        for i in range(3):
            session.run(self.a, factor=i, more=0)
        frames, passes, bands = session.reports()
        plain = frames[~frames["shadow"]]
        self.assertEqual(plain["index"].tolist(), [0, 1, 2])
        self.assertTrue((plain["total_end_ns"] > plain["total_start_ns"]).all())
        self.assertEqual((len(passes), len(bands)), (frames["pass_count"].sum(), frames["band_count"].sum()))
        self.assertEqual(bands[bands["frame"] == 0]["rows"].sum(), ROWS)
        self.assertEqual(len(session.reports().frames), 0)
        with self.assertRaisesRegex(RuntimeError, "reports=True"):
            self.session().reports()

    def test_reports_and_devices_are_tables(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is missing (Debian: python3-pandas)")
        session = self.session(reports=True)
        session.run(self.a, factor=1, more=0)
        table = pandas.DataFrame(session.reports().bands)
        self.assertEqual(table[~table["warmup"]]["rows"].sum(), ROWS)
        devices = pandas.DataFrame(self.runtime.devices)
        self.assertEqual((len(devices), list(devices["type"])), (2, ["cpu", "cpu"]))
        self.assertEqual(list(devices), list(cox.structs.fields_of(cox.ffi.typeof("struct cox_device_info"))))

    def test_exceptions_have_the_lines_of_their_own_call(self):
        broken = "kernel void f(global int *out) { out[0] = nothing; }"
        problems = []

        def fail(source):
            try:
                self.session(source)
            except cox.Error as problem:
                problems.append(problem)

        fail(broken)
        self.assertEqual((problems[0].status, problems[0].name), (cox.E_BUILD, "COX_E_BUILD"))
        self.assertTrue(any("nothing" in line for line in problems[0].log), problems[0].log)
        problems.clear()

        threads = [threading.Thread(target=fail, args=(f"kernel void f{i}(global int **out) {{}}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(problem.log) for problem in problems], [1] * 8)
        self.assertEqual({problem.log[0].split(":")[0] for problem in problems}, {f"kernel f{i}" for i in range(8)})
        copy = pickle.loads(pickle.dumps(problems[0]))
        self.assertEqual((type(copy), copy.status, copy.log), (cox.InvalidError, cox.E_INVALID, problems[0].log))

    def test_lines_go_to_the_logger(self):
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        logger = logging.getLogger("coxswain")
        logger.addHandler(handler)
        try:
            with support.open_runtime(log_level="debug") as runtime:
                runtime.run(INVERT, np.zeros((8, 8), np.uint32))
        finally:
            logger.removeHandler(handler)
        self.assertIn("row alignment", stream.getvalue())

    def test_everything_lets_go(self):
        session = self.session()
        frame = session.submit(self.a, factor=1, more=0)
        frame.result()
        alive = weakref.ref(session)
        del session
        gc.collect()
        self.assertIsNone(alive())


class Records(support.OnDevices):
    def test_devices_host_and_platforms(self):
        first, second = self.runtime.devices
        self.assertEqual((first.type, first.subdevice, second.subdevice), ("cpu", 1, 2))
        self.assertGreater(self.runtime.host.cores, 0)
        self.assertTrue(any(platform.name == first.platform for platform in self.runtime.platforms))
        self.assertEqual(self.runtime.pitch_bytes(1) % first.base_align_bytes, 0)

    def test_a_session_describes_itself(self):
        session = self.runtime.session(SCALE, shape=(ROWS, COLUMNS))
        described = [(b.name, b.bytes, b.pitch_bytes, b.writes) for b in session.buffers]
        self.assertEqual(described, [("in", 12288, 256, False), ("out", 12288, 256, True)])
        self.assertEqual([device.state for device in session.info.devices], ["active", "active"])
        self.assertIn("in, out", repr(session))

    def test_pipelines_of_the_library(self):
        shape = {"width": COLUMNS, "height": ROWS, "in_pitch_bytes": 4 * COLUMNS, "out_pitch_bytes": 4 * COLUMNS}
        session = self.runtime.session(pipeline=cox.filter_gaussian(shape))
        plane = np.ones((ROWS, COLUMNS), np.float32)
        out = np.empty_like(plane)
        session.run(plane, out, constants=cox.filter_gaussian_prepare(shape, 2.0, 2.0))
        self.assertTrue(np.allclose(out, 1, atol=1e-4))
        with self.assertRaisesRegex(cox.InvalidError, "filter_gaussian: an argument, or a field"):
            cox.filter_gaussian({"width": 0})
        with self.assertRaisesRegex(TypeError, "has no field 'wide'"):
            cox.filter_gaussian({"wide": 1})


if __name__ == "__main__":
    support.main()
