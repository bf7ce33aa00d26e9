-- Named locks that someone holds. One whose time is over stays until another takes it.
CREATE TABLE locks (
    scheduler   TEXT NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    holder      TEXT NOT NULL,
    -- The holder's id, if it is an operation: its end frees the lock.
    operation   TEXT,
    reason      TEXT NOT NULL,
    token       INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    -- Nothing: it ends with its holder and not by time.
    expires_at  INTEGER,
    PRIMARY KEY (scheduler, kind)
) STRICT, WITHOUT ROWID;

-- Places in the orders in which locks are given.
CREATE TABLE lock_waiters (
    -- First come, first served.
    sequence  INTEGER PRIMARY KEY,
    scheduler TEXT NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    kind      TEXT NOT NULL,
    holder    TEXT NOT NULL,
    operation TEXT,
    since     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    UNIQUE (scheduler, kind, holder)
) STRICT;

-- Workers that gave a sign of life.
CREATE TABLE workers (
    name       TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
