-- Count the undecided transactions and the timers in the snapshot, and the check attempts from a segment on.
-- Row: The numbers of half messages, check attempts and timers in a snapshot.
SELECT
    (SELECT count(*) FROM half_message) AS halves,
    (SELECT count(*) FROM check_attempt AS c WHERE c.segment_id >= %(segment_id)s) AS checks,
    (SELECT count(*) FROM timer) AS timers
