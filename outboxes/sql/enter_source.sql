-- In a source: set all that the form of a result, the wait for a lock and the end of a session depend on, for this
-- transaction alone: behind a pooler the session may be another program's next. What the role and the database are set to
-- does not count. A partition is truncated after a look for rows, which has to see what was committed up to then. A
-- session whose process is frozen within a transaction is ended after 20 s.
SET LOCAL client_encoding = 'UTF8';
SET LOCAL standard_conforming_strings = on;
SET LOCAL DateStyle = 'ISO, YMD';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL bytea_output = 'hex';
SET LOCAL extra_float_digits = 1;
SET LOCAL statement_timeout = '10s';
SET LOCAL lock_timeout = '3s';
SET LOCAL idle_in_transaction_session_timeout = '20s';
SET LOCAL row_security = off;
SET LOCAL jit = off
