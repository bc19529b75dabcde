"""`./mq lake --verify` names what is wrong with the table, and compares each of its commits with the log."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from analytics.errors import ExportDamaged
from analytics.export.lake import table
from tests.analytics import lakes
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection


def verified(url: str, folder: Path) -> list[str]:
    """What a verification says."""
    of, said = lakes.lake(url, folder)
    try:
        of.verify()
    except ExportDamaged as damaged:
        said.append(str(damaged))
    return said


def of_version(folder: Path) -> Path:
    """The last commit in Delta Lake's log."""
    return max((folder / table.LOG).glob("*.json"))


def added(folder: Path) -> dict[str, Any]:
    """The file of the last batch, as Delta Lake's log has it."""
    lines = map(json.loads, of_version(folder).read_text().splitlines())
    [found] = [line["add"] for line in lines if "add" in line]
    return dict(found)


def overwritten(folder: Path, change: Callable[[pyarrow.Table], pyarrow.Table]) -> None:
    """Forges the file of the last batch, and its size in the log."""
    before = added(folder)
    path = folder / before["path"]
    parquet.write_table(change(parquet.read_table(path, partitioning=None)), path)
    text = of_version(folder).read_text()
    of_version(folder).write_text(text.replace(f'"size":{before["size"]}', f'"size":{path.stat().st_size}'))


def with_column(rows: pyarrow.Table, name: str, values: Any) -> pyarrow.Table:
    """The rows with other values in a column."""
    field = rows.schema.field(name)
    return rows.set_column(rows.column_names.index(name), field, values.cast(field.type))


def without_a_row(folder: Path) -> None:
    overwritten(folder, lambda rows: rows.slice(1))


def with_a_row_twice(folder: Path) -> None:
    overwritten(folder, lambda rows: pyarrow.concat_tables([rows, rows.slice(0, 1)]))


def with_another_body(folder: Path) -> None:
    def forged(rows: pyarrow.Table) -> pyarrow.Table:
        bodies = rows["body"].to_pylist()
        return with_column(rows, "body", pyarrow.array([b"forged", *bodies[1:]]))

    overwritten(folder, forged)


def with_a_row_of_its_own(folder: Path) -> None:
    def planted(rows: pyarrow.Table) -> pyarrow.Table:
        return pyarrow.concat_tables([rows, with_column(rows.slice(0, 1), "queue_offset", pyarrow.array([999]))])

    overwritten(folder, planted)


def without_a_file(folder: Path) -> None:
    (folder / added(folder)["path"]).unlink()


def with_a_deletion(folder: Path) -> None:
    DeltaTable(str(folder)).delete("queue_id = 0 AND batch = 2")


def with_rows_of_another_program(folder: Path) -> None:
    rows = DeltaTable(str(folder)).to_pyarrow_table().slice(0, 1)
    write_deltalake(str(folder), with_column(rows, "batch", pyarrow.array([7])), mode="append")


@pytest.mark.parametrize(
    ("plant", "problems", "sentence"),
    [
        (without_a_row, 1, "is in the log, and not in the table."),
        (with_a_row_twice, 1, "is there more than once."),
        (with_another_body, 1, "has another body in the table (batch 2) than in the log."),
        (with_a_row_of_its_own, 1, "offset 999 is in the table (batch 2), and not in the log."),
        (without_a_file, 1, ".parquet is missing."),
        (with_a_deletion, 4, "Version 3 was made by another program (DELETE)."),
        (with_rows_of_another_program, 2, "1 messages are of batch 7, which no commit has added."),
    ],
)  # fmt: skip -- one fault to a line
def test_a_planted_fault_is_named(
    busy_database: str, writer: Connection, tmp_path: Path, plant: Callable[[Path], None], problems: int, sentence: str
) -> None:
    folder = tmp_path / "lake"
    for _ in range(2):
        fill(writer, 9)
        lakes.caught_up(busy_database, folder)
    plant(folder)

    said = verified(busy_database, folder)

    assert [line for line in said if sentence in line], said
    assert said[-1] == f"{folder} is not what the log has: {problems} problems, see above."


def test_forged_progress_stops_the_lake_and_is_named(busy_database: str, writer: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    of = of_version(folder)
    lines = [json.loads(line) for line in of.read_text().splitlines()]
    [about] = [line["commitInfo"] for line in lines if "commitInfo" in line]
    batch = json.loads(about[table.OF_BATCH])
    [queue] = [name for name in batch["cells"]["c0"]["end"] if name.endswith("/1")]
    batch["cells"]["c0"]["end"][queue] += 2
    about[table.OF_BATCH] = json.dumps(batch)
    of.write_text("\n".join(map(json.dumps, lines)))
    fill(writer, 9)

    with pytest.raises(ExportDamaged) as stopped:
        lakes.caught_up(busy_database, folder)

    assert "is in the log, and not in the table. `./mq lake --verify DIR` names all" in str(stopped.value)
    said = verified(busy_database, folder)
    assert said[-1] == f"{folder} is not what the log has: 2 problems, see above."


def test_a_commit_is_compared_after_its_files_were_merged_and_its_topic_was_deleted(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    for _ in range(2):
        fill(writer, 9)
        lakes.caught_up(busy_database, folder)
    table.opened(folder).compact()
    writer.execute("DELETE FROM topic WHERE name = 'orders'")
    writer.commit()

    assert verified(busy_database, folder) == []
