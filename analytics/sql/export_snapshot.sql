-- Export this transaction's snapshot under a name, so that other sessions can read with it while the transaction lasts.
SELECT pg_export_snapshot()
