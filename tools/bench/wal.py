"""WAL: the bytes that a transaction of 1 kB writes, by kind of record and by table or index.

Runs whole transactions over 64 connections, as `throughput` does. Reads the records with pg_walinspect, an extension of
PostgreSQL since version 16.
"""

from urllib.parse import urlsplit, urlunsplit

import psycopg

from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.machine import WAL_POSITION
from tools.bench.report import Cases, Report
from tools.bench.throughput import WARM_UP_SECONDS, transact

CONNECTIONS = 64
# Kinds of record with fewer bytes per transaction are not caused by transactions.
LEAST_BYTES = 0.05
# The private server's superuser has the same password as the broker's role.
SUPERUSER = "postgres"
# A record begins at a multiple of eight bytes. Page headers are not among the records.
BY_RECORD = """
SELECT
    coalesce(regexp_replace(c.relname, '_1(?=_|$)', ''), '') AS relation,
    r.resource_manager || ' ' || r.record_type AS record,
    sum((r.record_length + 7) / 8 * 8)::bigint AS bytes,
    sum(r.fpi_length)::bigint AS images,
    count(*) AS records
FROM pg_get_wal_records_info('0/0'::pg_lsn + %(first)s, '0/0'::pg_lsn + %(last)s) AS r
LEFT JOIN pg_get_wal_block_info('0/0'::pg_lsn + %(first)s, '0/0'::pg_lsn + %(last)s, false) AS b
    ON r.start_lsn = b.start_lsn AND b.block_id = 0
LEFT JOIN pg_class AS c ON b.relfilenode = c.relfilenode
GROUP BY 1, 2
ORDER BY bytes DESC
"""


def main(report: Report) -> None:
    """Prints bytes, bytes of page images, and records, each per transaction."""
    for side, checkout in report.options.sides().items():
        with broker.running(worker=False, checkout=checkout) as running:
            _measure(report, running, side)


def _measure(report: Report, running: Broker, side: str) -> None:
    parts = urlsplit(running.database_url)
    host = parts.netloc.rpartition("@")[2]
    url = urlunsplit(parts._replace(netloc=f"{SUPERUSER}:{parts.password}@{host}"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_walinspect")
        _transact(running, min(WARM_UP_SECONDS, report.options.seconds))
        first = _position(connection)
        count = _transact(running, report.options.seconds)
        span = {"first": first, "last": _position(connection)}
        report.line(f"{side}: WAL per transaction", {"bytes": (span["last"] - first) / count})
        for relation, record, *sums in connection.execute(BY_RECORD, span):
            figures = {name: each / count for name, each in zip(("bytes", "images", "records"), sums, strict=True)}
            if figures["bytes"] > LEAST_BYTES:
                report.line(f"{side}: {record} {relation}".rstrip(), figures)


def _transact(running: Broker, seconds: float) -> int:
    measured = load.run(load.closed_loop(running.port, CONNECTIONS, None, transact, seconds))
    if measured.refused or not measured.latencies:
        raise RuntimeError(f"{measured.refused} transactions were refused: the figures mean nothing")
    return len(measured.latencies)


def _position(connection: psycopg.Connection) -> int:
    row = connection.execute(WAL_POSITION.encode()).fetchone()
    assert row is not None
    return int(row[0])


CASES: Cases = {"transactions": main}
