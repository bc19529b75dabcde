-- See what the transaction that exported this snapshot saw: the log while nobody was appending to it.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT %(snapshot)s
