"""Databases of cox-lab as data frames.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import coxswain as cox

import support

try:
    import pandas
except ImportError:
    print("skipped, because pandas is missing (Debian: python3-pandas)")
    sys.exit(77)
LAB = os.path.join(support.BIN, "cox-lab")
if not os.path.exists(LAB):
    print("skipped, because cox-lab is not built")
    sys.exit(77)


class Databases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "a run.db")
        command = [LAB, "sim", "--scenario", "constant-2", "--seeds", "1", "--frames", "40", "--record", cls.path]
        subprocess.run(command, check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_tables_and_views_are_data_frames(self):
        with cox.lab.open(self.path) as database:
            frames, bands = database["frame"], database["band"]
            self.assertIsInstance(frames, pandas.DataFrame)
            self.assertGreater(len(frames), 10)
            self.assertEqual(bands.groupby(["session", "frame"])["rows"].sum().min(), frames["rows"].min())
            self.assertIn("p50_ms", database["summary"])
            for table in database.tables:
                self.assertIsInstance(database[table], pandas.DataFrame, table)

    def test_queries_have_parameters(self):
        with cox.lab.open(self.path) as database:
            found = database.query("SELECT count(*) AS n FROM frame WHERE session = ?", (1,))
            self.assertEqual(found["n"][0], (database["frame"]["session"] == 1).sum())

    def test_other_files_are_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "there is no database"):
            cox.lab.open(self.path + "x")
        other = os.path.join(self.folder.name, "other.db")
        connection = sqlite3.connect(other)
        connection.execute("CREATE TABLE a(b)")
        connection.close()
        with self.assertRaisesRegex(ValueError, "is no database of cox-lab: its application_id is 0x0"):
            cox.lab.open(other)
        with open(other, "w", encoding="utf-8") as file:
            file.write("this is text, not a database, and long enough to be looked at" * 20)
        with self.assertRaisesRegex(ValueError, "not a database"):
            cox.lab.open(other)
        with cox.lab.open(self.path) as database:
            with self.assertRaisesRegex(KeyError, "there is no table 'nothing'; tables: band, "):
                database["nothing"]
            with self.assertRaisesRegex(Exception, "readonly"):
                database.query("DELETE FROM frame")


if __name__ == "__main__":
    support.main()
