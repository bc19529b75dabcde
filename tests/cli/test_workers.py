"""Tests in several processes: each outcome is pytest's own, and a process that is killed fails one test only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT

OUTCOMES = """
import os, warnings
import pytest

@pytest.fixture(scope="session")
def place():
    yield
    assert False, "the fixture of the session has failed"

def test_passes(place):
    print("never shown")

def test_fails(place):
    print("shown")
    warnings.warn("a warning")
    assert os.getpid() == 0

@pytest.mark.skip(reason="not here")
def test_is_skipped():
    pass
"""
KILLED = """
import os, signal

def test_before(): pass
def test_kills(): os.kill(os.getpid(), signal.SIGKILL)
def test_after(): pass
"""
MADE = """
import os
import pytest

@pytest.fixture(scope="session")
def made():
    with open({place!r}, "a") as opened:
        opened.write(f"{{os.getpid()}}\\n")
"""
PORTS = """
from pathlib import Path
from tests.broker.ports import free_port

def test_one():
    Path({place!r}).write_text("\\n".join(str(free_port()) for _ in range(1_000)))
"""

UNSTEADY = """
from pathlib import Path

def test_fails_once():
    place = Path({place!r})
    runs = place.read_text() if place.exists() else ""
    place.write_text(runs + "x")
    print("run", len(runs))
    assert runs

def test_fails_each_time():
    assert False
"""
OTHERS = """
import os, time
from pathlib import Path
import pytest

{mark}
def test_notes_who_runs_beside():
    place = Path({place!r})
    mine = place / str(os.getpid())
    mine.touch()
    time.sleep(0.3)  # for the others to be there
    beside = [int(other.name) for other in place.iterdir() if other != mine]
    mine.unlink()
    assert not beside
"""

SHARED_BROKER = """
import pytest

@pytest.fixture(scope="session")
def broker():
    yield
    with open({place!r}, "a") as opened:
        opened.write("broker ended\\n")
"""
SHARED_BY_A_FOLDER = """
import pytest

@pytest.fixture(scope="package")
def console():
    yield
    with open({place!r}, "a") as opened:
        opened.write("console ended\\n")
"""
SESSIONS = """
import os, psycopg

def test_leaves_sessions():
    global kept
    kept = [psycopg.connect(os.environ["DATABASE_URL"]) for _ in range(251)]
"""
NOTES = """
def test_notes({fixture}):
    with open({place!r}, "a") as opened:
        opened.write("{name}\\n")
"""


def pytest_in(folder: Path, *options: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    """A pytest over a folder in so many processes, without servers."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    servers = [{name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL")}] * processes
    places = {"MQ_SERVERS_OF_TESTS": json.dumps(servers), "PYTEST_PLUGINS": "tests.spread"}
    # The imports of all installed plugins are two thirds of such a run.
    places["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-rA", "-c", str(folder / "pytest.ini"), *options, str(folder)]
    return subprocess.run(command, env=os.environ | places, cwd=ROOT, capture_output=True, text=True)


def closing(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1].strip("= ").partition(" in ")[0]


def test_outcomes_output_and_warnings_are_those_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_outcomes.py").write_text(OUTCOMES)
    (tmp_path / "test_others.py").write_text("def test_passes(): pass")

    done = pytest_in(tmp_path, "--maxfail=9")

    assert (done.returncode, closing(done)) == (1, "1 failed, 2 passed, 1 skipped, 1 warning, 1 error")
    assert "Captured stdout call" in done.stdout
    assert "UserWarning: a warning" in done.stdout
    assert "the fixture of the session has failed" in done.stdout
    assert "SKIPPED [1]" in done.stdout


def test_a_process_that_is_killed_fails_its_test_and_another_goes_on(tmp_path: Path) -> None:
    (tmp_path / "test_killed.py").write_text(KILLED)
    (tmp_path / "test_others.py").write_text("def test_passes(): pass")

    done = pytest_in(tmp_path)

    assert (done.returncode, closing(done)) == (1, "1 failed, 3 passed")
    assert [line for line in done.stdout.splitlines() if line.startswith("FAILED") and "::test_kills" in line]
    assert "the process of this test ended by -9" in done.stdout


