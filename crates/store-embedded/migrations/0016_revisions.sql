-- Raised by every change of a scheduler's row or rollout: what was decided on an older one is refused.
ALTER TABLE schedulers ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
