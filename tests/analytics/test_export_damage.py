"""Damage: what is wrong with the files of an export, or with their list, is named, and never signed anew."""

import json
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.parquet as parquet
import pytest

from analytics import tables
from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import manifest, parts, verify
from analytics.files.manifest import Manifest, Reached
from analytics.files.place import Local
from tests.analytics.exports import nothing

DAY = "messages/segment=1/day=2026-03-01"
BODY = b"a sum of 100"


@pytest.fixture
def place(tmp_path: Path) -> Local:
    """Where the export lies."""
    return Local(tmp_path / "export")


@pytest.fixture
def made(place: Local) -> Manifest:
    """An export of three messages in two files."""
    schema = tables.arrow_of_files(tables.MESSAGES.columns)
    (place.folder / DAY).mkdir(parents=True)
    for file, offsets in (("a", (0, 1)), ("b", (2,))):
        rows = [dict.fromkeys(schema.names) | {"log_offset": offset, "body": BODY} for offset in offsets]
        table = pyarrow.Table.from_pylist(rows, schema)
        parquet.write_table(table, place.folder / DAY / f"{file}.parquet", compression="none", use_dictionary=False)
    listed = [manifest.part(place, path) for path in place.files()]
    ends = Reached(segment=1, log_offset=2, operation_id=-1, queues=[])
    made = msgspec.structs.replace(nothing("1/2"), rows=manifest.rows(listed), ends=ends, parts=listed)
    manifest.write(place, made)
    return made


def test_what_was_changed_is_not_gathered_under_a_new_checksum(place: Local, made: Manifest) -> None:
    file = place.folder / DAY / "a.parquet"
    file.write_bytes(file.read_bytes().replace(BODY, b"a sum of 900"))
    assert parquet.read_table(file, partitioning=None)["body"].to_pylist() == [b"a sum of 900"] * 2

    with pytest.raises(ExportDamaged) as refused:
        parts.compact(place, made.parts)

    assert str(refused.value).startswith(f"{DAY}/a.parquet was changed since it was exported and is not gathered")


@pytest.mark.parametrize("strange", ["notes.txt", "messages/part", f"{DAY}/a.parquet.bak", "bodies/a.parquet"])
def test_every_file_that_is_not_of_the_export_is_named(place: Local, made: Manifest, strange: str) -> None:
    assert verify.of_files(place, made) == []
    (place.folder / strange).parent.mkdir(exist_ok=True)
    (place.folder / strange).write_bytes(b"strange")

    assert verify.of_files(place, made) == [f"{strange} is no file of this export."]


def test_sums_that_are_wrong_are_named(place: Local, made: Manifest) -> None:
    first, second = made.parts
    wrong = [msgspec.structs.replace(first, first=1), msgspec.structs.replace(second, schema=3)]

    found = verify.of_files(place, msgspec.structs.replace(made, parts=wrong, rows={"messages": 4}))

    assert found[:3] == [
        f"{DAY}/a.parquet holds the log offsets (0, 1), and (1, 1) were exported.",
        f"{DAY}/b.parquet has {second.schema} columns, and 3 were exported.",
        "export.json has 4 rows of messages in all, and 3 in its files.",
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": manifest.FORMAT + 1}, "it has format 3, of a newer version, and this one knows 2"),
        ({"parts": None}, "Expected `array`, got `null` - at `$.parts`"),
    ],
)
def test_a_list_that_is_not_understood_is_not_replaced(
    place: Local, made: Manifest, changes: dict[str, object], reason: str
) -> None:
    file = place.folder / manifest.NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    with pytest.raises(FolderRefused) as refused:
        manifest.read(place)

    assert str(refused.value) == f"export.json in {place} is not understood ({reason}): give a new folder."


def test_a_list_that_cannot_be_read_is_not_taken_for_none(place: Local) -> None:
    place.folder.mkdir()
    (place.folder / manifest.NAME).symlink_to(manifest.NAME)

    with pytest.raises(OSError, match="symbolic links"):
        manifest.read(place)
