-- Creations and deletions of schedulers that are not done: no more schedulers are made than there are hands for.
CREATE INDEX operations_of_schedulers ON operations (status, executing)
    WHERE ended_at IS NULL AND definition IN ('create_scheduler', 'delete_scheduler');
