-- Count the topics of users whose names begin with a namespace; those of retries and dead letters begin otherwise.
SELECT count(*) AS topics FROM topic WHERE starts_with(name, %(start)s)
