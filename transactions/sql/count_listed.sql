-- Count the undecided transactions of one state that match the filter of a list, up to a limit, because an exact count
-- of a million rows reads a million rows.
SELECT count(*) AS halves
FROM (
    SELECT 1
    FROM half_message AS h
    WHERE
        (h.discarded_at IS NOT NULL) = %(discarded)s
        AND (%(group_ids)s::integer [] IS NULL OR h.producer_group_id = any(%(group_ids)s))
        AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(coalesce(h.topic_ids, ARRAY[h.topic_id])))
        AND h.stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
    LIMIT %(max_count)s
) AS counted
