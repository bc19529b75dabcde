-- The messages for the export, which adds the closed range of each slice and selects the columns of its table. `weight`
-- is the approximate memory of a row: by JDBC, heavy rows are fetched in smaller steps. The length of a body can be
-- read without the body. A name is null when its topic or group is deleted. A copy keeps the time at which its message
-- was first stored: this time is before the opening of the copy's segment, except for the half second that a roll waits
-- for the log. Only such rows are looked up by id in earlier segments. `state` is the state of the transaction at the
-- time of reading, null without a transaction and if its end was dropped; files of an export leave it out. The
-- namespace stands before the first % of the topic's name. `copied`: the row is from before the split that made this
-- cell, and the parent also has it.
SELECT
    l.*, l.segment_id AS segment,
    CASE
        WHEN l.transaction_id IS NOT NULL
            THEN coalesce(
                (
                    SELECT CASE o.decision WHEN 'COMMIT' THEN 'COMMITTED' ELSE 'ROLLED_BACK' END
                    FROM operation AS o
                    WHERE o.transaction_id = l.transaction_id AND o.decision IN ('COMMIT', 'ROLLBACK')
                    LIMIT 1
                ),
                (
                    SELECT CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END
                    FROM half_message AS h
                    WHERE h.transaction_id = l.transaction_id
                )
            )
    END AS state, t.name AS topic,
    CASE WHEN strpos(t.name, chr(37)) > 1 THEN split_part(t.name, chr(37), 1) END AS namespace, g.name AS producer_group, octet_length(l.body) AS body_bytes,
    (
        l.log_offset < (SELECT (i.first_numbers ->> 'commit_log_offset')::bigint FROM cell_identity AS i)
    ) IS TRUE AS copied,
    octet_length(l.body) + coalesce(octet_length(l.properties), 0)
    + coalesce(octet_length(array_to_string(l.keys, ' ')), 0) AS weight,
    CASE
        WHEN (l.stored_at < s.opened_at + interval '1 second') IS NOT FALSE
            THEN (
                SELECT min(f.log_offset)
                FROM commit_log AS f
                WHERE f.message_id = l.message_id AND f.segment_id < l.segment_id
            )
    END AS copy_of
FROM commit_log AS l
LEFT JOIN segment AS s ON l.segment_id = s.id
LEFT JOIN topic AS t ON l.topic_id = t.id
LEFT JOIN producer_group AS g ON l.producer_group_id = g.id
