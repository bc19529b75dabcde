-- Note how a nightly run ended. The process that notes it holds the lock of the nightly run, so no other run is under
-- way.
UPDATE nightly_run
SET
    ended_at = now(), failure = %(failure)s,
    failures = failures + CASE WHEN %(failure)s::text IS NULL THEN 0 ELSE 1 END
WHERE day = %(day)s
