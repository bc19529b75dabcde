"""The partitions of the append-only tables: created for a new segment, dropped with an old one.

A statement cannot have a table's name as a parameter, so these statements are composed here from names of the catalog.
No lock that is taken here stops a writer or a reader: ATTACH and DETACH … CONCURRENTLY do not block them, and a table
is dropped only when no transaction can see it any more.
"""

from collections.abc import Sequence
from typing import NamedTuple

from psycopg.sql import SQL, Composed, Identifier, Literal

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement

FIND_HOLDERS_OF_LOG = Statement(__file__, "find_holders_of_log", one=str)
FIND_UNANALYZED = Statement(__file__, "find_unanalyzed", one=str)

CREATE = SQL("CREATE TABLE {partition} (LIKE {table} INCLUDING ALL)")
ATTACH = SQL("ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES IN ({segment_id})")
DETACH = SQL("ALTER TABLE {table} DETACH PARTITION {partition} CONCURRENTLY")
FINALIZE = SQL("ALTER TABLE {table} DETACH PARTITION {partition} FINALIZE")
DROP = SQL("DROP TABLE {partition}")
# The statement changes nothing, but makes every session build its list of the table's partitions again.
ANNOUNCE = SQL("ALTER TABLE ONLY {table} ALTER COLUMN segment_id SET STATISTICS -1")
# A short lock time-out, so that an autovacuum under way is not cancelled.
ANALYZE = SQL("ANALYZE (SKIP_LOCKED) {table}")
HOLDS_LOG = SQL("SELECT EXISTS (SELECT FROM {table} WHERE log_segment <= {segment_id}) AS found")


class Partition(NamedTuple):
    """A table's partition of one segment; `state` is missing, attached, detaching or detached."""

    table_name: str
    partition_name: str
    state: str

    def write(self, statement: SQL, segment_id: int | None = None) -> Composed:
        """The text of a statement with the names of the partition in it."""
        names = {"table": Identifier(self.table_name), "partition": Identifier(self.partition_name)}
        return statement.format(**names, segment_id=Literal(segment_id))


FIND_PARTITIONS = Statement(__file__, "find_partitions", Partition)


async def of_segment(connection: Connection, segment_id: int) -> Sequence[Partition]:
    """The segment's partition of each table that is partitioned by segment, also if the partition is missing."""
    return await connections.execute(connection, FIND_PARTITIONS, {"segment_id": segment_id})


async def make(connection: Connection, segment_id: int) -> int:
    """Creates the missing partitions of a segment, each in its own transaction. Returns their number.

    By ATTACH, which stops no writer; CREATE … PARTITION OF would stop all writers of the table.
    """
    missing = [one for one in await of_segment(connection, segment_id) if one.state == "missing"]
    for partition in missing:
        async with connection.transaction():
            await connection.execute(partition.write(CREATE), prepare=False)
            await connection.execute(partition.write(ATTACH, segment_id), prepare=False)
    return len(missing)


async def announce(connection: Connection, segment_id: int) -> None:
    """Makes every session see the partitions of a segment after the commit of this transaction.

    A session that builds its list of partitions while a partition is being attached may keep a list without this
    partition until the table's next change (observed with PostgreSQL 15): the session's reads find no row of the
    segment, and its appends fail.
    """
    for partition in await of_segment(connection, segment_id):
        await connection.execute(partition.write(ANNOUNCE), prepare=False)


async def drop(connection: Connection, partition: Partition) -> None:
    """Drops a partition: detaches it first, then waits for transactions that may still read it.

    Raises psycopg's LockNotAvailable if a reader takes too long. Then the partition is detached, writers are not
    stopped, and the next call continues with the drop.
    """
    if partition.state == "attached":
        await connection.execute(partition.write(DETACH), prepare=False)
    elif partition.state == "detaching":
        await connection.execute(partition.write(FINALIZE), prepare=False)
    await connection.execute(partition.write(DROP), prepare=False)


async def holders_of_log(connection: Connection, segment_id: int) -> list[str]:
    """The tables that have rows which still need the log of this segment or of an older segment."""
    tables = await connections.execute(connection, FIND_HOLDERS_OF_LOG)
    return [table for table in tables if await _holds_log(connection, table, segment_id)]


async def _holds_log(connection: Connection, table: str, segment_id: int) -> bool:
    statement = HOLDS_LOG.format(table=Identifier(table), segment_id=Literal(segment_id))
    cursor = await connection.execute(statement, prepare=False)
    rows = await cursor.fetchall()
    return bool(rows[0].found)


async def analyze(connection: Connection) -> Sequence[str]:
    """Renews the planner's statistics of the append-only tables, once for each segment. Returns the tables' names."""
    tables = await connections.execute(connection, FIND_UNANALYZED)
    for table in tables:
        await connection.execute(ANALYZE.format(table=Identifier(table)), prepare=False)
    return list(tables)
