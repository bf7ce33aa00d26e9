-- What people have said about regions: a row is there from the first time on.
CREATE TABLE regions (
    name     TEXT PRIMARY KEY,
    cordoned INTEGER NOT NULL,
    draining INTEGER NOT NULL,
    said_by  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    said_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
