"""The lake of three cells: one table, in which each committed message of each cell has one row."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from mqbroker_client import Producer

from analytics.errors import ExportIncomplete
from tests.analytics import lakes
from tests.broker.cells import Cells


def bodies(folder: Path, topics: Sequence[str]) -> list[tuple[str, str, bytes]]:
    """The cell, the topic and the body of each row of these topics."""
    found = [(row["cell"], row["topic"], row["body"]) for row in lakes.rows(folder)]
    return sorted(row for row in found if row[1] in topics)


def test_each_committed_message_of_each_cell_is_there_once_also_after_a_cell_was_away(
    cells: Cells, producer: Producer, spread: Sequence[str], tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    halves = []
    for topic in spread:
        producer.send(topic, b"sent")
        producer.begin(topic, b"committed").commit()
        producer.begin(topic, b"rolled back").rollback()
        halves.append(producer.begin(topic, b"late"))
    lakes.caught_up(cells.urls[0], folder)
    first = bodies(folder, spread)
    for half in halves:
        half.commit()

    with cells.away(1), pytest.raises(ExportIncomplete) as away:
        lakes.caught_up(cells.urls[0], folder)
    without = bodies(folder, spread)
    lakes.caught_up(cells.urls[0], folder)

    names = [(f"c{cell}", topic) for cell, topic in enumerate(spread)]
    early = [(*name, body) for name in names for body in (b"committed", b"sent")]
    assert first == sorted(early)
    assert str(away.value).startswith("The lake lacks new messages of c1 (export_failed: ")
    assert without == sorted([*early, (*names[0], b"late"), (*names[2], b"late")])
    assert bodies(folder, spread) == sorted([*early, *((*name, b"late") for name in names)])
    of, said = lakes.lake(cells.urls[0], folder)
    of.verify()
    assert said == []
