"""Characters of the command line's tests: data folders, and processes that end with their test."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.processes.child import wait_until

Eventually = Callable[[Callable[[], bool]], None]


class Run(Protocol):
    def __call__(self, *words: str, **variables: str) -> subprocess.Popen[str]: ...


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data folder")
    made.make()
    return made


@contextmanager
def running() -> Iterator[Run]:
    """Starts Python processes in the checkout, each in a group of its own, which end with the block."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    try:
        yield run
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def run_python() -> Iterator[Run]:
    """Starts Python processes that end with their test."""
    with running() as run:
        yield run


@pytest.fixture
def eventually() -> Eventually:
    """Asserts that something becomes so within 30 seconds."""

    def become(is_so: Callable[[], bool], seconds: float = 30) -> None:
        began = time.monotonic()
        assert wait_until(is_so, seconds), f"still not so after {time.monotonic() - began:.0f} s"

    return become
