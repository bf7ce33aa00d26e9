-- The data directory that this store belongs to. A copy that finds the original still there becomes a store of its own.
ALTER TABLE store ADD COLUMN directory TEXT;
