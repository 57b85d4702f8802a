-- Terms of queues and the permits of limited ones are records of kinds that an earlier program does not know: this version keeps it out.

CREATE INDEX executions_queue ON executions (queue);

-- What workers last said of themselves. Written every few seconds and read as a whole.
CREATE TABLE workers (
    id      BLOB PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
