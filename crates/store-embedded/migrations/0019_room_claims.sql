-- What every allocation changes of a room, apart from what else is known of it: rooms that are given away one after the
-- other share a page here, and have one each among the rooms.
CREATE TABLE room_claims (
    room         TEXT PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    -- The last number that was spent on the room, and how many of its allocations are open.
    claim_number INTEGER NOT NULL DEFAULT 0,
    holds        INTEGER NOT NULL DEFAULT 0 CHECK (holds >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO room_claims (room, claim_number, holds) SELECT id, claim_number, holds FROM rooms;

ALTER TABLE rooms DROP COLUMN claim_number;
ALTER TABLE rooms DROP COLUMN holds;
