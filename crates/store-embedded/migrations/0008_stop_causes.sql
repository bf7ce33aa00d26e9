-- Why a room was asked to go, and how many matches were in it then, beside the words for people: both are read again.
ALTER TABLE rooms ADD COLUMN stop_cause TEXT;
ALTER TABLE rooms ADD COLUMN stop_matches INTEGER NOT NULL DEFAULT 0;
UPDATE rooms SET stop_cause = 'expired_room' WHERE stop_reason LIKE 'expired\_room%' ESCAPE '\';
UPDATE rooms SET stop_cause = 'rolling_update_replace', stop_matches = 1
WHERE stop_reason LIKE 'rolling\_update\_replace, with players in it%' ESCAPE '\';
