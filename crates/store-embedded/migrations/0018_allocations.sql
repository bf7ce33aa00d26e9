-- Rooms and slots of rooms that were given to matchmakers.
CREATE TABLE allocations (
    scheduler      TEXT NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    -- Sixteen bytes that begin with the time: new rows are the last ones of their scheduler.
    id             BLOB NOT NULL,
    -- No reference to rooms: a room is forgotten before its allocations are.
    room           TEXT NOT NULL,
    number         INTEGER NOT NULL,
    request_id     TEXT,
    request_index  INTEGER,
    request_digest TEXT,
    state          TEXT NOT NULL,
    cause          TEXT NOT NULL DEFAULT '',
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    metadata       TEXT,
    PRIMARY KEY (scheduler, id),
    CHECK ((ended_at IS NULL) = (state = 'held')),
    CHECK ((request_id IS NULL) = (request_index IS NULL) AND (request_id IS NULL) = (request_digest IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX allocations_by_request ON allocations (scheduler, request_id, request_index)
    WHERE request_id IS NOT NULL;
CREATE INDEX allocations_by_room ON allocations (scheduler, room, id);
-- Also where the open ones are found.
CREATE INDEX allocations_by_state ON allocations (scheduler, state, id);
-- Those of requests with an id are kept longer: apart from each other, what is to go is at the beginning of both. The
-- last column is there so that no row has to be read for what the conditions ask.
CREATE INDEX allocations_ended ON allocations (scheduler, ended_at, id, request_index)
    WHERE ended_at IS NOT NULL AND request_index IS NULL;
CREATE INDEX allocations_ended_of_requests ON allocations (scheduler, ended_at, id, request_index)
    WHERE ended_at IS NOT NULL AND request_index IS NOT NULL;

-- The last number that was spent on a room, and how many of its allocations are open.
ALTER TABLE rooms ADD COLUMN claim_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rooms ADD COLUMN holds INTEGER NOT NULL DEFAULT 0 CHECK (holds >= 0);
