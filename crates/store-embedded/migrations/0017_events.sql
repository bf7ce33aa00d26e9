-- Events on their way to matchmakers. A queue belongs to a forwarder, by its name. With an address, it is what a scheduler
-- left behind that is deleted, and has an owner of its own: there is no scheduler any more that somebody could own.
CREATE TABLE event_queues (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    scheduler   TEXT NOT NULL,
    forwarder   TEXT NOT NULL,
    -- How many events wait, and how many are dead: counted with every change, so that nobody has to walk over them.
    waiting     INTEGER NOT NULL DEFAULT 0,
    dead        INTEGER NOT NULL DEFAULT 0,
    address     TEXT,
    timeout_ms  INTEGER,
    owner       TEXT,
    owned_until INTEGER
) STRICT;

CREATE UNIQUE INDEX event_queues_by_forwarder ON event_queues (scheduler, forwarder) WHERE address IS NULL;
CREATE INDEX event_queues_left ON event_queues (id) WHERE address IS NOT NULL;

CREATE TABLE outbox (
    -- In the order in which they were queued.
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    queue      INTEGER NOT NULL,
    id         TEXT NOT NULL,
    room       TEXT NOT NULL,
    payload    TEXT NOT NULL,
    -- It is the first of its room that waits: only that one may be delivered.
    head       INTEGER NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    last_error TEXT NOT NULL DEFAULT '',
    queued_at  INTEGER NOT NULL,
    dead_at    INTEGER
) STRICT;

CREATE UNIQUE INDEX outbox_by_id ON outbox (id);
CREATE INDEX outbox_by_room ON outbox (queue, room, sequence) WHERE dead_at IS NULL;
CREATE INDEX outbox_due ON outbox (queue, next_at) WHERE head = 1;
CREATE INDEX outbox_waiting ON outbox (queue, sequence) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (queue, sequence) WHERE dead_at IS NOT NULL;
