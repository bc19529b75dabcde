"""The lake: the committed messages as a table that is a minute old, each once, whatever is killed.

`MQ_KILLS=200 ./mq test tests/analytics/test_lake.py` kills it at every line of its code.
"""

from pathlib import Path

import pytest

from analytics.errors import ExportDamaged, ExportUnderWay, FolderRefused
from analytics.export.lake import table
from tests.analytics import lakes, writers
from tests.analytics.kills import KILLS
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection

# One round passes about so many lines.
LINES = 200


def held(folder: Path) -> list[tuple[int, int, int]]:
    """The topic, the queue and the offset of each row."""
    return [(row["topic_id"], row["queue_id"], row["queue_offset"]) for row in lakes.rows(folder)]


def visible(writer: Connection) -> list[tuple[int, int, int]]:
    """The same of each message that consumers can see."""
    found = writer.execute("SELECT topic_id, queue_id, queue_offset FROM consume_queue ORDER BY 1, 2, 3").fetchall()
    writer.commit()
    return [(int(topic), int(queue), int(offset)) for topic, queue, offset in found]


def test_the_table_has_what_is_visible_and_a_late_commit_of_an_old_half_is_new_in_it(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    late = writers.begin(writer)
    fill(writer, 30)
    first = lakes.caught_up(busy_database, tmp_path / "lake")
    before = held(tmp_path / "lake")
    writers.end(writer, late, "COMMIT")
    writer.commit()

    second = lakes.caught_up(busy_database, tmp_path / "lake")
    third = lakes.caught_up(busy_database, tmp_path / "lake")

    now = visible(writer)
    assert held(tmp_path / "lake") == now
    assert set(now) - set(before) == {(1, 0, 0)}
    assert (first, second, third) == (["Batch 1: 20 messages."], ["Batch 2: 1 messages."], [])
    [row] = [row for row in lakes.rows(tmp_path / "lake") if row["batch"] == 2]
    assert (row["transaction_id"], row["state"], row["cell"]) == (str(late), "COMMITTED", "c0")


def test_a_lake_that_is_killed_at_its_lines_has_each_message_once(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder, died = tmp_path / "lake", 0
    late = writers.begin(writer)
    for line in range(0, LINES, max(1, LINES // (8 * KILLS))):
        fill(writer, 6)
        died += lakes.die(busy_database, folder, line)
    writers.end(writer, late, "COMMIT")
    writer.commit()

    lakes.caught_up(busy_database, folder)

    assert held(folder) == visible(writer)
    assert died > 4
    of, said = lakes.lake(busy_database, folder)
    of.verify()
    assert said == []


def test_files_of_a_batch_that_was_killed_before_its_commit_are_not_in_the_table(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    for _ in range(2):
        fill(writer, 9)
        lakes.caught_up(busy_database, folder)
    # What a kill between the files of a batch and its commit leaves.
    max((folder / table.LOG).glob("*.json")).unlink()
    fill(writer, 9)

    said = lakes.caught_up(busy_database, folder)

    assert said == ["Batch 2: 12 messages."]
    assert held(folder) == visible(writer)


def test_of_two_lakes_in_one_folder_one_is_refused(busy_database: str, writer: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    behind = table.opened(folder)
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    assert behind.last is not None
    [read] = table.opened(folder).rows(2, 2)

    with pytest.raises(ExportUnderWay) as refused:
        behind.add(behind.last.installation, {}, iter([read]))

    assert str(refused.value) == f"Another process has written to {folder}: let one lake write to it."
    assert held(folder) == visible(writer)


def test_merged_files_have_the_same_rows_and_the_lake_goes_on(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    for _ in range(3):
        fill(writer, 9)
        lakes.caught_up(busy_database, folder)
    before = lakes.rows(folder)
    of, said = lakes.lake(busy_database, folder)

    of.compact()
    merged = lakes.rows(folder)
    fill(writer, 9)
    of.catch_up()
    of.verify()

    assert merged == before
    assert said == ["3 files merged into 1.", "Batch 4: 6 messages."]
    assert held(folder) == visible(writer)


def test_a_hole_that_retention_made_is_named_and_the_lake_goes_on_behind_it(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    [(topic,)] = writer.execute("SELECT id FROM topic WHERE name = 'orders'").fetchall()
    before = held(folder)
    fill(writer, 9)
    fill(writer, 9)
    # The oldest entries of the second round.
    writer.execute("DELETE FROM consume_queue WHERE queue_offset < 5")
    writer.commit()

    of, said = lakes.lake(busy_database, folder)
    of.catch_up()
    of.verify()

    assert held(folder) == sorted([*before, *visible(writer)])
    assert {offset for *_, offset in held(folder)} == {0, 1, 2, 5, 6, 7, 8}
    assert said[1:] == [
        f"Hole: retention dropped the offsets 3 to 4 of c0, queue {topic}/0, before a batch.",
        f"Hole: retention dropped the offsets 3 to 4 of c0, queue {topic}/1, before a batch.",
        "Batches 1 to 2: 6 messages are no longer in the log, and not compared.",
    ]


def test_a_log_that_ends_before_the_lake_is_refused(busy_database: str, writer: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    # What the restore of an old back-up does.
    writer.execute("DELETE FROM consume_queue WHERE queue_offset > 0")
    writer.commit()

    with pytest.raises((FolderRefused, ExportDamaged)) as refused:
        lakes.caught_up(busy_database, folder)

    assert "after the restore of a back-up, give a new folder." in str(refused.value)


def test_a_folder_with_other_files_is_refused(busy_database: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(FolderRefused) as refused:
        lakes.caught_up(busy_database, tmp_path)

    assert str(refused.value) == (
        f"{tmp_path} holds no lake: `./mq lake --to DIR` makes one in a new or an empty folder."
    )


def test_a_cell_that_was_split_off_is_read_from_the_split_on(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    late = writers.begin(writer)
    fill(writer, 9)
    copies = visible(writer)
    # What the split does in the new cell, whose database has all rows of its parent.
    writer.execute("UPDATE cell_identity SET first_numbers = jsonb_build_object('noted_at', clock_timestamp())")
    writer.commit()
    writers.end(writer, late, "COMMIT")
    fill(writer, 9)

    lakes.caught_up(busy_database, tmp_path / "lake")

    assert held(tmp_path / "lake") == sorted({*visible(writer)} - {*copies})
    assert len(held(tmp_path / "lake")) == 7
