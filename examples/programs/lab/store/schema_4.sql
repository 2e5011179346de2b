-- What was different in version 4 of the session database's schema, applied to version 5 of it.
-- SPDX-License-Identifier: Apache-2.0
DROP VIEW summary;
DROP TABLE call_profile;
DROP TABLE call;
DROP TABLE shadow;
DROP TABLE band;
DROP TABLE frame_pass;
DROP TABLE frame;
DROP TABLE pass;
DROP TABLE run;

CREATE TABLE run(
    run INTEGER PRIMARY KEY,
    source TEXT NOT NULL CHECK (source IN ('devices', 'simulation')),
    started_at TEXT NOT NULL,
    version TEXT NOT NULL,
    host TEXT,
    system TEXT,
    command TEXT,
    kernel TEXT,
    columns INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    granule INTEGER NOT NULL,
    in_flight INTEGER NOT NULL,
    frames INTEGER NOT NULL,
    objective TEXT NOT NULL CHECK (objective IN ('time', 'energy')),
    deadline_ns INTEGER NOT NULL,
    meter TEXT,
    foreign_load REAL,
    busy INTEGER,
    finished INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE frame(
    session INTEGER NOT NULL REFERENCES session,
    frame INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    period_ns INTEGER NOT NULL,
    predicted_ns INTEGER NOT NULL,
    alternative_ns INTEGER NOT NULL,
    reason INTEGER NOT NULL REFERENCES reason,
    pool_rows INTEGER NOT NULL,
    status INTEGER NOT NULL,
    joules REAL,
    PRIMARY KEY (session, frame)
) WITHOUT ROWID;

CREATE TABLE call(
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('init', 'load_profile', 'split', 'next', 'observe', 'frame')),
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

CREATE TABLE band(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    band INTEGER NOT NULL,
    device INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    queue_ns INTEGER NOT NULL,
    kernel_ns INTEGER NOT NULL,
    predicted_ns INTEGER NOT NULL,
    on_demand INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status INTEGER NOT NULL,
    PRIMARY KEY (session, frame, band)
) WITHOUT ROWID;

CREATE TABLE shadow(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    device INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    PRIMARY KEY (session, frame, device, first_row)
) WITHOUT ROWID;

CREATE TABLE call_profile(
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

CREATE VIEW summary AS
WITH ranked AS (
    SELECT session, phase, period_ns, joules,
        row_number() OVER (PARTITION BY session, phase ORDER BY period_ns) AS place,
        count(*) OVER (PARTITION BY session, phase) AS n
    FROM frame WHERE status = 0
), figure AS (
    SELECT session, phase, count(*) AS frames, avg(period_ns) AS mean_ns,
        min(CASE WHEN 2 * place >= n THEN period_ns END) AS p50_ns,
        min(CASE WHEN 100 * place >= 99 * n THEN period_ns END) AS p99_ns,
        avg(joules) AS joules
    FROM ranked GROUP BY session, phase
), oracle AS (
    SELECT run, phase, ns, mean_ns FROM reference WHERE kind = 'oracle' AND frames > 0
), alone AS (
    SELECT run, phase, min(ns) AS best_ns, min(mean_ns) AS best_mean_ns, sum(1.0 / ns) AS rate
    FROM reference WHERE kind = 'solo' AND frames > 0 GROUP BY run, phase
)
SELECT s.run, s.session, s.policy, s.repeat, f.phase, p.text AS phase_text, f.frames,
    f.mean_ns / 1e6 AS mean_ms, f.p50_ns / 1e6 AS p50_ms, f.p99_ns / 1e6 AS p99_ms,
    f.mean_ns / o.mean_ns AS mean_over_oracle, f.p50_ns / o.ns AS p50_over_oracle,
    f.mean_ns / a.best_mean_ns AS mean_over_solo, f.p50_ns / a.best_ns AS p50_over_solo,
    1.0 / (f.p50_ns * a.rate) AS efficiency,
    f.joules AS joules_per_frame
FROM figure f
JOIN session s ON s.session = f.session AND s.kind = 'policy'
LEFT JOIN phase p ON p.run = s.run AND p.phase = f.phase
LEFT JOIN oracle o ON o.run = s.run AND o.phase = f.phase
LEFT JOIN alone a ON a.run = s.run AND a.phase = f.phase;
