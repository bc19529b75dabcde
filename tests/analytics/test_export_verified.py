"""`./mq export --verify`: what is damaged or differs is named, also where the list agrees with the damage."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from analytics.files import manifest, noted
from analytics.files.place import Local
from tests.analytics import exports, writers
from tests.analytics.exports import listed, problems
from tests.broker import databases, forks

NOTED = "export.json was changed: its checksum is not the one that the broker noted when it was written."


@pytest.fixture(scope="module")
def database(prepared: str) -> Iterator[str]:
    """A database with ended and undecided transactions."""
    with databases.copied(prepared) as url:
        with psycopg.connect(url) as writer:
            writers.live(writer, ended=4, undecided=3)
        yield url


@pytest.fixture(scope="module")
def whole(spark: SparkSession, database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of it that the broker has noted."""
    target = tmp_path_factory.mktemp("verified") / "export"
    assert exports.replace(spark, database, target) is None
    return target


def agree(folder: Path) -> None:
    """Has the list say of its files what they hold now."""
    made = json.loads((folder / manifest.NAME).read_text())
    place = Local(folder)
    listed = [manifest.part(place, part["path"]) for part in made["parts"]]
    made["rows"] = manifest.rows(listed)
    for part, found in zip(made["parts"], listed, strict=True):
        part |= {"rows": found.rows, "checksum": found.checksum}
    (folder / manifest.NAME).write_text(json.dumps(made))


def change(folder: Path, table: str, column: str, values: pyarrow.Array) -> None:
    """Puts other values into a column of the first file of a table."""
    file = next((folder / table).rglob("*.parquet"))
    rows = parquet.read_table(file, partitioning=None).slice(0, len(values))
    number = rows.schema.get_field_index(column)
    parquet.write_table(rows.set_column(number, rows.schema.field(column), values), file)


def test_what_is_damaged_is_named(database: str, whole: Path, tmp_path: Path) -> None:
    exported = Path(shutil.copytree(whole, tmp_path / "export"))
    assert problems(database, Local(exported)) == []
    made = listed(Local(exported))
    part = next(part for part in made.parts if part.table == "messages" and part.rows > 2)
    file = exported / part.path
    undamaged, table = file.read_bytes(), parquet.read_table(file, partitioning=None)
    changed = f"{part.path} was changed: its checksum is not that of the manifest."
    offset = table["log_offset"][1].as_py()

    parquet.write_table(pyarrow.concat_tables([table[:1], table[2:]]), file)
    assert problems(database, Local(exported)) == [
        changed,
        f"{part.path} holds {part.rows - 1} rows, and {part.rows} were exported.",
        f"messages: the log offsets {offset} to {offset} are missing.",
    ]

    parquet.write_table(pyarrow.concat_tables([table, table[1:2]]), file)
    assert problems(database, Local(exported)) == [
        changed,
        f"{part.path} holds {part.rows + 1} rows, and {part.rows} were exported.",
        f"messages: the log offset {offset} is there 2 times.",
    ]

    middle = len(undamaged) // 2
    file.write_bytes(undamaged[:middle] + bytes([undamaged[middle] ^ 1]) + undamaged[middle + 1 :])
    assert problems(database, Local(exported))[0] == changed

    file.unlink()
    assert problems(database, Local(exported))[0] == f"{part.path} is missing, with {part.rows} rows."


def test_other_outcomes_in_the_broker_are_named(database: str, whole: Path) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        [(first,)] = session.execute("SELECT min(operation_id) FROM operation").fetchall()
        decide = "UPDATE operation SET decision = %s WHERE operation_id = %s"
        session.execute(decide, ("COMMIT", first))
        said = problems(database, Local(whole))
        session.execute(decide, ("ROLLBACK", first))

    assert said == [
        "transactions: segment 1 has 2 COMMITTED in the files and 3 in the broker.",
        "transactions: segment 1 has 2 ROLLED_BACK in the files and 1 in the broker.",
    ]


def of_body(folder: Path) -> str:
    """The sentence of a forged body: the first one of the first file."""
    [part] = [part for part in listed(Local(folder)).parts if part.table == "messages" and part.rows]
    return f"{part.path}: the message at the log offset {part.first} is not the broker's."


