"""Retention and exports together: what was dropped before an export is a hole with a name, and nothing else is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pyspark.sql import SparkSession

from analytics.files import noted
from analytics.files.place import Local
from store.rows import ExportWait
from store.segments import exports
from tests.analytics.exports import listed, messages, problems, write
from tests.store.keeper import Keeper


@pytest.fixture
def keeper(busy_database: str) -> Iterator[Keeper]:
    """The broker's own code, with a retention that waits for exports."""
    import django

    django.setup()
    limit = settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES
    settings.RETAIN_UNTIL_EXPORTED = True
    with Keeper(busy_database) as keeper:
        yield keeper
    settings.RETAIN_UNTIL_EXPORTED, settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES = False, limit


def export(spark: SparkSession, keeper: Keeper, folder: Path, earlier: Path | None = None) -> Path:
    """An export to a new folder, noted as the one that retention waits for."""
    write(spark, keeper.url, folder, earlier)
    assert noted.note(keeper.url, "/exports/nightly", listed(Local(folder))) is None
    return folder


def bodies(folder: Path) -> list[bytes]:
    """The bodies of an export, in the order of the log."""
    return [row["body"] for row in messages(folder)]


def test_nothing_is_lost_while_there_is_room_and_what_was_dropped_above_it_is_named(
    spark: SparkSession, keeper: Keeper, tmp_path: Path
) -> None:
    for number in range(3):
        keeper.send("orders", f"order {number}", queue_id=0)
        keeper.roll()
        assert keeper.drop_old() == []
    keeper.send("orders", "order 3", queue_id=0)
    first = export(spark, keeper, tmp_path / "first")
    assert bodies(first) == [b"order 0", b"order 1", b"order 2", b"order 3"]
    assert keeper.drop_old() == [1, 2, 3]

    for number in range(4, 7):
        keeper.roll()
        keeper.send("orders", f"order {number}", queue_id=0)
    settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES = 0
    keeper.drop_old()
    [wait] = keeper.do(waiting())
    second = export(spark, keeper, tmp_path / "second", first)

    # Segment 4 was open at the first export; segments 5 and 6 were in none.
    assert wait.dropped == 3
    made = listed(Local(second))
    assert {hole.table for hole in made.holes} == {"messages", "entries"}
    assert problems(keeper.url, Local(second)) == [
        "Hole: retention dropped the messages from offset 4 to 4 before an export.",
        f"Hole: retention dropped the entries of topic {made.ends.queues[0][0]}, queue 0 from offset 4 to 5 before an "
        "export.",
    ]
    assert bodies(second)[-2:] == [b"order 5", b"order 6"]


async def waiting() -> list[ExportWait]:
    """What waits for an export, and what was dropped without one."""
    from store.db import connections

    return list(await connections.read(exports.FIND_EXPORT_WAIT, {"target": ""}))
