-- The fleet size right after the rollout's last switch: what people changed since is the difference to today's. Of a
-- rollout that is under way, nobody knows what was changed before now.
ALTER TABLE rollouts ADD COLUMN fleet_size_after INTEGER NOT NULL DEFAULT 0;
UPDATE rollouts SET fleet_size_after =
    coalesce((SELECT fleet_size FROM schedulers WHERE schedulers.name = rollouts.scheduler), fleet_size);

-- When a cycle last took rooms with players.
ALTER TABLE rollouts ADD COLUMN occupied_at INTEGER;
