-- The session database of cox-lab; docs/reference/session-db.md explains it.
-- Times are nanoseconds, rows are frame rows, frames count from 0 in each session.
-- SPDX-License-Identifier: Apache-2.0
PRAGMA application_id = 0x434F584C;
PRAGMA user_version = 1;

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
    objective TEXT NOT NULL CHECK (objective IN ('throughput', 'latency', 'energy')),
    deadline_ns INTEGER NOT NULL,
    meter TEXT,
    foreign_load REAL,
    busy INTEGER,
    finished INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE setting(
    run INTEGER NOT NULL REFERENCES run,
    name TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE device(
    run INTEGER NOT NULL REFERENCES run,
    device INTEGER NOT NULL,
    name TEXT,
    platform TEXT,
    driver TEXT,
    type TEXT,
    mode TEXT,
    PRIMARY KEY (run, device)
) WITHOUT ROWID;

CREATE TABLE pass(
    run INTEGER NOT NULL REFERENCES run,
    pass INTEGER NOT NULL,
    name TEXT,
    rows INTEGER NOT NULL,
    stages INTEGER,
    PRIMARY KEY (run, pass)
) WITHOUT ROWID;

CREATE TABLE phase(
    run INTEGER NOT NULL REFERENCES run,
    phase INTEGER NOT NULL,
    first_frame INTEGER NOT NULL,
    end_frame INTEGER NOT NULL,
    text TEXT,
    PRIMARY KEY (run, phase)
) WITHOUT ROWID;

CREATE TABLE disturbance(
    run INTEGER NOT NULL REFERENCES run,
    disturbance INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT,
    first_frame INTEGER NOT NULL,
    end_frame INTEGER NOT NULL,
    real INTEGER NOT NULL,
    note TEXT,
    PRIMARY KEY (run, disturbance)
) WITHOUT ROWID;

CREATE TABLE session(
    session INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run,
    kind TEXT NOT NULL CHECK (kind IN ('policy', 'solo', 'sweep')),
    policy TEXT,
    device INTEGER,
    ratios TEXT,
    repeat INTEGER NOT NULL
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
    latency_ns INTEGER NOT NULL,
    deadline_ns INTEGER NOT NULL,
    joules REAL,
    PRIMARY KEY (session, frame)
) WITHOUT ROWID;

CREATE TABLE frame_pass(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    reason INTEGER NOT NULL REFERENCES reason,
    predicted_ns INTEGER NOT NULL,
    alternative_ns INTEGER NOT NULL,
    pool_rows INTEGER NOT NULL,
    PRIMARY KEY (session, frame, pass)
) WITHOUT ROWID;

CREATE TABLE band(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    band INTEGER NOT NULL,
    pass INTEGER NOT NULL,
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

CREATE TABLE notice(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    band INTEGER NOT NULL,
    noticed_ns INTEGER NOT NULL,
    clock_error_ns INTEGER,
    PRIMARY KEY (session, frame, band)
) WITHOUT ROWID;

CREATE TABLE shadow(
    session INTEGER NOT NULL,
    frame INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    device INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    PRIMARY KEY (session, frame, pass, device, first_row)
) WITHOUT ROWID;

CREATE TABLE reference(
    run INTEGER NOT NULL REFERENCES run,
    phase INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('solo', 'oracle')),
    device INTEGER,
    ns REAL NOT NULL,
    mean_ns REAL,
    p90_ns REAL,
    frames INTEGER NOT NULL,
    ratios TEXT
);
CREATE UNIQUE INDEX reference_once ON reference(run, phase, kind, ifnull(device, -1));

CREATE TABLE reason(
    reason INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);

-- Telemetry: what the machine said of itself meanwhile.
CREATE TABLE telemetry_source(
    run INTEGER NOT NULL REFERENCES run,
    source INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    part TEXT NOT NULL,
    unit TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (run, source)
) WITHOUT ROWID;

CREATE TABLE telemetry(
    run INTEGER NOT NULL,
    source INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    value NOT NULL,
    PRIMARY KEY (run, source, at_ns)
) WITHOUT ROWID;

CREATE TABLE telemetry_session(
    session INTEGER PRIMARY KEY REFERENCES session,
    start_ns INTEGER NOT NULL
);

-- The tape: what a policy was told and what it answered, call by call.
CREATE TABLE call(
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('init', 'load_profile', 'split', 'next', 'observe', 'frame')),
    frame INTEGER,
    device INTEGER,
    first_row INTEGER,
    rows INTEGER,
    wall_ns INTEGER,
    queue_ns INTEGER,
    kernel_ns INTEGER,
    late_ns INTEGER,
    period_ns INTEGER,
    joules REAL,
    flags INTEGER,
    progress TEXT,
    answer TEXT,
    waited_ns INTEGER,
    latency_ns INTEGER,
    deadline_ns INTEGER,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;

CREATE TABLE call_view(
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    granule INTEGER NOT NULL,
    min_band_rows INTEGER NOT NULL,
    device_count INTEGER NOT NULL,
    in_flight INTEGER NOT NULL,
    pool INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;

CREATE TABLE call_device(
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    device INTEGER NOT NULL,
    usable INTEGER NOT NULL,
    hint REAL NOT NULL,
    solo_ns INTEGER NOT NULL,
    PRIMARY KEY (session, call, device)
) WITHOUT ROWID;

CREATE TABLE call_options(
    session INTEGER PRIMARY KEY,
    ratios TEXT,
    device INTEGER NOT NULL,
    objective INTEGER NOT NULL,
    deadline_ns INTEGER NOT NULL,
    chunk_rows INTEGER NOT NULL
);

CREATE TABLE call_profile(
    session INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    device INTEGER NOT NULL,
    frames REAL NOT NULL,
    fixed_ns REAL NOT NULL,
    launch_ns REAL NOT NULL,
    ns_per_row REAL NOT NULL,
    solo_ns REAL NOT NULL,
    share REAL NOT NULL,
    PRIMARY KEY (session, pass, device)
) WITHOUT ROWID;

CREATE VIEW summary AS
WITH ranked AS (
    SELECT session, phase, period_ns, joules, CASE WHEN deadline_ns > 0 THEN latency_ns > deadline_ns END AS late,
        row_number() OVER (PARTITION BY session, phase ORDER BY period_ns) AS place,
        count(*) OVER (PARTITION BY session, phase) AS n
    FROM frame WHERE status = 0
), figure AS (
    SELECT session, phase, count(*) AS frames, avg(period_ns) AS mean_ns,
        min(CASE WHEN 2 * place >= n THEN period_ns END) AS p50_ns,
        min(CASE WHEN 100 * place >= 99 * n THEN period_ns END) AS p99_ns,
        avg(joules) AS joules, avg(late) AS over_deadline
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
    f.joules AS joules_per_frame, f.over_deadline
FROM figure f
JOIN session s ON s.session = f.session AND s.kind = 'policy'
LEFT JOIN phase p ON p.run = s.run AND p.phase = f.phase
LEFT JOIN oracle o ON o.run = s.run AND o.phase = f.phase
LEFT JOIN alone a ON a.run = s.run AND a.phase = f.phase;
