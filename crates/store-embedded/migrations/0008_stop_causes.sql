-- Why a removal takes a room, and from how many matches, beside the words for people: both are read again.
ALTER TABLE rooms ADD COLUMN stop_cause TEXT;
ALTER TABLE rooms ADD COLUMN stop_matches INTEGER NOT NULL DEFAULT 0;
UPDATE rooms SET stop_cause = 'scale_down' WHERE stop_reason LIKE 'scale\_down%' ESCAPE '\';
UPDATE rooms SET stop_cause = 'expired_room' WHERE stop_reason LIKE 'expired\_room%' ESCAPE '\';
UPDATE rooms SET stop_cause = 'region_drain' WHERE stop_reason LIKE 'region\_drain%' ESCAPE '\';
UPDATE rooms SET stop_cause = 'rolling_update_replace' WHERE stop_reason LIKE 'rolling\_update\_replace%' ESCAPE '\';
UPDATE rooms SET stop_matches = 1 WHERE stop_reason LIKE 'rolling\_update\_replace, with players in it%' ESCAPE '\';
