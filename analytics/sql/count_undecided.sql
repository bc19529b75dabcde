-- The transactions without a decision, and the checks that were asked, as the snapshot sees them.
SELECT
    (SELECT count(*) FROM half_message) AS halves,
    (SELECT count(*) FROM check_attempt) AS checks
