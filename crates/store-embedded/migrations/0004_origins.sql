-- Who asked for an operation is a word of the domain like the others, `panic` among them now: no list of them here,
-- which would have to be changed with each new one.
ALTER TABLE operations ADD COLUMN asked_by TEXT NOT NULL DEFAULT 'engine';
UPDATE operations SET asked_by = origin;
ALTER TABLE operations DROP COLUMN origin;
ALTER TABLE operations RENAME COLUMN asked_by TO origin;
