-- When autoscaling last asked for fewer rooms.
ALTER TABLE schedulers ADD COLUMN last_shrunk_at INTEGER;

-- A row is there as long as rooms of an older major version are being replaced, or if that went wrong.
CREATE TABLE rollouts (
    scheduler    TEXT PRIMARY KEY REFERENCES schedulers (name) ON DELETE CASCADE,
    state        TEXT NOT NULL,
    to_version   TEXT NOT NULL,
    from_version TEXT NOT NULL,
    since        INTEGER NOT NULL,
    fleet_size   INTEGER NOT NULL,
    note         TEXT NOT NULL
) STRICT, WITHOUT ROWID;
