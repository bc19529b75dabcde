-- Count the topics whose names begin with a namespace. Topics of retries and dead letters have another beginning and do
-- not count.
SELECT count(*) AS topics FROM topic WHERE starts_with(name, %(start)s)
