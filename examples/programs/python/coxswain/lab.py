"""Databases of cox-lab as data frames of pandas.

    database = coxswain.lab.open("run.db")
    database.tables                     # names of tables and views
    database["summary"]                 # a table or a view as a DataFrame
    database.query("SELECT … WHERE session = ?", (1,))

docs/reference/session-db.md explains the tables.
SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import sqlite3

APPLICATION = 0x434F584C  # PRAGMA application_id of cox-lab


class Database:
    """A database of cox-lab, read only. Any thread may use it, one at a time."""

    def __init__(self, path):
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no database {path}")
        uri = pathlib.Path(path).resolve().as_uri() + "?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        try:
            (found,) = self._connection.execute("PRAGMA application_id").fetchone()
        except sqlite3.DatabaseError as problem:
            self._connection.close()
            raise ValueError(f"{path}: {problem}") from None
        if found != APPLICATION:
            self._connection.close()
            raise ValueError(f"{path} is no database of cox-lab: its application_id is {found:#x}, not {APPLICATION:#x}")

    @property
    def tables(self):
        """The names of all tables and views."""
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [name for (name,) in rows]

    def query(self, sql, parameters=()):
        """The result of a query as a DataFrame."""
        import pandas  # pylint: disable=import-outside-toplevel  # only this needs it

        return pandas.read_sql_query(sql, self._connection, params=parameters)

    def __getitem__(self, table):
        if table not in self.tables:
            raise KeyError(f"there is no table '{table}'; tables: {', '.join(self.tables)}")
        return self.query(f'SELECT * FROM "{table}"')

    def close(self):
        """Close the database."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open(path):  # pylint: disable=redefined-builtin  # coxswain.lab.open
    """Open a database that cox-lab has recorded."""
    return Database(path)
