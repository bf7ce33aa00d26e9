-- Operations that began and ended without changing anything, most of them health cycles of idle fleets. There are far more
-- of them than of all others, so they are kept apart, without indexes: short rows in the order of time, where those of a
-- thousand schedulers share a few pages.
CREATE TABLE no_action_operations (
    -- Sixteen bytes that begin with the time: new rows are the last ones.
    id      BLOB PRIMARY KEY,
    content INTEGER NOT NULL,
    -- The operation that was enqueued last before it.
    after   INTEGER NOT NULL,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What they said. A fleet that stays as it is says the same again: only the latest content of a scheduler is used again.
CREATE TABLE no_action_contents (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    scheduler  TEXT NOT NULL,
    definition TEXT NOT NULL,
    reason     TEXT NOT NULL,
    data       TEXT NOT NULL,
    events     TEXT NOT NULL,
    -- When it was said first: nobody says the one before it any more.
    since      INTEGER NOT NULL
) STRICT;

CREATE INDEX no_action_contents_by_scheduler ON no_action_contents (scheduler, definition, number);

-- Rooms that an operation waits for.
CREATE INDEX rooms_leaving ON rooms (scheduler, stop_operation, id) WHERE ended_at IS NULL AND stop_operation IS NOT NULL;
