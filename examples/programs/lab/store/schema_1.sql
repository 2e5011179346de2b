-- What was different in version 1 of the session database's schema, applied to version 2 of it.
-- SPDX-License-Identifier: Apache-2.0
DROP TABLE call;
DROP TABLE call_profile;
DROP TABLE frame;

CREATE TABLE call(
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('init', 'recall', 'split', 'next', 'observe', 'frame')),
    frame INTEGER,
    device INTEGER,
    first_row INTEGER,
    rows INTEGER,
    wall_ns INTEGER,
    queue_ns INTEGER,
    kernel_ns INTEGER,
    period_ns INTEGER,
    joules REAL,
    flags INTEGER,
    late INTEGER,
    progress TEXT,
    answer TEXT,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;

CREATE TABLE call_model(
    session INTEGER NOT NULL,
    device INTEGER NOT NULL,
    frames REAL NOT NULL,
    fixed_ns REAL NOT NULL,
    launch_ns REAL NOT NULL,
    ns_per_row REAL NOT NULL,
    solo_ns REAL NOT NULL,
    share REAL NOT NULL,
    PRIMARY KEY (session, device)
) WITHOUT ROWID;

CREATE TABLE frame(
    session INTEGER NOT NULL REFERENCES session,
    frame INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    period_ns INTEGER NOT NULL,
    predicted_ns INTEGER NOT NULL,
    rival_ns INTEGER NOT NULL,
    reason INTEGER NOT NULL REFERENCES reason,
    pool_rows INTEGER NOT NULL,
    status INTEGER NOT NULL,
    joules REAL,
    PRIMARY KEY (session, frame)
) WITHOUT ROWID;