def test_a_list_that_agrees_with_its_damage_is_found_by_the_brokers_note_and_by_its_rows(
    database: str, whole: Path, tmp_path: Path
) -> None:
    exported = tmp_path / "export"
    shutil.copytree(whole, exported)
    assert problems(database, Local(exported)) == []

    messages = parquet.read_table(next((exported / "messages").rglob("*.parquet")), partitioning=None)
    bodies = messages["body"].to_pylist()
    change(exported, "messages", "body", pyarrow.array([b"a forged body", *bodies[1:]]))
    agree(exported)
    assert problems(database, Local(exported)) == [NOTED, of_body(exported)]

    change(exported, "messages", "body", pyarrow.array(bodies))
    undecided = parquet.read_table(next((exported / "transactions_open").rglob("*.parquet")), partitioning=None)
    change(exported, "transactions_open", "remark", undecided["remark"].combine_chunks()[:-1])
    agree(exported)
    missing = undecided["transaction_id"].to_pylist()[-1]
    assert problems(database, Local(exported)) == [
        NOTED,
        f"transactions_open: {missing} is missing, which the broker has as undecided.",
    ]


def later(folder: Path) -> None:
    """Has the list say another moment of itself, by a microsecond."""
    made = json.loads((folder / manifest.NAME).read_text())
    moment = datetime.fromisoformat(made["taken_at"]) + timedelta(microseconds=1)
    (folder / manifest.NAME).write_text(json.dumps(made | {"taken_at": moment.isoformat()}))


def test_a_forged_list_is_compared_with_the_note_of_its_folder_whatever_it_says_of_itself(
    database: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "kept")
    copied = tmp_path / "copied"
    try:
        bodies = parquet.read_table(next((whole / "messages").rglob("*.parquet")), partitioning=None)[
            "body"
        ].to_pylist()
        change(whole, "messages", "body", pyarrow.array([b"a forged body", *bodies[1:]]))
        agree(whole)
        later(whole)
        shutil.copytree(whole, copied)
        made = json.loads((whole / manifest.NAME).read_text())

        forged, elsewhere = problems(database, Local(whole)), problems(database, Local(copied))
        (whole / manifest.NAME).write_text(json.dumps(made | {"database": "7/7"}))
        of_another = problems(database, Local(whole))
    finally:
        shutil.rmtree(whole)
        shutil.copytree(tmp_path / "kept", whole)

    assert forged == [NOTED, of_body(whole)]
    assert elsewhere == [noted.UNNOTED, of_body(whole)]
    assert of_another == ["Not compared with the broker: the export is of another database.", NOTED]
    assert problems(database, Local(whole)) == []


@pytest.mark.spark
def test_the_command_verifies_what_is_behind_a_url_and_says_that_a_list_without_a_note_is_not_compared(
    database: str, whole: Path, tmp_path: Path
) -> None:
    with psycopg.connect(database) as session:
        session.execute("CREATE TEMP TABLE kept AS SELECT * FROM export")
        session.execute("DELETE FROM export")
        session.commit()
        try:
            code, said = verified(database, whole.as_uri(), tmp_path)
        finally:
            session.execute("INSERT INTO export SELECT * FROM kept")
            session.commit()

    assert code == 0
    assert said.splitlines()[0] == noted.UNNOTED
    assert said.splitlines()[1].startswith(f"Verified {whole.as_uri()} in ")


def verified(database: str, place: str, data: Path) -> tuple[int, str]:
    """The exit code of `./mq export --verify`, and what it says."""
    command = [sys.executable, "-m", "mqbroker.embedded.cli", "export", "--verify", place]
    environ = {**os.environ, "DATABASE_URL": database, "MQBROKER_DATA_DIR": str(data / "data")}
    done = forks.run(command, environ)
    # The first command of an installation says that it keeps Java's classes.
    assert [line for line in done.stderr.splitlines() if "Java keeps Spark's classes" not in line] == []
    return done.returncode, done.stdout
