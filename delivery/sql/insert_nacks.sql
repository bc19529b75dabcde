-- Store the reasons of nacks, in the transaction that publishes the retries, so that no reason exists without its
-- failure.
INSERT INTO nack (segment_id, group_id, log_offset, nonce, reconsume_times, nacked_at, reason)
SELECT %(segment_id)s, n.group_id, n.log_offset, n.nonce, n.reconsume_times, now(), n.reason
FROM unnest(
    %(group_id)b::integer [], %(log_offset)b::bigint [], %(nonce)b::bigint [], %(reconsume_times)b::integer [],
    %(reason)s::text []
) AS n (group_id, log_offset, nonce, reconsume_times, reason)