def test_the_broker_that_files_share_ends_before_the_files_that_need_none(tmp_path: Path) -> None:
    place, folder = str(tmp_path / "notes"), tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text(SHARED_BROKER.format(place=place))
    for name, fixture in (("first", "broker"), ("second", "broker"), ("alone", "")):
        (folder / f"test_{name}.py").write_text(NOTES.format(place=place, name=name, fixture=fixture))

    done = pytest_in(tmp_path, processes=1)

    assert done.returncode == 0, done.stdout
    assert (tmp_path / "notes").read_text().splitlines() == ["first", "second", "broker ended", "alone"]


def test_what_the_files_of_a_folder_share_ends_with_the_last_of_them(tmp_path: Path) -> None:
    place = str(tmp_path / "notes")
    (tmp_path / "conftest.py").write_text("from tests.folders import pytest_collect_directory")
    for name, fixture in (("a/first", "console"), ("a/second", "console"), ("b/third", "")):
        file = tmp_path / f"{name.replace('/', '/test_')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(NOTES.format(place=place, name=name, fixture=fixture))
    (tmp_path / "a" / "conftest.py").write_text(SHARED_BY_A_FOLDER.format(place=place))

    done = pytest_in(tmp_path, processes=1)

    assert done.returncode == 0, done.stdout
    assert (tmp_path / "notes").read_text().splitlines() == ["a/first", "a/second", "console ended", "b/third"]


def test_a_file_that_leaves_sessions_of_postgresql_behind_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_leaves.py").write_text(SESSIONS)
    (tmp_path / "test_others.py").write_text("def test_passes(): pass")

    done = pytest_in(tmp_path, processes=1)

    assert (done.returncode, closing(done)) == (1, "2 passed, 1 error")
    assert "AssertionError: test_leaves.py has left sessions of PostgreSQL behind: {'mqbroker ': " in done.stdout


def test_the_first_failure_is_the_last_test_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text("def test_fails(): assert False")
    (tmp_path / "test_others.py").write_text("def test_never(): assert False")

    done = pytest_in(tmp_path, "-x", processes=1)

    assert (done.returncode, closing(done).partition(",")[0]) == (1, "1 failed")
    assert "test_never" not in done.stdout


def test_a_process_makes_the_fixtures_of_its_session_once_for_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(MADE.format(place=str(tmp_path / "made")))
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text("def test_one(made): pass\ndef test_two(made): pass")

    done = pytest_in(tmp_path)

    assert (done.returncode, closing(done)) == (0, "8 passed")
    by = (tmp_path / "made").read_text().splitlines()
    assert len(by) == len(set(by)) <= 2


def test_no_process_takes_a_port_of_another(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(PORTS.format(place=str(tmp_path / f"{number}")))

    done = pytest_in(tmp_path, processes=3)

    assert (done.returncode, closing(done)) == (0, "3 passed")
    taken = [port for number in range(3) for port in (tmp_path / f"{number}").read_text().split()]
    assert len(set(taken)) == 3_000


def test_what_fails_once_and_passes_alone_is_unsteady_and_said_with_its_output(tmp_path: Path) -> None:
    (tmp_path / "test_unsteady.py").write_text(UNSTEADY.format(place=str(tmp_path / "runs")))

    done = pytest_in(tmp_path)

    assert (done.returncode, closing(done)) == (1, "1 failed, 1 passed, 1 unsteady")
    assert "test_unsteady.py::test_fails_once failed, and passed alone" in done.stdout
    assert "run 0" in done.stdout.partition("UNSTEADY")[2]
    assert (tmp_path / "runs").read_text() == "xx"


def test_what_is_unsteady_runs_ten_times_more_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQ_TWICE", "1")
    (tmp_path / "test_unsteady.py").write_text(UNSTEADY.format(place=str(tmp_path / "runs")))

    done = pytest_in(tmp_path, "-k", "once")

    assert (done.returncode, closing(done)) == (0, "1 passed, 1 deselected, 1 unsteady")
    assert "passed alone; 0 of 10 times again" in done.stdout
    assert (tmp_path / "runs").read_text() == "x" * 12


@pytest.mark.parametrize(("mark", "status"), [("alone", 0), ("heavy", 0), ("", 1)])
def test_what_is_to_run_alone_or_is_heavy_runs_beside_none_of_its_kind(tmp_path: Path, mark: str, status: int) -> None:
    (tmp_path / "there").mkdir()
    text = OTHERS.format(place=str(tmp_path / "there"), mark=f"@pytest.mark.{mark}" if mark else "")
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(text)

    # Without a repetition.
    done = pytest_in(tmp_path, "--maxfail=9", processes=3)

    assert done.returncode == status, done.stdout
