-- All that must survive, in one file.
--
-- Times are microseconds since 1970. Words (states, statuses, purposes) are those of the domain. Documents (recipes,
-- definitions, progress, handles) are JSON text, read and written in one place for all stores.

-- "MAES": how a file is told from other people's SQLite databases.
PRAGMA application_id = 1296123219;

CREATE TABLE store (
    only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
    id         TEXT NOT NULL,
    -- The one sequence of fencing tokens.
    last_token INTEGER NOT NULL
) STRICT;

CREATE TABLE schedulers (
    name           TEXT PRIMARY KEY,
    state          TEXT NOT NULL,
    active_version TEXT NOT NULL,
    fleet_size     INTEGER NOT NULL CHECK (fleet_size >= 0),
    created_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    -- Never used twice: parsed recipes are remembered under it.
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    scheduler  TEXT NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    version    TEXT NOT NULL,
    recipe     TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (scheduler, version)
) STRICT;

-- Who owns a scheduler, and under which token.
CREATE TABLE ownerships (
    scheduler  TEXT PRIMARY KEY REFERENCES schedulers (name) ON DELETE CASCADE,
    owner      TEXT NOT NULL,
    token      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX ownerships_by_owner ON ownerships (owner);

-- No reference to schedulers: the operation that deleted one can be read after it.
CREATE TABLE operations (
    -- The order in which they were enqueued.
    sequence         INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT NOT NULL UNIQUE,
    scheduler        TEXT NOT NULL,
    definition       TEXT NOT NULL,
    input            TEXT NOT NULL,
    origin           TEXT NOT NULL CHECK (origin IN ('person', 'controller', 'engine')),
    person           TEXT,
    priority         INTEGER NOT NULL,
    status           TEXT NOT NULL,
    -- It holds the slot. Otherwise, if it is in progress, it is parked and waits.
    executing        INTEGER NOT NULL DEFAULT 0,
    wait_what        TEXT,
    wait_until       INTEGER,
    rollback_then    TEXT CHECK (rollback_then IN ('error', 'canceled')),
    rollback_why     TEXT,
    progress         TEXT NOT NULL,
    data             TEXT NOT NULL,
    reason           TEXT NOT NULL,
    fleet_delta      INTEGER NOT NULL,
    lease_owner      TEXT,
    lease_token      INTEGER,
    lease_expires_at INTEGER,
    cancel_by        TEXT,
    cancel_at        INTEGER,
    took_action      INTEGER NOT NULL DEFAULT 1,
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    CHECK (executing = 0 OR status = 'in_progress'),
    CHECK ((ended_at IS NULL) = (status IN ('pending', 'in_progress'))),
    CHECK (ended_at IS NULL OR lease_token IS NULL)
) STRICT;

-- The slot: one executing operation per scheduler, whatever a worker believes.
CREATE UNIQUE INDEX operations_slot ON operations (scheduler) WHERE executing = 1;
CREATE INDEX operations_unfinished ON operations (scheduler, sequence) WHERE ended_at IS NULL;
CREATE INDEX operations_final ON operations (scheduler, sequence) WHERE ended_at IS NOT NULL;
CREATE INDEX operations_final_with_action ON operations (scheduler, sequence)
    WHERE ended_at IS NOT NULL AND took_action = 1;

CREATE TABLE operation_history (
    operation INTEGER NOT NULL REFERENCES operations (sequence) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    event     TEXT NOT NULL,
    PRIMARY KEY (operation, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE rooms (
    -- One room in the whole store: runtimes find rooms by it alone.
    id             TEXT PRIMARY KEY,
    scheduler      TEXT NOT NULL REFERENCES schedulers (name),
    version        TEXT NOT NULL,
    region         TEXT NOT NULL,
    purpose        TEXT NOT NULL,
    ports          TEXT NOT NULL,
    handle         TEXT,
    stop_operation TEXT,
    stop_reason    TEXT,
    stop_at        INTEGER,
    operation      TEXT NOT NULL,
    token          INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    ended_how      TEXT,
    ended_cause    TEXT,
    was_ready      INTEGER
) STRICT;

CREATE INDEX rooms_live ON rooms (scheduler, id) WHERE ended_at IS NULL;
CREATE INDEX rooms_ended ON rooms (scheduler, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX rooms_by_operation ON rooms (scheduler, operation, id);

-- Host ports of live rooms: a row is there as long as the port is not free.
CREATE TABLE ports_taken (
    region TEXT NOT NULL,
    port   INTEGER NOT NULL,
    room   TEXT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    PRIMARY KEY (region, port)
) STRICT, WITHOUT ROWID;

CREATE INDEX ports_taken_by_room ON ports_taken (room);
