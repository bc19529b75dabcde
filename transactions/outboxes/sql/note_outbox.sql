-- Note the progress of an outbox: rows drained and refused since the last note, waiting rows, and a failure, whose
-- `failed_at` is the first failure since the last success or change. A process that stands by, without the turn, knows
-- nothing of a failure and keeps it. A process that does not know the outbox's new URL yet changes nothing. The time of
-- the oldest row is by the broker's clock, and null without a row; a row whose time is in the future counts as new.
UPDATE outbox AS o
SET
    drained = o.drained + %(drained)s,
    refused = o.refused + %(refused)s,
    refused_at = CASE WHEN %(refused)s::bigint > 0 THEN now() ELSE o.refused_at END,
    drained_at = CASE WHEN %(drained)s::bigint + %(refused)s > 0 THEN now() ELSE o.drained_at END,
    waiting = coalesce(%(waiting)s::bigint, o.waiting),
    oldest_at = CASE
        WHEN %(waiting)s::bigint IS NULL THEN o.oldest_at
        WHEN %(waited_seconds)s::double precision >= 0
            THEN now() - %(waited_seconds)s::double precision * interval '1 second'
        WHEN %(waited_seconds)s::double precision < 0 THEN now()
    END,
    outdated = coalesce(%(outdated)s::boolean, o.outdated),
    looked_at = CASE WHEN %(failure)s::text IS NULL THEN now() ELSE o.looked_at END,
    failure = CASE WHEN %(stands_by)s::boolean THEN o.failure ELSE %(failure)s::text END,
    failed_at = CASE
        WHEN %(stands_by)s::boolean THEN o.failed_at
        WHEN %(failure)s::text IS NOT NULL THEN coalesce(o.failed_at, now())
    END
WHERE o.id = %(id)s AND o.source_url = %(url)s
