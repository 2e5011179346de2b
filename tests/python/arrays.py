"""numpy arrays: no copies, and messages that name the cure.

SPDX-License-Identifier: Apache-2.0
"""
import gc

import coxswain as cox
import numpy as np

import support
from support import INVERT, SCALE

ROWS, COLUMNS = 48, 64


def picture(dtype=np.uint32):
    return np.arange(ROWS * COLUMNS, dtype=dtype).reshape(ROWS, COLUMNS)


class RunOnce(support.OnDevices):
    def test_an_output_is_made_or_given(self):
        a, b = picture(), np.zeros((ROWS, COLUMNS), np.uint32)
        self.assertTrue((self.runtime.run(INVERT, a) == ~a).all())
        self.assertIs(self.runtime.run(INVERT, in_=a, out=b), b)
        self.assertTrue((b == ~a).all())

    def test_values_and_vectors_are_converted(self):
        a = picture(np.float32)
        self.assertTrue((self.runtime.run(SCALE, a, factor=2, more=np.int64(3)) == 2 * a + 3).all())
        self.assertTrue((self.runtime.run(SCALE, a, np.empty_like(a), 0.5, 1) == a / 2 + 1).all())
        source = """kernel void f(global const uchar4 *in, global float2 *out, int columns, int rows, float2 by) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < columns && y < rows) out[y * columns + x] = convert_float2(in[y * columns + x].xw) * by; }"""
        pixels = np.random.default_rng(1).integers(0, 255, (ROWS, COLUMNS, 4), np.uint8)
        out = self.runtime.run(source, pixels, by=(2, 3))
        self.assertTrue((out == pixels[:, :, ::3] * np.float32([2, 3])).all())

    def test_there_is_a_runtime_by_default(self):
        self.assertTrue((cox.run(INVERT, picture()) == ~picture()).all())
        self.assertTrue((cox.empty(4) == 0).all())
        self.assertIs(cox.default_runtime(), cox.default_runtime())

    def test_what_is_wrong_is_named(self):
        run, a = self.runtime.run, picture()
        wrong = [
            (TypeError, r"in: a numpy array is needed, not list", (a.tolist(),), {}),
            (TypeError, r"in: .*int64.*uint.*in.astype\(numpy.uint32\)", (a.astype(np.int64),), {}),
            (ValueError, r"in: .*numpy.ascontiguousarray\(in\)", (a[:, ::2],), {}),
            (ValueError, r"no array has two dimensions; give rows=… and columns=…", (a.ravel(),), {}),
            (ValueError, r"out: 4 bytes, but 48 rows of 64 uint are 12288", (a, np.zeros(1, np.uint32)), {}),
            (TypeError, r"takes no argument 'inn'; it takes in, out", (), {"inn": a}),
            (TypeError, r"'in' is given twice", (a,), {"in_": a}),
            (TypeError, r"argument 'in' is missing", (), {"out": a, "rows": 2, "columns": 2}),
            (TypeError, r"takes 2 arguments, 3 were given", (a, a, a), {}),
        ]
        for kind, message, given, named in wrong:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                run(INVERT, *given, **named)
        fixed = np.zeros((ROWS, COLUMNS), np.uint32)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "out: the array is read-only"):
            run(INVERT, a, fixed)
        with self.assertRaisesRegex(ValueError, "a float has 1 values, not 2"):
            run(SCALE, picture(np.float32), factor=(1, 2), more=1)


