-- Name the snapshot of this transaction, so that other sessions can read exactly what it sees while it lasts.
SELECT pg_export_snapshot()
