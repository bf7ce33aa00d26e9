-- What a parked operation waits for did not answer: it is asked again when its time has come, and not before.
ALTER TABLE operations ADD COLUMN wait_unanswered INTEGER NOT NULL DEFAULT 0;
