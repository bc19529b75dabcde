-- Count the undecided transactions and the check attempts in the snapshot.
SELECT
    (SELECT count(*) FROM half_message) AS halves,
    (SELECT count(*) FROM check_attempt) AS checks
