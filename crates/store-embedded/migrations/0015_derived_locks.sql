-- These two are not stored any more: nobody can hold the one, and an operation in progress has the other.
DELETE FROM locks WHERE kind IN ('scale', 'termination');
DELETE FROM lock_waiters WHERE kind IN ('scale', 'termination');
