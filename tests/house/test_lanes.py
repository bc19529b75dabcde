"""No test waits in a lane that it does not need: a light test runs beside a heavy one, and a browser beside Spark."""

from pathlib import Path

import pytest

from tests.cli.test_workers import OTHERS, closing, pytest_in

MEETING = """
import time
from pathlib import Path
import pytest

def meets(mine, other):
    Path({place!r}, mine).touch()
    ends_at = time.monotonic() + 60
    while not Path({place!r}, other).exists():
        assert time.monotonic() < ends_at
        time.sleep(0.02)

@pytest.mark.{first}
def test_first():
    meets("first", "second")

@pytest.mark.{second}
def test_second():
    meets("second", "first")
"""


@pytest.mark.parametrize(("first", "second"), [("heavy", "chaos"), ("spark", "browser"), ("spark", "heavy")])
def test_tests_of_one_file_that_bear_each_other_run_side_by_side(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "there").mkdir()
    text = MEETING.format(place=str(tmp_path / "there"), first=first, second=second)
    (tmp_path / "test_meeting.py").write_text(text)

    done = pytest_in(tmp_path, "--maxfail=9")

    assert (done.returncode, closing(done).partition(",")[0]) == (0, "2 passed"), done.stdout


def test_no_two_tests_run_spark_at_once(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    text = OTHERS.format(place=str(tmp_path / "there"), mark="@pytest.mark.spark")
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(text)

    # Without a repetition.
    done = pytest_in(tmp_path, "--maxfail=9", processes=3)

    assert (done.returncode, closing(done).partition(",")[0]) == (0, "3 passed"), done.stdout
