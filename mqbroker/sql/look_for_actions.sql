-- Find whether an operator's action is running, by the index of the running actions. If none is running, the poll
-- starts no thread and does not use Django's connection.
SELECT EXISTS (SELECT 1 FROM action AS a WHERE a.state = 'running') AS runs
