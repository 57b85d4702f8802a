-- What executions cost, summed up by day. Derived from the event log up to a place, so that no total needs a scan.

CREATE TABLE costs (
    owner      TEXT NOT NULL, -- empty: of all users
    dimension  TEXT NOT NULL,
    day        INTEGER NOT NULL,
    name       TEXT NOT NULL,
    executions INTEGER NOT NULL,
    micro_usd  INTEGER NOT NULL,
    PRIMARY KEY (owner, dimension, day, name)
) STRICT, WITHOUT ROWID;

-- The place in the event log up to which they count.
CREATE TABLE costs_counted (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    place INTEGER NOT NULL
) STRICT;

INSERT INTO costs_counted (only, place) VALUES (1, 0);