class Sessions(support.OnDevices):
    def setUp(self):
        self.session = self.runtime.session(SCALE, shape=(ROWS, COLUMNS))

    def test_nothing_is_copied(self):
        """The library gets the memory of the arrays."""
        a, b = picture(np.float32), np.empty((ROWS, COLUMNS), np.float32)
        _, buffers, result, _, _ = self.session._gather((a, b), {"factor": 1, "more": 0})
        self.assertEqual([int(cox.ffi.cast("uintptr_t", cox.lib.cox_buffer_data(x.c))) for x in buffers],
                         [a.ctypes.data, b.ctypes.data])
        self.assertIs(result, b)

    def test_an_array_has_one_buffer_as_long_as_it_lives(self):
        a, b = picture(np.float32), np.empty((ROWS, COLUMNS), np.float32)
        held = self.session._buffers._held
        gc.collect()
        before = len(held)
        for _ in range(3):
            self.session.run(a, b, factor=1, more=0)
        self.assertEqual(len(held), before + 2)
        del b
        self.assertEqual(len(held), before + 1)
        self.session.run(a, factor=1, more=0)
        self.assertEqual(len(held), before + 1)

    def test_two_views_of_the_same_memory_share_a_buffer(self):
        frames = np.zeros((2, ROWS, COLUMNS), np.float32)
        slot = next(iter(self.session._slots.values()))
        one, two, other = frames[0], frames[0], frames[1]
        of = self.session._buffers.of
        self.assertIs(of(one, slot), of(two, slot))
        self.assertIsNot(of(one, slot), of(other, slot))

    def test_rows_with_a_pitch_are_taken_where_they_are(self):
        wide = np.zeros((ROWS + 1, COLUMNS + 32), np.float32)
        view = wide[:ROWS, :COLUMNS]
        view[:] = picture(np.float32)
        with self.assertRaisesRegex(ValueError, r"in: 48 rows, each 384 bytes.*48 rows of 256 bytes; create the session "
                                                r"with buffers=\[…, BufferLayout\('in', pitch_bytes=384\)\]"):
            self.session.run(view, factor=1, more=0)

        pitched = """kernel void copy(global const float *in, int in_pitch, global float *out, int columns, int rows) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < columns && y < rows) out[y * columns + x] = in[y * in_pitch + x]; }"""
        layouts = [cox.BufferLayout("in", pitch_bytes=view.strides[0]), {"name": "out"}]
        session = self.runtime.session(pitched, shape=view.shape, buffers=layouts)
        self.assertTrue((session.run(view) == view).all())
        self.assertEqual(session._gather((view,), {})[1][0].c != cox.ffi.NULL, True)
        with self.assertRaisesRegex(ValueError, "the last row needs 384 bytes"):
            session.run(wide[1:, 32:])
        with self.assertRaisesRegex(ValueError, "elements of a row are not next to each other"):
            session.run(np.zeros((ROWS, 2 * COLUMNS), np.float32)[:, ::2])
        with self.assertRaisesRegex(ValueError, "elements of a row are not next to each other"):
            session.run(np.zeros((ROWS, COLUMNS), np.float32)[::-1])

    def test_a_view_is_not_written_between_its_rows(self):
        pitched = """kernel void fill(global float *out, int out_pitch, int columns, int rows) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < columns && y < rows) out[y * out_pitch + x] = 1; }"""
        wide = np.zeros((ROWS, COLUMNS + 32), np.float32)
        session = self.runtime.session(pitched, shape=(ROWS, COLUMNS), buffers=[{"name": "out", "pitch_bytes": 384}])
        with self.assertRaisesRegex(ValueError, "may write between the rows"):
            session.run(wide[:, :COLUMNS])
        session.run(wide)
        self.assertTrue((wide[:, :COLUMNS] == 1).all())

    def test_what_is_wrong_is_named(self):
        a = picture(np.float32)
        named = {"factor": 1, "more": 0}
        wrong = [
            (TypeError, r"in: .*float64.*float; use in.astype\(numpy.float32\)", (a.astype(float),), named),
            (TypeError, r"in: a numpy array is needed, not NoneType", (None,), named),
            (ValueError, r"in: .*\(49, 64\).*needs 48 rows of 256 bytes", (np.zeros((49, 64), np.float32),), named),
            (ValueError, r"in: .*\(64, 48\).*needs 48 rows of 256 bytes", (np.zeros((64, 48), np.float32),), named),
            (TypeError, r"a frame needs the array 'in'", (), named),
            (TypeError, r"a frame needs the constants more", (a,), {"factor": 1}),
            (TypeError, r"takes no 'sigma'; buffers: in, out; constants: factor, more", (a,), {"sigma": 1, **named}),
            (TypeError, r"has 2 buffers \(in, out\), 3 were given", (a, a, a), named),
            (TypeError, r"'in' is given twice", (a,), {"in_": a, **named}),
        ]
        for kind, message, given, rest in wrong:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                self.session.run(*given, **rest)
        fixed = np.zeros((ROWS, COLUMNS), np.float32)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "out: the array is read-only"):
            self.session.run(a, fixed, **named)
        self.assertTrue((self.session.run(fixed, **named) == 0).all(), "a read-only input is fine")

    def test_constants_of_a_struct(self):
        source = """typedef struct { float by; int more[3]; } settings;
            kernel void f(global const float *in, global float *out, int columns, int rows, settings constants) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] * constants.by + constants.more[2]; }"""
        with self.assertRaisesRegex(TypeError, "a kernel takes `constants`; describe them"):
            self.runtime.session(source, shape=(ROWS, COLUMNS))
        session = self.runtime.session(source, shape=(ROWS, COLUMNS), constants={"by": "f4", "more": ("i4", 3)})
        a = picture(np.float32)
        self.assertTrue((session.run(a, by=2, more=[1, 2, 3]) == 2 * a + 3).all())
        whole = np.zeros((), np.dtype([("by", "f4"), ("more", "i4", 3)]))
        whole["by"] = 5
        self.assertTrue((session.run(a, constants=whole) == 5 * a).all())

    def test_memory_of_the_library_is_a_plain_array(self):
        array = self.runtime.empty((ROWS, COLUMNS), np.float32)
        self.assertEqual((array.shape, array.dtype, array.ctypes.data % 4096), ((ROWS, COLUMNS), np.float32, 0))
        self.assertTrue((array == 0).all())
        self.assertIs(self.session.run(picture(np.float32), array, factor=1, more=1), array)
        self.assertTrue((array == picture(np.float32) + 1).all())

        runtime = support.open_runtime()
        with runtime:
            kept = runtime.empty((8, 8), np.uint32)
            runtime.run(INVERT, np.zeros((8, 8), np.uint32), kept)
        gc.collect()
        self.assertTrue((kept == 0xFFFFFFFF).all(), "the array outlives the runtime")


if __name__ == "__main__":
    support.main()
