-- Every index is paid for by every step, so each one here serves a query that must not scan.
-- The rowid is part of every index: (status) orders by (status, seq).

CREATE TABLE executions (
    seq           INTEGER PRIMARY KEY,
    id            BLOB NOT NULL,
    status        INTEGER NOT NULL,
    priority      INTEGER NOT NULL,
    submitted_at  INTEGER NOT NULL,
    ready_at      INTEGER, -- only while it can be leased
    waiting_until INTEGER, -- only while it stands in line for its lock
    queue         TEXT NOT NULL,
    created_by    TEXT NOT NULL,
    lock          TEXT,
    state         TEXT NOT NULL,
    spec          TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX executions_id ON executions (id);
CREATE INDEX executions_status ON executions (status);
CREATE INDEX executions_created_by ON executions (created_by);
CREATE INDEX executions_lock ON executions (lock) WHERE lock IS NOT NULL;
CREATE INDEX executions_ready ON executions (queue, priority, ready_at, id) WHERE ready_at IS NOT NULL;
CREATE INDEX executions_line ON executions (lock) WHERE waiting_until IS NOT NULL;
CREATE INDEX executions_wait ON executions (waiting_until) WHERE waiting_until IS NOT NULL;

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY,
    entity_kind INTEGER NOT NULL,
    entity      INTEGER NOT NULL, -- the seq of what it is about
    number      INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    id          BLOB NOT NULL,
    mac         BLOB,             -- absent where it is no link of a chain
    context     TEXT NOT NULL,
    properties  TEXT NOT NULL
) STRICT;

CREATE INDEX events_entity ON events (entity_kind, entity);
CREATE INDEX events_kind ON events (kind);

CREATE TABLE locks (
    name    TEXT PRIMARY KEY,
    fence   INTEGER NOT NULL,
    holder  BLOB,
    held_by TEXT,
    since   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX locks_held ON locks (name) WHERE holder IS NOT NULL;

CREATE TABLE receipts (
    id   BLOB PRIMARY KEY,
    at   INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE submit_keys (
    day         INTEGER NOT NULL,
    digest      BLOB NOT NULL,
    execution   BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (day, digest)
) STRICT, WITHOUT ROWID;

-- After these places the steps fell into this hour, until the next row says otherwise.
CREATE TABLE spans (
    seq       INTEGER PRIMARY KEY,
    hour      INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    event     INTEGER NOT NULL
) STRICT;

CREATE INDEX spans_hour ON spans (hour);

CREATE TABLE tallies (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    email      TEXT PRIMARY KEY,
    role       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    hash       BLOB PRIMARY KEY,
    prefix     TEXT NOT NULL,
    email      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked    INTEGER NOT NULL,
    expires_at INTEGER,
    last_used  INTEGER
) STRICT, WITHOUT ROWID;
