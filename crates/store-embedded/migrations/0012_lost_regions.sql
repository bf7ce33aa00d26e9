-- When somebody confirmed that the silent rooms of a region are lost.
ALTER TABLE regions ADD COLUMN lost_at INTEGER;
