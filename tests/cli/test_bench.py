"""`./mq bench` measures brokers of this checkout and of another one beside the yardstick."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import forks
from tests.cli.conftest import Eventually, Run
from tools.bench import checkout


def test_a_commit_is_measured_in_turns_and_each_case_is_kept_as_soon_as_it_has_ended(
    run_python: Run, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    cases = ("--case", "transactions, 64 connections", "--case", "one caller")
    short = ("--beside", "HEAD", *cases, "--rounds", "2", "--seconds", "0.1", "--json", str(file))

    process = run_python("-m", "mqbroker.embedded.cli", "bench", "throughput", *short, TMPDIR=str(tmp_path))
    assert process.stdout
    # The row of the other side ends the table of the first case.
    while not process.stdout.readline().startswith("beside "):
        assert process.poll() is None
    [report] = json.loads(file.read_text())
    process.terminate()
    process.communicate(timeout=60)

    sides = [f"transactions, 64 connections | {side}" for side in ("limit", "ours", "beside")]
    assert {side: len(found) for side, found in report["rounds"].items()} == dict.fromkeys(sides, 2)
    assert set(report["figures"]) == set(sides)
    assert report["facts"]["synchronous_commit"] == "on"
    assert report["facts"]["beside"] == report["facts"]["ours"].removesuffix("-dirty")
    ours = report["figures"][sides[1]]
    assert ours["refused"] == 0
    assert min(ours[name] for name in ("web_cpu_us", "postgres_cpu_us", "wal_bytes", "of_limit", "of_other")) > 0
    worktrees = subprocess.run(["git", "worktree", "list"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert str(tmp_path) not in worktrees.stdout


def test_the_checkout_of_a_folder_is_measured_where_it_is() -> None:
    with checkout.named(str(ROOT)) as found:
        assert found == ROOT
    assert (ROOT / "manage.py").exists()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--beside=no-such-commit", "error: --beside: no-such-commit is neither a folder nor a commit"),
        ("--beside=docs", "is not the folder of a checkout: it has no manage.py."),
        ("--case=sleeps", "No case has sleeps in its name: there are transactions, 64 connections;"),
    ],
)
def test_a_word_that_names_no_checkout_or_case_is_refused(option: str, sentence: str) -> None:
    # What `./mq bench` runs on its servers.
    done = forks.run(commands.python("-m", "tools.bench", "throughput", option), os.environ)

    assert done.returncode == 2
    assert sentence in done.stderr


def test_the_wal_of_a_transaction_is_told_by_record_and_table(run_python: Run, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"

    process = run_python("-m", "mqbroker.embedded.cli", "bench", "wal", "--seconds", "0.2", "--json", str(file))
    _, said = process.communicate(timeout=120)

    assert process.returncode == 0, said
    [report] = json.loads(file.read_text())
    figures = report["figures"]
    whole = figures.pop("ours: WAL per transaction")["bytes"]
    # The heads of pages are no records.
    assert 0.98 * whole < sum(each["bytes"] for each in figures.values()) <= whole
    # A statement that locks a free row before it deletes it, and arrays of one element, would be seen here.
    assert 0.99 < figures["ours: Heap DELETE half_message"]["records"] < 1.01
    assert "ours: Heap LOCK half_message" not in figures
    assert figures["ours: Heap INSERT operation"]["bytes"] < 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "case", "line", "wanted"),
    [
        ("delivery", "fair group, drain", "fair group, drain | fair", ("per_second", "web_cpu_us")),
        ("lateness", "checks, 100 to a call", "1,000 checks due at once, 100 to a call", ("per_second", "web_cpu_us")),
        ("horizon", "filling", "filling, minute 1", ("per_second", "table_bytes")),
    ],
)
def test_a_case_measures_as_many_messages_as_it_is_told(
    run_python: Run, tmp_path: Path, name: str, case: str, line: str, wanted: tuple[str, ...]
) -> None:
    file = tmp_path / "figures.json"
    short = ("--case", case, "--messages", "1000", "--rounds", "1", "--json", str(file))

    process = run_python("-m", "mqbroker.embedded.cli", "bench", name, *short)
    _, said = process.communicate(timeout=180)

    assert process.returncode == 0, said
    [report] = json.loads(file.read_text())
    assert report["facts"]["synchronous_commit"] == "on"
    assert min(report["figures"][line][figure] for figure in wanted) > 0


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.parametrize("queue", ["ours", "procrastinate", "django-tasks-db"])
def test_a_queue_is_measured_beside_queries_that_keep_dead_rows(run_python: Run, tmp_path: Path, queue: str) -> None:
    file = tmp_path / "figures.json"
    short = ("--case", queue, "--minutes", "1", "--json", str(file))

    process = run_python("-m", "mqbroker.embedded.cli", "bench", "horizon", *short)
    _, said = process.communicate(timeout=300)

    assert process.returncode == 0, said
    [report] = json.loads(file.read_text())
    minute = report["figures"][f"{queue}, minute 1"]
    assert min(minute[name] for name in ("received_per_second", "p99_ms", "dead_rows", "table_bytes")) > 0


def ask_to_end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def kill_all_of_the_group(pid: int) -> None:
    os.killpg(pid, signal.SIGKILL)


def runs(process: psutil.Process) -> bool:
    """Whether a process has not ended; it may end between two looks at it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.chaos
@pytest.mark.parametrize("end", [pytest.param(ask_to_end, marks=pytest.mark.long), kill_all_of_the_group])
def test_a_broker_that_is_measured_ends_with_its_benchmark(
    run_python: Run, eventually: Eventually, end: Callable[[int], None], tmp_path: Path
) -> None:
    words = ("bench", "overload", "--case", "callers", "--rounds", "1000", "--seconds", "1")
    # What is killed cannot remove the folders of its servers.
    process = run_python("-m", "mqbroker.embedded.cli", *words, TMPDIR=str(tmp_path))
    assert process.stdout
    while not process.stdout.readline().startswith("cores of broker and load: "):
        assert process.poll() is None
    started = psutil.Process(process.pid).children(recursive=True)
    assert [one for one in started if "mqbroker.web" in one.cmdline()]

    end(process.pid)

    eventually(lambda: not [one for one in started if runs(one)])


@pytest.mark.long
def test_one_process_on_several_cells_is_measured_beside_one_cell(run_python: Run, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    short = ("--case", "per cell", "--rounds", "1", "--seconds", "0.3", "--json", str(file))

    process = run_python("-m", "mqbroker.embedded.cli", "bench", "throughput", *short)
    _, said = process.communicate(timeout=180)

    assert process.returncode == 0, said
    [report] = json.loads(file.read_text())
    one, two, four = (
        report["figures"][f"cells, 32 callers per cell | {cells}"] for cells in ("1 cell", "2 cells", "4 cells")
    )
    names = ("per_second", "web_cpu_us", "postgres_cpu_us")
    assert min(cells[name] for cells in (one, two, four) for name in names) > 0
    assert min(cells[name] for cells in (two, four) for name in ("of_other", "cpu_of_other")) > 0
