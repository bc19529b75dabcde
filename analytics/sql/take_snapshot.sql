-- Use the snapshot that another transaction exported while no writer held the lock of the log.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT %(snapshot)s
