"""The client's synchronous modules are what `client/synchronous.py` makes of the asynchronous ones."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = "client/mqbroker_client/aio/producers.py"
MADE = "client/mqbroker_client/core/producers.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The client in a folder of its own, to be changed."""
    shutil.copytree(ROOT / "client", tmp_path / "client", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What `python client/synchronous.py` says there."""
    command = [sys.executable, "client/synchronous.py", *words]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=300)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_change_for_tasks_is_refused_until_it_is_made_for_threads(checkout: Path) -> None:
    replace(checkout / ORIGIN, "    async def recall(", "    async def take_back(")

    refused = run(checkout, "--check")

    assert refused.returncode == 1
    assert f"{MADE} is not what {ORIGIN} gives." in refused.stdout
    assert "python client/synchronous.py" in refused.stdout
    assert run(checkout).returncode == 0
    assert "    def take_back(" in (checkout / MADE).read_text(encoding="utf-8")
    assert run(checkout, "--check").returncode == 0


def test_a_change_of_what_is_made_is_refused_and_lost(checkout: Path) -> None:
    before = (checkout / MADE).read_text(encoding="utf-8")
    replace(checkout / MADE, "    def recall(", "    def take_back(")

    assert run(checkout, "--check").returncode == 1
    assert run(checkout).returncode == 0
    assert (checkout / MADE).read_text(encoding="utf-8") == before


def test_words_and_names_become_those_of_threads(checkout: Path) -> None:
    origin = checkout / ORIGIN
    text = origin.read_text(encoding="utf-8")
    origin.write_text(
        text + "\n\nasync def of_tasks(one: AsyncProducer, topic: str) -> str:\n"
        '    """Two lines, the second of which\n    speaks of a task, and of `AsyncProducer`."""\n'
        '    return "Async" + str(await one.send(topic))  # awaited by a task\n',
        encoding="utf-8",
    )

    assert run(checkout).returncode == 0

    assert (
        (checkout / MADE)
        .read_text(encoding="utf-8")
        .endswith(
            "\n\ndef of_tasks(one: Producer, topic: str) -> str:\n"
            '    """Two lines, the second of which\n    speaks of a thread, and of `Producer`."""\n'
            '    return "Async" + str(one.send(topic))  # awaited by a thread\n'
        )
    )
