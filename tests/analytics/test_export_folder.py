"""The folder: an export takes its place as a whole, and nothing else is ever replaced."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from analytics.errors import ExportUnderWay, FolderRefused
from analytics.files import folder
from tests.analytics.parquet import sign

WAY_OUT = "give a new or an empty folder, or one that holds an export and nothing else."
RACES = 100


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the export goes."""
    return tmp_path / "reports" / "export"


def exported(to: Path, mark: str) -> Path:
    """A finished export."""
    (to / "messages").mkdir(parents=True)
    (to / "messages" / "part").write_text(mark, encoding="utf-8")
    sign(to, mark=mark)
    return to


def export(target: Path, mark: str) -> None:
    """A whole export."""
    with folder.workspace(target) as workspace:
        folder.put(exported(workspace / "export", mark), target, workspace)


def export_twice(target: Path, mark: str) -> None:
    """An export that fails in its middle: it writes what it has written already."""
    with folder.workspace(target) as workspace:
        exported(workspace / "export", mark)
        exported(workspace / "export", mark)


def mark(target: Path) -> str:
    """Which export stands there."""
    return (target / "messages" / "part").read_text(encoding="utf-8")


def test_an_export_comes_into_a_new_folder_and_leaves_nothing_beside_it(target: Path) -> None:
    export(target, "first")

    assert mark(target) == "first"
    assert list(target.parent.iterdir()) == [target]


def test_an_export_comes_into_an_empty_folder(target: Path) -> None:
    target.mkdir(parents=True)

    export(target, "first")

    assert mark(target) == "first"


def test_an_export_takes_the_place_of_an_earlier_one(target: Path) -> None:
    export(target, "first")

    export(target, "second")

    assert mark(target) == "second"
    assert list(target.parent.iterdir()) == [target]


def test_a_failing_export_leaves_the_earlier_one(target: Path) -> None:
    export(target, "first")

    with pytest.raises(FileExistsError):
        export_twice(target, "second")

    assert mark(target) == "first"
    assert list(target.parent.iterdir()) == [target]


def test_what_a_killed_export_left_is_cleared_by_the_next(target: Path) -> None:
    export(target, "first")
    left = target.with_name(".export.unfinished")
    exported(left / "export", "second")

    export(target, "third")

    assert mark(target) == "third"
    assert list(target.parent.iterdir()) == [target]


def test_an_export_killed_between_its_two_renames_is_undone_by_the_next(target: Path) -> None:
    export(target, "first")
    left = target.with_name(".export.unfinished")
    exported(left / "export", "second")
    target.rename(left / "earlier")

    with folder.workspace(target):
        assert mark(target) == "first"


def test_only_one_export_at_a_time_goes_to_a_folder(target: Path) -> None:
    with folder.workspace(target), pytest.raises(ExportUnderWay) as refused, folder.workspace(target):
        pass

    assert refused.value.code == "export_under_way"
    assert str(refused.value) == f"Another export to {target} is under way: wait for it, or give another folder."


def test_exports_that_begin_while_another_ends_never_share_a_workspace(target: Path) -> None:
    def export_often() -> int:
        done = 0
        while done < RACES:
            with suppress(ExportUnderWay), folder.workspace(target) as workspace:
                (workspace / "export").mkdir()
                done += 1
        return done

    with ThreadPoolExecutor(3) as pool:
        racing = [pool.submit(export_often) for _ in range(3)]

    assert [one.result() for one in racing] == [RACES] * 3


def test_a_folder_with_other_files_is_refused(target: Path) -> None:
    target.mkdir(parents=True)
    (target / "thesis.tex").touch()

    assert refusal(target) == f"{target} holds thesis.tex and no export: {WAY_OUT}"


def test_an_export_with_something_beside_it_is_refused(target: Path) -> None:
    export(target, "first")
    (target / "notes.txt").touch()

    assert refusal(target) == f"{target} holds notes.txt beside an earlier export: {WAY_OUT}"


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "of magic"}', "\x00"])
def test_a_manifest_of_another_program_does_not_make_an_export(target: Path, text: str) -> None:
    target.mkdir(parents=True)
    (target / "export.json").write_text(text, encoding="utf-8")

    assert refusal(target) == f"{target} holds export.json and no export: {WAY_OUT}"


def test_a_file_is_refused(target: Path) -> None:
    target.parent.mkdir()
    target.touch()

    assert refusal(target) == f"{target} is a file: {WAY_OUT}"


def test_a_mount_point_is_refused() -> None:
    assert refusal(Path("/proc")) == ("/proc is a mount point and cannot be replaced as a whole: give a folder in it.")


def test_a_file_that_came_into_the_target_meanwhile_is_not_replaced(target: Path) -> None:
    with folder.workspace(target) as workspace:
        finished = exported(workspace / "export", "first")
        target.mkdir()
        (target / "thesis.tex").write_text("years of work", encoding="utf-8")

        with pytest.raises(FolderRefused):
            folder.put(finished, target, workspace)

    assert (target / "thesis.tex").read_text(encoding="utf-8") == "years of work"


def refusal(target: Path) -> str:
    """Why an export to the target is refused."""
    with pytest.raises(FolderRefused) as refused, folder.workspace(target):
        pass
    assert refused.value.code == "folder_refused"
    return str(refused.value)
