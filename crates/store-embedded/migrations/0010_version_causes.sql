-- Why a version has its status: what it was superseded by, who canceled it, how its rollout failed.
ALTER TABLE versions ADD COLUMN cause TEXT NOT NULL DEFAULT '';

-- What changes versions is looked for among all operations that are kept.
CREATE INDEX operations_of_versions ON operations (scheduler, sequence)
    WHERE definition IN ('create_new_scheduler_version', 'switch_active_version');
