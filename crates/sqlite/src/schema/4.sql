-- What workers last said of themselves. Written every few seconds and read as a whole.
CREATE TABLE workers (
    id      BLOB PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
