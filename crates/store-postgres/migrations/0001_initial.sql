-- All that must survive, in one schema.
--
-- Times are microseconds since 1970. Words (states, statuses, purposes) are those of the domain. Documents (recipes,
-- definitions, progress, handles) are JSON text, read and written in one place for all stores. Text is compared byte by
-- byte, as the engine does.

-- How this schema is told from other people's, and what was done to it.
CREATE TABLE maestro_migrations (
    number     BIGINT PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_by TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE store (
    only_row       BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    id             TEXT NOT NULL,
    -- The timeline of the server, and since when. After a failover there is a new one, and what was written last on the one
    -- before may be missing: for some time, nobody may take what somebody may still believe to own.
    timeline       TEXT NOT NULL DEFAULT '',
    timeline_since BIGINT NOT NULL DEFAULT 0
);

INSERT INTO store (id, timeline)
VALUES (gen_random_uuid()::TEXT, left(pg_walfile_name(pg_current_wal_lsn()), 8));

-- The one sequence of fencing tokens. Whoever draws one holds a lock, so they are given in the order of the locks.
CREATE SEQUENCE tokens AS BIGINT CACHE 1;

-- Transactions that were carried out, for the time in which they may be sent again.
CREATE TABLE carried_out (
    id UUID PRIMARY KEY,
    at BIGINT NOT NULL
);

CREATE INDEX carried_out_by_time ON carried_out (at);

CREATE TABLE schedulers (
    name           TEXT COLLATE "C" PRIMARY KEY,
    state          TEXT NOT NULL,
    active_version TEXT COLLATE "C" NOT NULL,
    fleet_size     BIGINT NOT NULL CHECK (fleet_size >= 0),
    created_at     BIGINT NOT NULL,
    -- When autoscaling last asked for fewer rooms.
    last_shrunk_at BIGINT,
    -- Raised by every change of a scheduler's row or rollout: what was decided on an older one is refused.
    revision       BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE versions (
    -- Never used twice: parsed recipes are remembered under it.
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scheduler  TEXT COLLATE "C" NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    version    TEXT COLLATE "C" NOT NULL,
    recipe     TEXT NOT NULL,
    status     TEXT NOT NULL,
    -- Why a version has its status: what it was superseded by, who canceled it, how its rollout failed.
    cause      TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    UNIQUE (scheduler, version)
);

-- Every number that was ever given to a version of a scheduler. A version that never passed its validation is gone; its
-- number stays, and is not given again: whatever was said or logged about it means that one.
CREATE TABLE version_numbers (
    scheduler TEXT COLLATE "C" NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    version   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scheduler, version)
);

-- A row is there as long as rooms of an older major version are being replaced, or if that went wrong.
CREATE TABLE rollouts (
    scheduler        TEXT COLLATE "C" PRIMARY KEY REFERENCES schedulers (name) ON DELETE CASCADE,
    state            TEXT NOT NULL,
    to_version       TEXT NOT NULL,
    from_version     TEXT NOT NULL,
    since            BIGINT NOT NULL,
    fleet_size       BIGINT NOT NULL,
    -- Right after the rollout's last switch: what people changed since is the difference to today's.
    fleet_size_after BIGINT NOT NULL,
    -- When a cycle last took rooms with players.
    occupied_at      BIGINT,
    note             TEXT NOT NULL
);

-- Workers that gave a sign of life.
CREATE TABLE workers (
    name       TEXT COLLATE "C" PRIMARY KEY,
    expires_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Who owns a scheduler, and under which token. An end at 0 is that of the owner's sign of life.
CREATE TABLE ownerships (
    scheduler  TEXT COLLATE "C" PRIMARY KEY REFERENCES schedulers (name) ON DELETE CASCADE,
    owner      TEXT COLLATE "C" NOT NULL,
    token      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX ownerships_by_owner ON ownerships (owner);

-- The order in which operations were enqueued.
CREATE SEQUENCE operation_sequence AS BIGINT CACHE 1;

-- No reference to schedulers: the operation that deleted one can be read after it.
CREATE TABLE operations (
    sequence         BIGINT PRIMARY KEY DEFAULT nextval('operation_sequence'),
    id               UUID NOT NULL UNIQUE,
    scheduler        TEXT COLLATE "C" NOT NULL,
    definition       TEXT COLLATE "C" NOT NULL,
    input            TEXT NOT NULL,
    origin           TEXT NOT NULL,
    person           TEXT,
    priority         BOOLEAN NOT NULL,
    status           TEXT COLLATE "C" NOT NULL,
    -- It holds the slot. Otherwise, if it is in progress, it is parked and waits.
    executing        BOOLEAN NOT NULL DEFAULT FALSE,
    wait_what        TEXT,
    wait_until       BIGINT,
    -- What it waits for did not answer: it is asked again when its time has come, and not before.
    wait_unanswered  BOOLEAN NOT NULL DEFAULT FALSE,
    rollback_then    TEXT CHECK (rollback_then IN ('error', 'canceled')),
    rollback_why     TEXT,
    progress         TEXT NOT NULL,
    data             TEXT NOT NULL DEFAULT 'null',
    reason           TEXT NOT NULL,
    fleet_delta      BIGINT NOT NULL,
    lease_owner      TEXT,
    lease_token      BIGINT,
    lease_expires_at BIGINT,
    cancel_by        TEXT,
    cancel_at        BIGINT,
    took_action      BOOLEAN NOT NULL DEFAULT TRUE,
    created_at       BIGINT NOT NULL,
    ended_at         BIGINT,
    CHECK (NOT executing OR status = 'in_progress'),
    CHECK ((ended_at IS NULL) = (status IN ('pending', 'in_progress'))),
    CHECK (ended_at IS NULL OR lease_token IS NULL)
);

-- The slot: one executing operation per scheduler, whatever a worker believes.
CREATE UNIQUE INDEX operations_slot ON operations (scheduler) WHERE executing;
CREATE INDEX operations_unfinished ON operations (scheduler, sequence) WHERE ended_at IS NULL;
CREATE INDEX operations_final ON operations (scheduler, sequence) WHERE ended_at IS NOT NULL;
CREATE INDEX operations_final_with_action ON operations (scheduler, sequence) WHERE ended_at IS NOT NULL AND took_action;
-- What changes versions is looked for among all operations that are kept.
CREATE INDEX operations_of_versions ON operations (scheduler, sequence)
    WHERE definition IN ('create_new_scheduler_version', 'switch_active_version');
-- Creations and deletions of schedulers that are not done: no more schedulers are made than there are hands for.
CREATE INDEX operations_of_schedulers ON operations (status, executing)
    WHERE ended_at IS NULL AND definition IN ('create_scheduler', 'delete_scheduler');

CREATE TABLE operation_history (
    operation BIGINT NOT NULL REFERENCES operations (sequence) ON DELETE CASCADE,
    position  BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    event     TEXT NOT NULL,
    PRIMARY KEY (operation, position)
);

-- What operations said that began and ended without changing anything, most of them health cycles of idle fleets. A fleet
-- that stays as it is says the same again: only the latest content of a scheduler is used again.
CREATE TABLE no_action_contents (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scheduler  TEXT COLLATE "C" NOT NULL,
    definition TEXT COLLATE "C" NOT NULL,
    reason     TEXT NOT NULL,
    data       TEXT NOT NULL,
    events     TEXT NOT NULL,
    -- When it was said first: nobody says the one before it any more.
    since      BIGINT NOT NULL
);

CREATE INDEX no_action_contents_by_scheduler ON no_action_contents (scheduler, definition, number);

-- There are far more of these than of all other operations, so they are kept apart, as short rows.
CREATE TABLE no_action_operations (
    -- It begins with the time: new rows are the last ones.
    id      UUID PRIMARY KEY,
    content BIGINT NOT NULL,
    -- The operation that was enqueued last before it.
    after   BIGINT NOT NULL,
    at      BIGINT NOT NULL
);

CREATE INDEX no_action_operations_by_content ON no_action_operations (content, id);

-- Named locks that someone holds. One whose time is over stays until another takes it.
CREATE TABLE locks (
    scheduler   TEXT COLLATE "C" NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    kind        TEXT COLLATE "C" NOT NULL,
    holder      TEXT COLLATE "C" NOT NULL,
    -- The holder's id, if it is an operation: its end frees the lock.
    operation   UUID,
    reason      TEXT NOT NULL,
    token       BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    -- Nothing: it ends with its holder and not by time.
    expires_at  BIGINT,
    PRIMARY KEY (scheduler, kind)
);

-- Places in the orders in which locks are given.
CREATE TABLE lock_waiters (
    -- First come, first served.
    sequence  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scheduler TEXT COLLATE "C" NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    kind      TEXT COLLATE "C" NOT NULL,
    holder    TEXT COLLATE "C" NOT NULL,
    operation UUID,
    since     BIGINT NOT NULL,
    until     BIGINT NOT NULL,
    UNIQUE (scheduler, kind, holder)
);

CREATE TABLE rooms (
    -- One room in the whole store: runtimes find rooms by it alone.
    id             TEXT COLLATE "C" PRIMARY KEY,
    scheduler      TEXT COLLATE "C" NOT NULL REFERENCES schedulers (name),
    version        TEXT COLLATE "C" NOT NULL,
    region         TEXT COLLATE "C" NOT NULL,
    purpose        TEXT COLLATE "C" NOT NULL,
    ports          TEXT NOT NULL,
    handle         TEXT,
    stop_operation UUID,
    -- Why a removal takes the room, and from how many matches, beside the words for people: both are read again.
    stop_cause     TEXT,
    stop_matches   BIGINT NOT NULL DEFAULT 0,
    stop_reason    TEXT,
    stop_at        BIGINT,
    operation      UUID NOT NULL,
    token          BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    ended_at       BIGINT,
    ended_how      TEXT,
    ended_cause    TEXT,
    was_ready      BOOLEAN
);

CREATE INDEX rooms_live ON rooms (scheduler, id) WHERE ended_at IS NULL;
CREATE INDEX rooms_ended ON rooms (scheduler, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX rooms_by_operation ON rooms (scheduler, operation, id);
-- Rooms that an operation waits for.
CREATE INDEX rooms_leaving ON rooms (scheduler, stop_operation, id) WHERE ended_at IS NULL AND stop_operation IS NOT NULL;

-- What every allocation changes of a room, apart from what else is known of it. Its row is the lock of the room: whoever
-- ends a room, stops it or gives it away locks it first, several in the order of their ids.
CREATE TABLE room_claims (
    room         TEXT COLLATE "C" PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    -- The last number that was spent on the room, and how many of its allocations are open.
    claim_number BIGINT NOT NULL DEFAULT 0,
    holds        BIGINT NOT NULL DEFAULT 0 CHECK (holds >= 0)
) WITH (fillfactor = 80);

-- Host ports of live rooms: a row is there as long as the port is not free.
CREATE TABLE ports_taken (
    region  TEXT COLLATE "C" NOT NULL,
    port    BIGINT NOT NULL,
    room    TEXT COLLATE "C" NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    -- The room's region. Another one than `region` if that shares its host.
    room_in TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (region, port)
);

CREATE INDEX ports_taken_by_room ON ports_taken (room);

-- Rooms and slots of rooms that were given to matchmakers. No reference to rooms: a room is forgotten before its
-- allocations are. No reference to schedulers either, which would be looked up for every allocation.
CREATE TABLE allocations (
    scheduler      TEXT COLLATE "C" NOT NULL,
    -- It begins with the time: new rows are the last ones of their scheduler.
    id             UUID NOT NULL,
    room           TEXT COLLATE "C" NOT NULL,
    number         BIGINT NOT NULL,
    request_id     TEXT COLLATE "C",
    request_index  BIGINT,
    request_digest TEXT,
    state          TEXT COLLATE "C" NOT NULL,
    cause          TEXT NOT NULL DEFAULT '',
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    ended_at       BIGINT,
    metadata       TEXT,
    PRIMARY KEY (scheduler, id),
    CHECK ((ended_at IS NULL) = (state = 'held')),
    CHECK ((request_id IS NULL) = (request_index IS NULL) AND (request_id IS NULL) = (request_digest IS NULL))
);

CREATE UNIQUE INDEX allocations_by_request ON allocations (scheduler, request_id, request_index)
    WHERE request_id IS NOT NULL;
-- A slot is given away once.
CREATE UNIQUE INDEX allocations_open ON allocations (scheduler, room, number) WHERE ended_at IS NULL;
CREATE INDEX allocations_by_room ON allocations (scheduler, room, id);
CREATE INDEX allocations_by_state ON allocations (scheduler, state, id);
-- Those of requests with an id are kept longer: apart from each other, what is to go is at the beginning of both.
CREATE INDEX allocations_ended ON allocations (scheduler, ended_at, id)
    WHERE ended_at IS NOT NULL AND request_index IS NULL;
CREATE INDEX allocations_ended_of_requests ON allocations (scheduler, ended_at, id)
    WHERE ended_at IS NOT NULL AND request_index IS NOT NULL;

-- Events on their way to matchmakers. A queue belongs to a forwarder, by its name. With an address, it is what a scheduler
-- left behind that is deleted, and has an owner of its own: there is no scheduler any more that somebody could own. Its row
-- is the lock of the queue.
CREATE TABLE event_queues (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scheduler   TEXT COLLATE "C" NOT NULL,
    forwarder   TEXT COLLATE "C" NOT NULL,
    -- How many events wait, and how many are dead: counted with every change, so that nobody has to walk over them.
    waiting     BIGINT NOT NULL DEFAULT 0,
    dead        BIGINT NOT NULL DEFAULT 0,
    address     TEXT,
    timeout_ms  BIGINT,
    owner       TEXT,
    owned_until BIGINT
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX event_queues_by_forwarder ON event_queues (scheduler, forwarder) WHERE address IS NULL;
CREATE INDEX event_queues_left ON event_queues (id) WHERE address IS NOT NULL;

-- The order in which events were queued, or last replayed.
CREATE SEQUENCE outbox_sequence AS BIGINT CACHE 1;

CREATE TABLE outbox (
    sequence   BIGINT PRIMARY KEY DEFAULT nextval('outbox_sequence'),
    queue      BIGINT NOT NULL,
    id         UUID NOT NULL UNIQUE,
    room       TEXT COLLATE "C" NOT NULL,
    payload    TEXT NOT NULL,
    -- It is the first of its room that waits: only that one may be delivered.
    head       BOOLEAN NOT NULL,
    attempts   BIGINT NOT NULL DEFAULT 0,
    next_at    BIGINT NOT NULL,
    last_error TEXT NOT NULL DEFAULT '',
    queued_at  BIGINT NOT NULL,
    dead_at    BIGINT
);

CREATE INDEX outbox_by_room ON outbox (queue, room, sequence) WHERE dead_at IS NULL;
CREATE INDEX outbox_due ON outbox (queue, next_at) WHERE head;
CREATE INDEX outbox_waiting ON outbox (queue, sequence) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (queue, sequence) WHERE dead_at IS NOT NULL;

-- What people have said about regions: a row is there from the first time on.
CREATE TABLE regions (
    name     TEXT COLLATE "C" PRIMARY KEY,
    cordoned BOOLEAN NOT NULL,
    draining BOOLEAN NOT NULL,
    said_by  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    said_at  BIGINT NOT NULL,
    -- When somebody confirmed that the silent rooms of a region are lost.
    lost_at  BIGINT
);

-- What processes that can reach a region saw of it last. They say it again and again, so it may be lost.
CREATE UNLOGGED TABLE region_observations (
    region   TEXT COLLATE "C" NOT NULL,
    observer TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    contact  TEXT NOT NULL,
    -- Since when it can be reached again, if it was away; why it cannot.
    since    BIGINT,
    why      TEXT,
    capacity BIGINT,
    PRIMARY KEY (region, observer)
) WITH (fillfactor = 50);

-- Regions whose rooms are processes, and their hosts.
CREATE TABLE region_hosts (
    region TEXT COLLATE "C" PRIMARY KEY,
    host   TEXT NOT NULL,
    at     BIGINT NOT NULL
);
