"""The disk: files of an export go there in small steps, and are there before the export takes its place."""

from pathlib import Path

from analytics.files import folder, paced
from analytics.files.paced import STEP_BYTES, PacedFile
from tests.analytics.pages import unwritten_bytes
from tests.analytics.parquet import sign

STEPS = 8


def test_a_file_is_written_to_the_disk_in_steps_while_it_grows(tmp_path: Path) -> None:
    with PacedFile(tmp_path / "file") as file:
        file.write(bytes(STEPS * STEP_BYTES))

        # Of each step the last page may be shared with the next one.
        assert unwritten_bytes(tmp_path / "file") < 2 * STEP_BYTES


def test_a_closed_file_is_on_the_disk(tmp_path: Path) -> None:
    with PacedFile(tmp_path / "file") as file:
        file.write(b"less than a step")

    assert (tmp_path / "file").read_bytes() == b"less than a step"
    assert unwritten_bytes(tmp_path / "file") == 0


def test_arrow_writes_all_bytes_whatever_the_steps(tmp_path: Path) -> None:
    first, second = bytes(range(256)) * 4096, b"b" * (3 * STEP_BYTES + 7)

    with paced.created(tmp_path / "file") as file:
        file.write(b"a")
        file.write(first)
        file.write(second)

    assert (tmp_path / "file").read_bytes() == b"a" + first + second


def test_an_export_is_on_the_disk_when_it_is_in_its_place(tmp_path: Path) -> None:
    target = tmp_path / "export"
    with folder.workspace(target) as workspace:
        made = workspace / "export"
        (made / "messages").mkdir(parents=True)
        # As Java writes it: to memory, and no further.
        (made / "messages" / "part").write_bytes(bytes(STEP_BYTES))
        sign(made)

        folder.put(made, target, workspace)

    assert [unwritten_bytes(path) for path in target.rglob("*") if path.is_file()] == [0, 0]
