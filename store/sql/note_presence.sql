-- Note which groups call this process, and delete groups without a call for a day. The table has one row for each
-- process, role and group; an update changes no index.
WITH forgotten AS (
    DELETE FROM presence
    WHERE asked_at < now() - interval '1 day'
)

INSERT INTO presence (process, role, group_name, connections, asked_at)
SELECT
    %(process)s,
    noted.role,
    noted.group_name,
    noted.connections,
    now() - noted.seconds_ago * interval '1 second'
FROM
    unnest(%(role)s::text [], %(group_name)s::text [], %(connections)s::integer [], %(seconds_ago)s::double precision [])
        AS noted (role, group_name, connections, seconds_ago)
ON CONFLICT (process, role, group_name)
DO UPDATE SET connections = excluded.connections, asked_at = excluded.asked_at
