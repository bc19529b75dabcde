-- Name this transaction's snapshot, so that other sessions can read by it while the transaction lasts.
SELECT pg_export_snapshot()
