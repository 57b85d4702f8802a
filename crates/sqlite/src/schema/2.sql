-- What people manage, each with the head of its chain of events. A record that was removed keeps its row, for its chain goes on.

CREATE TABLE records (
    seq         INTEGER PRIMARY KEY,
    kind        INTEGER NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    chain_count INTEGER NOT NULL,
    chain_mac   BLOB NOT NULL,
    body        TEXT -- absent after it was removed
) STRICT;

CREATE UNIQUE INDEX records_name ON records (kind, name);

-- A hint, written at most once a minute for a key.
CREATE TABLE key_uses (
    hash BLOB PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a client's own key made, where that is no execution.
ALTER TABLE submit_keys ADD COLUMN made TEXT;

INSERT INTO records (kind, name, version, chain_count, chain_mac, body)
SELECT 0, email, 1, 0, zeroblob(32), json_object('user', json_object(
    'email', email,
    'role', role,
    'created_at', created_at,
    'created_by', 'server',
    'created_by_request_id', '',
    'modified_by_request_id', '',
    'revoked_at', CASE WHEN revoked THEN created_at END,
    'keys', (SELECT json_group_array(json_object(
        'hash', lower(hex(hash)),
        'prefix', prefix,
        'created_at', keys.created_at,
        'expires_at', expires_at,
        'revoked_at', CASE WHEN keys.revoked THEN keys.created_at END)) FROM keys WHERE keys.email = users.email)))
FROM users;

INSERT INTO records (kind, name, version, chain_count, chain_mac, body)
SELECT 1, lower(hex(hash)), 1, 0, zeroblob(32), json_object('key', email) FROM keys;

INSERT INTO records (kind, name, version, chain_count, chain_mac, body)
SELECT 3, 'only', 1, 0, zeroblob(32), json_object('admins', json_group_array(email))
FROM (SELECT email FROM users WHERE role = 'admin' AND NOT revoked ORDER BY created_at, email)
HAVING count(*) > 0;

INSERT INTO key_uses (hash, at) SELECT hash, last_used FROM keys WHERE last_used IS NOT NULL;

DROP TABLE keys;
DROP TABLE users;
