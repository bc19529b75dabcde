"""Bundles wait for earlier versions: a heartbeat of a process that knows no bundles takes all bundles apart.

An earlier version writes `beaten_at` and leaves `bundles_at`, also in the row of a process whose name is the same. Its
first heartbeat waits for the transactions that use bundles, and holds the others up until it is committed: they see the
heartbeat, and make no bundle. Later heartbeats wait for nothing, and take apart what is left.
"""

from django.db import migrations

# Bundles that one heartbeat takes apart, so that it ends within the time for a request.
MOST = 1000

TAKE_APART = """
CREATE FUNCTION take_bundles_apart(most integer) RETURNS void LANGUAGE sql AS $$
WITH gone AS (
    DELETE FROM bundle
    WHERE ctid = any(array(SELECT b.ctid FROM bundle AS b ORDER BY b.expires_at LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING *
)
INSERT INTO receipt (
    group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state
)
SELECT
    g.group_id, g.topic_id, g.queue_id, g.first_offset + p.place, g.nonce, g.expires_at, g.received_at, g.log_segment,
    g.log_offsets[p.number], coalesce(g.tags_codes[p.number], 0), 0, g.origin_topic_id, 'flight'
FROM gone AS g
CROSS JOIN LATERAL (
    SELECT s.place, row_number() OVER (ORDER BY s.place) AS number
    FROM generate_series(0, 63) AS s (place)
    WHERE (g.places >> s.place) & 1 = 1
) AS p
WHERE (g.unsettled >> p.place) & 1 = 1
$$
"""
NOTICE = f"""
CREATE FUNCTION heed_earlier_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Five of the ten minutes for which a heartbeat of an earlier version keeps receives from making bundles.
    IF tg_op = 'INSERT' OR old.bundles_at IS NOT DISTINCT FROM old.beaten_at
        OR old.beaten_at < now() - interval '5 minutes'
    THEN
        LOCK TABLE bundle IN EXCLUSIVE MODE;
    END IF;
    PERFORM take_bundles_apart({MOST});
    RETURN NULL;
END
$$;
CREATE TRIGGER heartbeat_of_earlier_version AFTER INSERT OR UPDATE ON heartbeat
FOR EACH ROW WHEN (new.bundles_at IS DISTINCT FROM new.beaten_at) EXECUTE FUNCTION heed_earlier_version();
"""
UNDO = """
DROP TRIGGER heartbeat_of_earlier_version ON heartbeat;
DROP FUNCTION heed_earlier_version();
LOCK TABLE bundle IN EXCLUSIVE MODE;
SELECT take_bundles_apart(NULL);
DROP FUNCTION take_bundles_apart(integer);
"""


class Migration(migrations.Migration):
    dependencies = [("delivery", "0010_bundle"), ("store", "0015_heartbeat_bundles_at")]

    operations = [migrations.RunSQL(TAKE_APART, migrations.RunSQL.noop), migrations.RunSQL(NOTICE, UNDO)]
