"""The module has everything that the public headers declare, in the headers' form.

SPDX-License-Identifier: Apache-2.0
"""
import glob
import os
import re
import unittest

import coxswain as cox
from coxswain import structs

import support

LEFT_OUT = ("gl.h", "libav.h", "opencl.h")  # for C programs with objects of other libraries


def headers():
    for path in sorted(glob.glob(os.path.join(support.SOURCE, "include", "coxswain", "*.h"))):
        if os.path.basename(path) not in LEFT_OUT:
            with open(path, encoding="utf-8") as file:
                yield re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


class Headers(unittest.TestCase):
    def test_every_function_is_there(self):
        names = [name for text in headers() for name in re.findall(r"\bCOX_API\b[^;]*?\b(cox_\w+)\s*\(", text)]
        self.assertGreater(len(names), 50)
        self.assertEqual([name for name in names if not hasattr(cox.lib, name)], [])

    def test_every_field_of_every_struct_is_there(self):
        found = 0
        for text in headers():
            for name, body in re.findall(r"^struct (cox_\w+) \{(.*?)^\};", text, flags=re.S | re.M):
                found += 1
                known = structs.fields_of(cox.ffi.typeof(f"struct {name}"))
                declared = re.findall(r"\(\*(\w+)\)\(|(\w+)(?:\[[^\]]*\])*;", body)
                fields = [a or b for a, b in declared]
                fields = [f for f in fields if f]
                self.assertEqual([f for f in fields if f not in known], [], name)
                self.assertEqual(len(known), len([f for f in fields if f in known]), name)
        self.assertGreater(found, 20)

    def test_every_enumerator_has_its_value(self):
        found = 0
        for text in headers():
            for name, value in re.findall(r"\b(COX_\w+) = (-?\d+)\s*[,}]", text) + re.findall(r"X\((COX_\w+), (-?\d+),", text):
                found += 1
                self.assertEqual(getattr(cox, name[4:]), int(value), name)
        self.assertGreater(found, 60)

    def test_every_status_has_an_exception(self):
        for value, name in cox.ffi.typeof("enum cox_status").elements.items():
            if value:
                problem = cox.errors.error(value, ["why"])
                self.assertIsInstance(problem, cox.Error)
                self.assertEqual((problem.status, problem.name, problem.log), (value, name, ["why"]))
                self.assertIn("why", str(problem))
        self.assertTrue(issubclass(cox.InvalidError, ValueError))
        self.assertTrue(issubclass(cox.NotFoundError, LookupError))

    def test_structs_are_made_of_keyword_arguments(self):
        builder = structs.Builder()
        made = builder.new(
            cox.ffi.typeof("struct cox_session_params"),
            {
                "columns": 7,
                "passes": [cox.Pass("a", halo_rows={"in": 2, "other": 1}, whole=["table"]), {"source": "b"}],
                "warmup": "background",
                "policy_options": {"ratios": [0.25, 0.75], "objective": "latency"},
                "verify": 0.5,
            },
        )
        self.assertEqual((made.columns, made.warmup, made.verify), (7, cox.WARMUP_BACKGROUND, 0.5))
        self.assertEqual(cox.ffi.string(made.passes[1].source), b"b")
        self.assertEqual(made.passes[2].source, cox.ffi.NULL)
        arguments = made.passes[0].arguments
        self.assertEqual([arguments[i].halo_rows for i in range(3)], [2, 1, 0])
        self.assertEqual((arguments[2].whole, arguments[3].name), (True, cox.ffi.NULL))
        options = made.policy_options
        self.assertEqual((options.ratio_count, options.ratios[1], options.objective), (2, 0.75, cox.OBJECTIVE_LATENCY))

    def test_a_wrong_field_is_refused_with_the_right_ones(self):
        with self.assertRaisesRegex(TypeError, "cox_pass has no field 'halo'.*fields: source"):
            cox.Pass("a", halo=1)
        with self.assertRaisesRegex(ValueError, "'never' is no enum cox_warmup; allowed: first_frame, none, background"):
            structs.Builder().new(cox.ffi.typeof("struct cox_session_params"), {"warmup": "never"})
        with self.assertRaisesRegex((TypeError, OverflowError), "columns"):
            structs.Builder().new(cox.ffi.typeof("struct cox_session_params"), {"columns": -1})


if __name__ == "__main__":
    support.main()
