-- The database's time. One row, of no table.
SELECT clock_timestamp() AS now
