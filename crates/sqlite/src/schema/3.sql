-- Jobs, each with the head of its chain of events; their tasks; and who waits for whom.

CREATE TABLE jobs (
    seq        INTEGER PRIMARY KEY,
    id         BLOB NOT NULL,
    status     INTEGER NOT NULL,
    attention  INTEGER NOT NULL, -- an agent has more to do
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    state      TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_status ON jobs (status);
CREATE INDEX jobs_created_by ON jobs (created_by);
CREATE INDEX jobs_attention ON jobs (attention) WHERE attention = 1;

-- What moves of a task. Small, so that a look over a whole job reads little.
CREATE TABLE nodes (
    job          INTEGER NOT NULL, -- the seq of its job
    place        INTEGER NOT NULL,
    task         TEXT NOT NULL,
    batch        INTEGER NOT NULL,
    phase        INTEGER NOT NULL,
    marked       INTEGER NOT NULL,
    generation   INTEGER NOT NULL,
    looked       INTEGER NOT NULL,
    open_parents INTEGER NOT NULL,
    execution    BLOB,
    PRIMARY KEY (job, place)
) STRICT, WITHOUT ROWID;

-- The place is part of every index: (job) orders by (job, place).
CREATE UNIQUE INDEX nodes_task ON nodes (job, task);
CREATE INDEX nodes_staged ON nodes (job, batch) WHERE phase = 0;
CREATE INDEX nodes_ready ON nodes (job) WHERE phase = 2;
CREATE INDEX nodes_failed ON nodes (job) WHERE phase = 5;
CREATE INDEX nodes_marked ON nodes (job) WHERE marked = 1;

-- What is written of a task once: what it is, and what it gave.
CREATE TABLE tasks (
    id     INTEGER PRIMARY KEY, -- job << 32 | place
    body   TEXT NOT NULL,
    output TEXT
) STRICT;

-- From a parent to a child that has not been told of its end, by their places.
CREATE TABLE edges (
    job    INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    child  INTEGER NOT NULL,
    PRIMARY KEY (job, parent, child)
) STRICT, WITHOUT ROWID;

-- The seq of the job that an execution is a task of.
ALTER TABLE executions ADD COLUMN job INTEGER;

CREATE INDEX executions_job ON executions (job) WHERE job IS NOT NULL;

-- Since when it is a dead letter, only while it is one.
ALTER TABLE executions ADD COLUMN dead_at INTEGER;

UPDATE executions SET dead_at = json_extract(state, '$.completed_at') WHERE status = 5 AND json_extract(state, '$.dead');

CREATE INDEX executions_dead ON executions (queue, dead_at, id) WHERE dead_at IS NOT NULL;
-- The same for whoever sees only their own.
CREATE INDEX executions_dead_own ON executions (created_by, queue, dead_at, id) WHERE dead_at IS NOT NULL;

-- Where an incident stands, how bad it is, and since when it stands so. Absent from every other record.
ALTER TABLE records ADD COLUMN phase INTEGER;
ALTER TABLE records ADD COLUMN severity INTEGER;
ALTER TABLE records ADD COLUMN since INTEGER;

CREATE INDEX records_standing ON records (phase, severity, since, name) WHERE phase IS NOT NULL;
