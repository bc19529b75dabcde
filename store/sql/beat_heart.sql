-- Note that a process is alive, and delete processes without a heartbeat for a day. The table has one row for each
-- process; an update changes no index. A process with `bundles_at` knows deliveries in bundles.
WITH forgotten AS (
    DELETE FROM heartbeat
    WHERE beaten_at < now() - interval '1 day'
)

INSERT INTO heartbeat (process, kind, beaten_at, bundles_at)
VALUES (%(process)s, %(kind)s, now(), now())
ON CONFLICT (process) DO UPDATE SET beaten_at = now(), bundles_at = now()
