-- Every number that was ever given to a version of a scheduler. A version that never passed its validation is gone; its
-- number stays, and is not given again: whatever was said or logged about it means that one.
CREATE TABLE version_numbers (
    scheduler TEXT NOT NULL REFERENCES schedulers (name) ON DELETE CASCADE,
    version   TEXT NOT NULL,
    PRIMARY KEY (scheduler, version)
) STRICT, WITHOUT ROWID;

INSERT INTO version_numbers (scheduler, version) SELECT scheduler, version FROM versions;
